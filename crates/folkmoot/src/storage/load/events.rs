//! Events of a stream since an offset, as a client recovers them.

use folkmoot_protocol::Channel;

use crate::storage::error::ReadError;
use crate::storage::ids::{Offset, RoomId, Seq, UnixMillis, UserId};
use crate::storage::progress::Stream;
use crate::storage::record::{Message, MessageDetails, RoomEvent, RoomRecord, UserRecord};
use crate::storage::sql::{self, Connection, OptionalExtension, Row, params};
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::store::Store;

impl Store {
    /// The events of a room after `since`, oldest first, at most `limit`.
    ///
    /// `None` if some of them are no longer kept: at least the last 1,000 are. A message that was
    /// deleted meanwhile comes without its text, one that was edited with the new one.
    ///
    /// # Errors
    /// [`ReadError`]; an unknown room is `None` too.
    pub async fn room_events(
        &self,
        room: RoomId,
        since: Offset,
        limit: u32,
    ) -> Result<Option<Vec<RoomRecord>>, ReadError> {
        self.barrier_for(&[Stream::Room(room)]).await?;
        self.read(move |connection| {
            let last = stream_end(
                connection,
                "SELECT last_offset FROM rooms WHERE id = ?1",
                room.as_u64(),
            )?;
            let events = room_events(connection, room, since, limit)?;
            let first = events.first().map(|event| event.offset);
            Ok(is_whole(last, since, first, limit).then_some(events))
        })
        .await
    }

    /// The events of a user's stream after `since`, oldest first, at most `limit`.
    ///
    /// `None` if some of them are no longer kept: at least the last 1,000 are.
    ///
    /// # Errors
    /// [`ReadError`]; an unknown user is `None` too.
    pub async fn user_events(
        &self,
        user: UserId,
        since: Offset,
        limit: u32,
    ) -> Result<Option<Vec<UserRecord>>, ReadError> {
        self.barrier_for(&[Stream::User(user)]).await?;
        self.read(move |connection| {
            let last = stream_end(
                connection,
                "SELECT last_offset FROM users WHERE id = ?1",
                user.as_u64(),
            )?;
            let events = user_events(connection, user, since, limit)?;
            let first = events.first().map(|event| event.offset);
            Ok(is_whole(last, since, first, limit).then_some(events))
        })
        .await
    }

    /// The oldest event of a stream that is kept; the one to come if it has none yet.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn oldest_event(&self, channel: Channel) -> Result<Offset, ReadError> {
        let (stream, first, end, id) = match channel {
            Channel::Room(room) => (
                Stream::Room(room),
                "SELECT min(offset) FROM room_events WHERE room = ?1",
                "SELECT last_offset FROM rooms WHERE id = ?1",
                room.as_u64(),
            ),
            Channel::User(user) => (
                Stream::User(user),
                "SELECT min(offset) FROM user_events WHERE user = ?1",
                "SELECT last_offset FROM users WHERE id = ?1",
                user.as_u64(),
            ),
        };
        self.barrier_for(&[stream]).await?;
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(first)?;
            let kept = statement.query_row([to_sql(id)], |row| row.get::<Option<i64>>(0))?;
            let oldest = match kept {
                Some(offset) => from_sql(offset),
                None => stream_end(connection, end, id)?.unwrap_or_default() + 1,
            };
            Ok(Offset::from_u64(oldest))
        })
        .await
    }
}

fn stream_end(connection: &Connection, sql: &str, id: u64) -> Result<Option<u64>, ReadError> {
    Ok(connection
        .prepare_cached(sql)?
        .query_row([to_sql(id)], |row| row.get(0))
        .optional()?
        .map(from_sql))
}

/// Whether what was found begins right after `since`.
fn is_whole(last: Option<u64>, since: Offset, first: Option<Offset>, limit: u32) -> bool {
    match (last, first) {
        (None, _) => false,
        (Some(last), None) => since.as_u64() == last || (limit == 0 && since.as_u64() < last),
        (Some(_), Some(first)) => first.as_u64() == since.as_u64().saturating_add(1),
    }
}

/// A client's number may be anything; SQLite's largest is beyond every real one.
fn place(since: Offset) -> i64 {
    to_sql(since.as_u64().min(i64::MAX.cast_unsigned()))
}

/// Reads a room's events inside a snapshot.
pub(super) fn room_events(
    connection: &Connection,
    room: RoomId,
    since: Offset,
    limit: u32,
) -> Result<Vec<RoomRecord>, ReadError> {
    let mut statement = connection.prepare_cached(
        "SELECT e.offset, e.at, e.event, m.seq, m.user, m.name, m.key, m.content_hash, m.body, m.details \
         FROM room_events e LEFT JOIN messages m ON m.room = e.room AND m.seq = e.seq \
         WHERE e.room = ?1 AND e.offset > ?2 ORDER BY e.offset LIMIT ?3",
    )?;
    let mut rows = statement.query(params![to_sql(room.as_u64()), place(since), limit])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        let event = match row.get_ref(2)?.as_blob_or_null().map_err(sql::SqlError::from)? {
            Some(bytes) => RoomEvent::decode(bytes)?,
            None => RoomEvent::Message(read_message(&row)?),
        };
        let offset = Offset::from_u64(from_sql(row.get(0)?));
        events.push(RoomRecord {
            room,
            offset,
            at: UnixMillis::from_u64(from_sql(row.get(1)?)),
            event,
        });
    }
    Ok(events)
}

/// Reads the message whose columns begin at the fourth.
fn read_message(row: &Row<'_>) -> Result<Message, ReadError> {
    let details = row.get_ref(9)?.as_blob_or_null().map_err(sql::SqlError::from)?;
    let details = MessageDetails::decode(details)?;
    Ok(Message {
        seq: Seq::from_u64(from_sql(row.get(3)?)),
        user: UserId::from_u64(from_sql(row.get(4)?)),
        name: row.get(5)?,
        key: row.get(6)?,
        content_hash: from_sql(row.get(7)?),
        body: row.get(8)?,
        reply_to: details.reply_to,
        mentions: details.mentions,
        mention_all: details.mention_all,
        attachments: details.attachments,
    })
}

/// Reads a user's events inside a snapshot.
pub(super) fn user_events(
    connection: &Connection,
    user: UserId,
    since: Offset,
    limit: u32,
) -> Result<Vec<UserRecord>, ReadError> {
    let mut statement = connection.prepare_cached(
        "SELECT offset, at, data FROM user_events \
         WHERE user = ?1 AND offset > ?2 ORDER BY offset LIMIT ?3",
    )?;
    let rows = statement.query_map(params![to_sql(user.as_u64()), place(since), limit], |row| {
        Ok(UserRecord {
            user,
            offset: Offset::from_u64(from_sql(row.get(0)?)),
            at: UnixMillis::from_u64(from_sql(row.get(1)?)),
            data: row.get(2)?,
            effect: None,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
