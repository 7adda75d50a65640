//! A message and what grew out of it: what answers it, and what answers these.

use folkmoot_protocol::limits::THREAD_LEN_MAX;

use super::history::{COLUMNS, StoredMessage, by_number, read_message};
use super::reactions;
use crate::storage::error::ReadError;
use crate::storage::ids::{RoomId, Seq, UserId};
use crate::storage::progress::Stream;
use crate::storage::sql::Connection;
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::store::Store;

/// Numbers of a thread that are shown.
const LEN_MAX: usize = THREAD_LEN_MAX as usize;

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
            let mut numbers = numbers(connection, room, seq)?;
            numbers.retain(|number| after.is_none_or(|after| *number > after));
            numbers.truncate(limit as usize);
            messages(connection, room, &numbers, viewer)
        })
        .await
    }
}

/// The numbers of the thread, in their order, at most the first [`THREAD_LEN_MAX`]. An answer is
/// newer than what it answers, so these are those up to a number that only so many of the thread
/// have: usually all, of a long one the number is searched for.
fn numbers(connection: &Connection, room: RoomId, root: Seq) -> Result<Vec<Seq>, ReadError> {
    // A client's number may be anything; SQLite's largest is beyond every real one.
    let root = to_sql(root.as_u64().min(i64::MAX.cast_unsigned()));
    let all = grown(connection, room, root, i64::MAX)?;
    let mut first = vec![root];
    if all.len() <= LEN_MAX {
        first = all;
    } else {
        // Up to the one there are not too many, up to the other there are.
        let (mut few, mut many) = (root, all.last().copied().unwrap_or(root));
        while many - few > 1 && first.len() < LEN_MAX {
            let middle = few + (many - few) / 2;
            let found = grown(connection, room, root, middle)?;
            match found.len() > LEN_MAX {
                true => many = middle,
                false => (few, first) = (middle, found),
            }
        }
    }
    Ok(first.into_iter().map(|number| Seq::from_u64(from_sql(number))).collect())
}

/// The numbers of the thread up to `last`, in their order; of too many, any that are one too many.
fn grown(
    connection: &Connection,
    room: RoomId,
    root: i64,
    last: i64,
) -> Result<Vec<i64>, ReadError> {
    let mut statement = connection.prepare_cached(
        "WITH RECURSIVE grown (seq) AS (SELECT CAST(?2 AS BIGINT) UNION ALL \
         SELECT q.seq FROM grown JOIN quotes q \
         ON q.room = ?1 AND q.quoted = grown.seq AND q.seq <= ?3) SELECT seq FROM grown LIMIT ?4",
    )?;
    let limit = i64::from(THREAD_LEN_MAX) + 1;
    let rows = statement.query_map([to_sql(room.as_u64()), root, last, limit], |row| row.get(0))?;
    let mut found = rows.collect::<Result<Vec<i64>, _>>()?;
    found.sort_unstable();
    Ok(found)
}

/// The messages of these numbers, which are in order; none of those that are gone.
fn messages(
    connection: &Connection,
    room: RoomId,
    numbers: &[Seq],
    viewer: UserId,
) -> Result<Vec<StoredMessage>, ReadError> {
    let numbers: Vec<i64> = numbers.iter().map(|number| to_sql(number.as_u64())).collect();
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT {COLUMNS} FROM messages m WHERE m.room = ?2 AND m.seq IN (?1) ORDER BY m.seq"
    );
    let room = to_sql(room.as_u64());
    let mut messages = connection.query_in(&sql, &numbers, &[room], read_message)?;
    let sql = "SELECT seq, emoji, count(*), max(CASE WHEN user = ?3 THEN 1 ELSE 0 END) \
               FROM reactions WHERE room = ?2 AND seq IN (?1) \
               GROUP BY seq, emoji ORDER BY seq, min(at), emoji";
    let params = [room, to_sql(viewer.as_u64())];
    let found = connection.query_in(sql, &numbers, &params, reactions::read)?;
    reactions::give(by_number(&mut messages), found);
    Ok(messages)
}
