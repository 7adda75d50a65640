//! Pages of a room's messages, for those who scroll.

use super::reactions::{self, Reaction};
use crate::storage::error::ReadError;
use crate::storage::ids::{Offset, RoomId, Seq, UnixMillis, UserId};
use crate::storage::progress::Stream;
use crate::storage::record::{Message, MessageDetails};
use crate::storage::sql::{self, Connection, OptionalExtension, Row, params};
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::store::Store;
use althing::Wire;

/// What [`read_message`] reads, of the table `messages m`.
pub(super) const COLUMNS: &str = "m.seq, m.user, m.name, m.key, m.content_hash, m.body, \
     m.details, m.offset, m.at, m.edited_at, m.deleted_at, m.deleted_by, \
     EXISTS (SELECT 1 FROM pins p WHERE p.room = m.room AND p.seq = m.seq)";
/// How many columns these are.
pub(super) const WIDTH: usize = 13;

/// Where a page lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Wire)]
pub enum PageAnchor {
    /// The last messages.
    Latest,
    /// The messages right before this one.
    Before(Seq),
    /// The messages right after this one.
    After(Seq),
    /// This one in the middle.
    Around(Seq),
}

/// A message as it is now.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
pub struct StoredMessage {
    /// What was sent, with its latest text; no text if it was deleted.
    pub message: Message,
    /// Its event.
    pub offset: Offset,
    /// When it was sent.
    pub at: UnixMillis,
    /// When its text was last changed.
    pub edited_at: Option<UnixMillis>,
    /// When and by whom it was deleted.
    pub deleted: Option<(UnixMillis, UserId)>,
    /// What people reacted with, in the order of the first of each.
    pub reactions: Vec<Reaction>,
    /// Whether it is pinned for everybody in the room.
    pub is_pinned: bool,
}

/// A page of messages, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Wire)]
pub struct HistoryPage {
    /// The messages.
    pub messages: Vec<StoredMessage>,
    /// The room's first message; 0 if it has none.
    pub first_seq: Seq,
    /// The room's last message; 0 if it has none.
    pub last_seq: Seq,
}

impl Store {
    /// A page of at most `limit` messages of a room, as `viewer` sees them.
    ///
    /// # Errors
    /// [`ReadError`]; an unknown room has an empty history.
    pub async fn history(
        &self,
        room: RoomId,
        anchor: PageAnchor,
        limit: u32,
        viewer: UserId,
    ) -> Result<HistoryPage, ReadError> {
        self.barrier_for(&[Stream::Room(room)]).await?;
        self.read(move |connection| page(connection, room, anchor, limit, viewer)).await
    }

    /// One message; `None` if there is none of this number.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn message(
        &self,
        room: RoomId,
        seq: Seq,
        viewer: UserId,
    ) -> Result<Option<StoredMessage>, ReadError> {
        let page = self.history(room, PageAnchor::Around(seq), 1, viewer).await?;
        Ok(page.messages.into_iter().find(|stored| stored.message.seq == seq))
    }
}

fn page(
    connection: &Connection,
    room: RoomId,
    anchor: PageAnchor,
    limit: u32,
    viewer: UserId,
) -> Result<HistoryPage, ReadError> {
    let ends = connection
        .prepare_cached(
            "SELECT coalesce((SELECT min(seq) FROM messages WHERE room = ?1), 0), \
                    coalesce((SELECT max(seq) FROM messages WHERE room = ?1), 0)",
        )?
        .query_row([to_sql(room.as_u64())], |row| {
            Ok((Seq::from_u64(from_sql(row.get(0)?)), Seq::from_u64(from_sql(row.get(1)?))))
        })
        .optional()?;
    let (first_seq, last_seq) = ends.unwrap_or_default();
    let mut messages = match anchor {
        PageAnchor::Latest => {
            before(connection, room, Seq::from_u64(last_seq.as_u64() + 1), limit)?
        }
        PageAnchor::Before(seq) => before(connection, room, seq, limit)?,
        PageAnchor::After(seq) => after(connection, room, seq, limit)?,
        PageAnchor::Around(seq) => {
            // The half after it includes the message itself.
            let earlier = before(connection, room, seq, limit / 2)?;
            let rest = limit - u32::try_from(earlier.len()).unwrap_or(limit);
            let mut messages = earlier;
            messages.extend(after(
                connection,
                room,
                Seq::from_u64(seq.as_u64().saturating_sub(1)),
                rest,
            )?);
            messages
        }
    };
    if let (Some(first), Some(last)) = (messages.first(), messages.last()) {
        let (first, last) = (first.message.seq, last.message.seq);
        let places = [room.as_u64(), first.as_u64(), last.as_u64(), viewer.as_u64()].map(to_sql);
        let sql = "SELECT seq, emoji, count(*), max(CASE WHEN user = ?4 THEN 1 ELSE 0 END) \
                   FROM reactions WHERE room = ?1 AND seq >= ?2 AND seq <= ?3 \
                   GROUP BY seq, emoji ORDER BY seq, min(at), emoji";
        let found = reactions::find(connection, sql, places)?;
        reactions::give(by_number(&mut messages), found);
    }
    Ok(HistoryPage { messages, first_seq, last_seq })
}

