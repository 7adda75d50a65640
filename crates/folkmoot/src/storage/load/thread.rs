//! A message and what grew out of it: what answers it, and what answers these.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use folkmoot_protocol::limits::THREAD_LEN_MAX;

use super::history::{StoredMessage, one};
use crate::storage::error::ReadError;
use crate::storage::ids::{RoomId, Seq, UserId};
use crate::storage::progress::Stream;
use crate::storage::sql::{Connection, params};
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::store::Store;

impl Store {
    /// A message and all that answers it, directly or by way of other answers, oldest first: at
    /// most `limit` of those behind `after`. Of a thread its first [`THREAD_LEN_MAX`] are shown.
    ///
    /// # Errors
    /// [`ReadError`]; an unknown message has an empty thread.
    pub async fn thread(
        &self,
        room: RoomId,
        seq: Seq,
        after: Option<Seq>,
        limit: u32,
        viewer: UserId,
    ) -> Result<Vec<StoredMessage>, ReadError> {
        self.barrier_for(&[Stream::Room(room)]).await?;
        self.read(move |connection| {
            let members = members(connection, room, seq, after, limit)?;
            let found = members.into_iter().map(|seq| one(connection, room, seq, viewer));
            found.filter_map(Result::transpose).collect()
        })
        .await
    }
}

/// The numbers of a page. An answer is newer than what it answers, so the lowest number that
/// waits is always the next one of the thread.
fn members(
    connection: &Connection,
    room: RoomId,
    seq: Seq,
    after: Option<Seq>,
    limit: u32,
) -> Result<Vec<Seq>, ReadError> {
    let mut page = Vec::new();
    // A client's number may be anything; SQLite's largest is beyond every real one.
    let root = Seq::from_u64(seq.as_u64().min(i64::MAX.cast_unsigned()));
    let mut waiting = BinaryHeap::from([Reverse(root)]);
    for _ in 0..THREAD_LEN_MAX {
        let Some(Reverse(next)) = waiting.pop() else { break };
        if after.is_none_or(|after| next > after) {
            page.push(next);
        }
        if page.len() >= limit as usize {
            break;
        }
        let mut statement = connection.prepare_cached(
            "SELECT seq FROM quotes WHERE room = ?1 AND quoted = ?2 ORDER BY seq LIMIT ?3",
        )?;
        let place = params![to_sql(room.as_u64()), to_sql(next.as_u64()), THREAD_LEN_MAX];
        let answers = statement.query_map(place, |row| Ok(Seq::from_u64(from_sql(row.get(0)?))))?;
        for answer in answers {
            waiting.push(Reverse(answer?));
        }
    }
    Ok(page)
}
