//! The pinned messages of a room: their numbers for its actor, and the list for those who look.

use super::history::{COLUMNS, StoredMessage, WIDTH, read_message};
use super::reactions;
use crate::storage::control::{ACCOUNT_COLUMNS, Account, read_account_at};
use crate::storage::error::ReadError;
use crate::storage::ids::{Offset, RoomId, Seq, UnixMillis, UserId};
use crate::storage::progress::Stream;
use crate::storage::sql::{Connection, params};
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::store::Store;

/// A pinned message as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPin {
    /// The message.
    pub message: StoredMessage,
    /// Who pinned it.
    pub by: Account,
    /// When.
    pub at: UnixMillis,
    /// The event that says so.
    pub offset: Offset,
}

impl Store {
    /// A page of at most `limit` pinned messages of a room, the one pinned last first: those that
    /// were pinned before the event `before`.
    ///
    /// # Errors
    /// [`ReadError`]; an unknown room has no pins.
    pub async fn pins(
        &self,
        room: RoomId,
        before: Option<Offset>,
        limit: u32,
        viewer: UserId,
    ) -> Result<Vec<StoredPin>, ReadError> {
        self.barrier_for(&[Stream::Room(room)]).await?;
        self.read(move |connection| page(connection, room, before, limit, viewer)).await
    }
}

fn page(
    connection: &Connection,
    room: RoomId,
    before: Option<Offset>,
    limit: u32,
    viewer: UserId,
) -> Result<Vec<StoredPin>, ReadError> {
    let sql = format!(
        "SELECT {COLUMNS}, pins.at, pins.offset, {ACCOUNT_COLUMNS} FROM pins \
         JOIN messages m ON m.room = pins.room AND m.seq = pins.seq \
         JOIN users ON users.id = pins.by \
         WHERE pins.room = ?1 AND pins.offset < ?2 ORDER BY pins.offset DESC LIMIT ?3"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    // A client's number may be anything; SQLite's largest is beyond every real one.
    let before = before.map_or(u64::MAX, Offset::as_u64).min(i64::MAX.cast_unsigned());
    let mut rows = statement.query(params![to_sql(room.as_u64()), to_sql(before), limit])?;
    let mut pins = Vec::new();
    while let Some(row) = rows.next()? {
        let message = read_message(&row)?;
        let at = UnixMillis::from_u64(from_sql(row.get(WIDTH)?));
        let offset = Offset::from_u64(from_sql(row.get(WIDTH + 1)?));
        // An account stays as a row when it is deleted.
        let by = read_account_at(&row, WIDTH + 2)?;
        pins.push(StoredPin { message, by, at, offset });
    }
    if let (Some(newest), Some(oldest)) = (pins.first(), pins.last()) {
        let (newest, oldest) = (newest.offset.as_u64(), oldest.offset.as_u64());
        let sql = "SELECT p.offset, r.emoji, count(*), \
                   max(CASE WHEN r.user = ?4 THEN 1 ELSE 0 END) FROM pins p \
                   JOIN reactions r ON r.room = p.room AND r.seq = p.seq \
                   WHERE p.room = ?1 AND p.offset >= ?2 AND p.offset <= ?3 \
                   GROUP BY p.offset, r.emoji ORDER BY p.offset, min(r.at), r.emoji";
        let params = [room.as_u64(), oldest, newest, viewer.as_u64()].map(to_sql);
        let messages = pins.iter_mut().map(|pin| (to_sql(pin.offset.as_u64()), &mut pin.message));
        reactions::give(messages, reactions::find(connection, sql, params)?);
    }
    Ok(pins)
}

/// The numbers of a room's pinned messages.
pub(super) fn pinned(connection: &Connection, room: RoomId) -> Result<Vec<Seq>, ReadError> {
    let mut statement = connection.prepare_cached("SELECT seq FROM pins WHERE room = ?1")?;
    let rows = statement
        .query_map([to_sql(room.as_u64())], |row| Ok(Seq::from_u64(from_sql(row.get(0)?))))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