/// The newest message, whose number is `last`.
pub(super) fn newest(
    connection: &Connection,
    room: RoomId,
    last: Seq,
) -> Result<Option<StoredMessage>, ReadError> {
    Ok(before(connection, room, last.next(), 1)?.pop())
}

fn before(
    connection: &Connection,
    room: RoomId,
    seq: Seq,
    limit: u32,
) -> Result<Vec<StoredMessage>, ReadError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM messages m WHERE m.room = ?1 AND m.seq < ?2 \
         ORDER BY m.seq DESC LIMIT ?3"
    );
    let mut messages = select(connection, &sql, room, seq, limit)?;
    messages.reverse();
    Ok(messages)
}

fn after(
    connection: &Connection,
    room: RoomId,
    seq: Seq,
    limit: u32,
) -> Result<Vec<StoredMessage>, ReadError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM messages m WHERE m.room = ?1 AND m.seq > ?2 \
         ORDER BY m.seq LIMIT ?3"
    );
    select(connection, &sql, room, seq, limit)
}

fn select(
    connection: &Connection,
    sql: &str,
    room: RoomId,
    seq: Seq,
    limit: u32,
) -> Result<Vec<StoredMessage>, ReadError> {
    let mut statement = connection.prepare_cached(sql)?;
    // A client's number may be anything; SQLite's largest is beyond every real one.
    let seq = seq.as_u64().min(i64::MAX.cast_unsigned());
    let mut rows = statement.query(params![to_sql(room.as_u64()), to_sql(seq), limit])?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        messages.push(read_message(&row)?);
    }
    Ok(messages)
}

/// Reads a row that begins with [`COLUMNS`]; reactions are read apart.
pub(super) fn read_message(row: &Row<'_>) -> Result<StoredMessage, ReadError> {
    let details = row.get_ref(6)?.as_blob_or_null().map_err(sql::SqlError::from)?;
    let details = MessageDetails::decode(details)?;
    let time = |index| -> sql::Result<Option<UnixMillis>> {
        Ok(row.get::<Option<i64>>(index)?.map(|at| UnixMillis::from_u64(from_sql(at))))
    };
    let deleted_by = row.get::<Option<i64>>(11)?.map(|by| UserId::from_u64(from_sql(by)));
    Ok(StoredMessage {
        message: Message {
            seq: Seq::from_u64(from_sql(row.get(0)?)),
            user: UserId::from_u64(from_sql(row.get(1)?)),
            name: row.get(2)?,
            key: row.get(3)?,
            content_hash: from_sql(row.get(4)?),
            body: row.get(5)?,
            reply_to: details.reply_to,
            mentions: details.mentions,
            mention_all: details.mention_all,
            attachments: details.attachments,
        },
        offset: Offset::from_u64(from_sql(row.get(7)?)),
        at: UnixMillis::from_u64(from_sql(row.get(8)?)),
        edited_at: time(9)?,
        deleted: time(10)?.zip(deleted_by),
        reactions: Vec::new(),
        is_pinned: row.get(12)?,
    })
}

/// Messages of one room by their numbers, as rows of the database have them.
pub(super) fn by_number(
    messages: &mut [StoredMessage],
) -> impl Iterator<Item = (i64, &mut StoredMessage)> {
    messages.iter_mut().map(|stored| (to_sql(stored.message.seq.as_u64()), stored))
}
