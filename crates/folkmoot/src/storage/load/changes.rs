//! What a search needs of the store: the messages that changed, in the order of the log, and those
//! that a user may read.
//!
//! Nothing here is for the index alone to decide: whoever searches gets texts from the database, as
//! they are now, and only from rooms of which the database says that the user is a member.

use crate::storage::error::ReadError;
use crate::storage::ids::{Lsn, RoomId, Seq, UnixMillis, UserId};
use crate::storage::progress::Stream;
use crate::storage::record::MessageDetails;
use crate::storage::sql::{self, Connection, OptionalExtension, Row, params};
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::sqlite::mover::applied_lsn;
use crate::storage::store::Store;

/// Bytes of text in one page of changes, so that a page of long messages stays small in memory.
const CHANGES_BYTES_MAX: usize = 2 << 20;

/// A message that was sent, edited or deleted; as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedMessage {
    /// The room.
    pub room: RoomId,
    /// Its number there.
    pub seq: Seq,
    /// The author.
    pub user: UserId,
    /// When it was sent.
    pub at: UnixMillis,
    /// Its text and the names of its files, a line each; `None` once it is deleted.
    pub text: Option<String>,
    /// Whether it was sent, not changed.
    pub is_new: bool,
}

/// A page of changes, in the order of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageChanges {
    /// The changes.
    pub messages: Vec<ChangedMessage>,
    /// No other record up to here changed a message.
    pub up_to: Lsn,
    /// Whether the database has nothing after it.
    pub is_last: bool,
}

/// A message that a user may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadableMessage {
    /// The room.
    pub room: RoomId,
    /// Its number there.
    pub seq: Seq,
    /// The author.
    pub user: UserId,
    /// The author's name.
    pub name: String,
    /// When it was sent.
    pub at: UnixMillis,
    /// Its text and the names of its files, a line each.
    pub text: String,
}

/// A room as its member would name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRoom {
    /// The room.
    pub id: RoomId,
    /// Its name; of a direct room the name of the other one.
    pub name: String,
}

impl Store {
    /// The messages changed by records after `after`, at most `limit`.
    ///
    /// Sees what is in the database, which follows the log within a moment; waits for nothing.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn message_changes(
        &self,
        after: Lsn,
        limit: u32,
    ) -> Result<MessageChanges, ReadError> {
        self.read(move |connection| changes(connection, after, limit)).await
    }

    /// The last record in the database, of any node.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn newest(&self) -> Result<Lsn, ReadError> {
        self.read(|connection| Ok(applied_lsn(connection)?)).await
    }

    /// The rooms of a user, by id, as of every record acknowledged before the call.
    ///
    /// # Errors
    /// [`ReadError`]; an unknown user has none.
    pub async fn rooms_of(&self, user: UserId) -> Result<Vec<NamedRoom>, ReadError> {
        self.barrier_for(&[Stream::User(user)]).await?;
        self.read(move |connection| rooms_of(connection, user)).await
    }

    /// Those of `wanted` that exist, are not deleted and stand in rooms of which `user` is a
    /// member, in the order of `wanted`.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn readable_messages(
        &self,
        user: UserId,
        wanted: Vec<(RoomId, Seq)>,
    ) -> Result<Vec<ReadableMessage>, ReadError> {
        self.barrier_for(&[Stream::User(user)]).await?;
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT m.room, m.seq, m.user, m.name, m.at, m.body, m.details FROM messages m \
                 JOIN members ON members.room = m.room AND members.user = ?3 \
                 JOIN rooms r ON r.id = m.room AND r.deleted_at IS NULL \
                 WHERE m.room = ?1 AND m.seq = ?2 AND m.deleted_at IS NULL",
            )?;
            let mut found = Vec::new();
            for (room, seq) in wanted {
                let place = [to_sql(room.as_u64()), to_sql(seq.as_u64()), to_sql(user.as_u64())];
                let row = statement.query_row(place, |row| Ok(read_message(row))).optional()?;
                found.extend(row.transpose()?);
            }
            Ok(found)
        })
        .await
    }
}

fn changes(connection: &Connection, after: Lsn, limit: u32) -> Result<MessageChanges, ReadError> {
    let mut statement = connection.prepare_cached(
        "SELECT c.lsn, c.room, c.seq, m.user, m.at, CASE WHEN m.deleted_at IS NULL THEN m.body END, c.is_new, m.details \
         FROM message_changes c JOIN messages m ON m.room = c.room AND m.seq = c.seq \
         WHERE c.lsn > ?1 ORDER BY c.lsn LIMIT ?2",
    )?;
    let mut rows = statement.query(params![to_sql(after.0), limit])?;
    let (mut messages, mut bytes, mut last) = (Vec::new(), 0, after);
    while let Some(row) = rows.next()? {
        last = Lsn(from_sql(row.get(0)?));
        let body: Option<String> = row.get(5)?;
        let text = body.map(|body| searchable(body, &row, 7)).transpose()?;
        bytes += text.as_ref().map_or(0, String::len);
        messages.push(ChangedMessage {
            room: RoomId::from_u64(from_sql(row.get(1)?)),
            seq: Seq::from_u64(from_sql(row.get(2)?)),
            user: UserId::from_u64(from_sql(row.get(3)?)),
            at: UnixMillis::from_u64(from_sql(row.get(4)?)),
            text,
            is_new: row.get(6)?,
        });
        if bytes >= CHANGES_BYTES_MAX {
            break;
        }
    }
    let is_last = bytes < CHANGES_BYTES_MAX && messages.len() < limit as usize;
    let up_to = if is_last { applied_lsn(connection)?.max(last) } else { last };
    Ok(MessageChanges { messages, up_to, is_last })
}

fn rooms_of(connection: &Connection, user: UserId) -> Result<Vec<NamedRoom>, ReadError> {
    let mut statement = connection.prepare_cached(
        "SELECT r.id, coalesce(u.name, r.name) FROM members m \
         JOIN rooms r ON r.id = m.room AND r.deleted_at IS NULL LEFT JOIN directs d ON d.room = r.id \
         LEFT JOIN users u ON u.id = CASE WHEN d.low = ?1 THEN d.high ELSE d.low END \
         WHERE m.user = ?1 ORDER BY r.id",
    )?;
    let rows = statement.query_map([to_sql(user.as_u64())], |row| {
        Ok(NamedRoom { id: RoomId::from_u64(from_sql(row.get(0)?)), name: row.get(1)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// What of a message is searched: its text, then the names of its files, from the column `details`.
fn searchable(mut text: String, row: &Row<'_>, details: usize) -> Result<String, ReadError> {
    let details = row.get_ref(details)?.as_blob_or_null().map_err(sql::SqlError::from)?;
    for attachment in MessageDetails::decode(details)?.attachments {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&attachment.name);
    }
    Ok(text)
}

fn read_message(row: &Row<'_>) -> Result<ReadableMessage, ReadError> {
    Ok(ReadableMessage {
        room: RoomId::from_u64(from_sql(row.get(0)?)),
        seq: Seq::from_u64(from_sql(row.get(1)?)),
        user: UserId::from_u64(from_sql(row.get(2)?)),
        name: row.get(3)?,
        at: UnixMillis::from_u64(from_sql(row.get(4)?)),
        text: searchable(row.get(5)?, row, 6)?,
    })
}
