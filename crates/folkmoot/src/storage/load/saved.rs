//! What a user has saved for later, as far as the user may still read it.

use super::history::{COLUMNS, StoredMessage, WIDTH, read_message};
use super::reactions;
use crate::storage::error::ReadError;
use crate::storage::ids::{RoomId, Seq, UnixMillis, UserId};
use crate::storage::progress::Stream;
use crate::storage::sql::{Connection, params};
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::store::Store;

/// Rows of `saved s` whose user is a member of the room, with their message `m`.
const READABLE: &str = "FROM saved s \
     JOIN messages m ON m.room = s.room AND m.seq = s.seq AND m.deleted_at IS NULL \
     JOIN members ON members.room = s.room AND members.user = s.user \
     JOIN rooms ON rooms.id = s.room AND rooms.deleted_at IS NULL WHERE s.user = ?1";

/// A saved message as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSaved {
    /// Its room.
    pub room: RoomId,
    /// The message.
    pub message: StoredMessage,
    /// When it was saved.
    pub at: UnixMillis,
    /// Its place in the list.
    pub number: u32,
}

impl Store {
    /// A page of at most `limit` saved messages of a user, the one saved last first: those whose
    /// place in the list is below `before`.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn saved(
        &self,
        user: UserId,
        before: Option<u32>,
        limit: u32,
    ) -> Result<Vec<StoredSaved>, ReadError> {
        self.after_rooms_of_saved(user).await?;
        self.read(move |connection| page(connection, user, before, limit)).await
    }

    /// Rooms and numbers of all saved messages of a user.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn saved_numbers(&self, user: UserId) -> Result<Vec<(RoomId, Seq)>, ReadError> {
        self.after_rooms_of_saved(user).await?;
        self.read(move |connection| {
            let sql = format!("SELECT s.room, s.seq {READABLE} ORDER BY s.room, s.seq");
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map([to_sql(user.as_u64())], |row| {
                let room = RoomId::from_u64(from_sql(row.get(0)?));
                Ok((room, Seq::from_u64(from_sql(row.get(1)?))))
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Deletions, edits and departures of the rooms in question may still be in the log.
    pub(in crate::storage) async fn after_rooms_of_saved(
        &self,
        user: UserId,
    ) -> Result<(), ReadError> {
        let rooms: Vec<Stream> = self
            .read(move |connection| {
                let sql = "SELECT DISTINCT room FROM saved WHERE user = ?1";
                let mut statement = connection.prepare_cached(sql)?;
                let rows = statement.query_map([to_sql(user.as_u64())], |row| {
                    Ok(Stream::Room(RoomId::from_u64(from_sql(row.get(0)?))))
                })?;
                Ok(rows.collect::<Result<_, _>>()?)
            })
            .await?;
        // Without a name a barrier waits for all streams.
        if rooms.is_empty() { Ok(()) } else { self.barrier_for(&rooms).await }
    }
}

fn page(
    connection: &Connection,
    user: UserId,
    before: Option<u32>,
    limit: u32,
) -> Result<Vec<StoredSaved>, ReadError> {
    let sql = format!(
        "SELECT {COLUMNS}, s.room, s.at, s.number {READABLE} AND s.number < ?2 \
         ORDER BY s.number DESC LIMIT ?3"
    );
    let before = before.map_or(i64::MAX, i64::from);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params![to_sql(user.as_u64()), before, limit])?;
    let mut saved = Vec::new();
    while let Some(row) = rows.next()? {
        let room = RoomId::from_u64(from_sql(row.get(WIDTH)?));
        let message = read_message(&row)?;
        let at = UnixMillis::from_u64(from_sql(row.get(WIDTH + 1)?));
        saved.push(StoredSaved { room, message, at, number: row.get(WIDTH + 2)? });
    }
    if let (Some(newest), Some(oldest)) = (saved.first(), saved.last()) {
        let (newest, oldest) = (i64::from(newest.number), i64::from(oldest.number));
        let sql = "SELECT s.number, r.emoji, count(*), \
                   max(CASE WHEN r.user = s.user THEN 1 ELSE 0 END) FROM saved s \
                   JOIN reactions r ON r.room = s.room AND r.seq = s.seq \
                   WHERE s.user = ?1 AND s.number >= ?2 AND s.number <= ?3 \
                   GROUP BY s.number, r.emoji ORDER BY s.number, min(r.at), r.emoji";
        let params = [to_sql(user.as_u64()), oldest, newest];
        let messages = saved.iter_mut().map(|one| (i64::from(one.number), &mut one.message));
        reactions::give(messages, reactions::find(connection, sql, params)?);
    }
    Ok(saved)
}
