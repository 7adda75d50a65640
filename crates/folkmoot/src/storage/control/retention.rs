//! How long messages are kept: for the whole server, and for rooms of which something else was said;
//! and which of them are due to go.
//!
//! A rule is JSON in the database, so that `folkmoot retention` can set one beside a running server,
//! which reads it anew whenever it looks.

use serde::{Deserialize, Serialize};

use crate::storage::error::{ControlError, ReadError};
use crate::storage::ids::{RoomId, Seq, UnixMillis, UserId};
use crate::storage::progress::Stream;
use crate::storage::record::MessageDetails;
use crate::storage::sql::{self, Connection, OptionalExtension, params};
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::store::Store;

/// The setting with the server's rule.
const SETTING: &str = "retention";
/// Messages deleted by one record: some ten milliseconds, for which other writes wait.
pub(crate) const EXPIRED_AT_ONCE: u64 = 1_000;
/// Rooms looked at in one read.
const ROOMS_LOOKED_AT: u32 = 500;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// How long messages are kept; without a limit for ever. What is beyond either limit goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// Days after which a message goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub days: Option<u32>,
    /// How many of the newest messages of a room stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
}

/// A room for which something else was said than for the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomRetention {
    /// Which.
    pub room: RoomId,
    /// Its name; empty for a direct room.
    pub name: String,
    /// What was said.
    pub retention: Retention,
}

/// The oldest messages of a room, of which it is time to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// Where.
    pub room: RoomId,
    /// All up to this one go; more may be due afterwards.
    pub up_to: Seq,
    /// How many they are.
    pub messages: u64,
    /// Whom they mention.
    pub mentions: Vec<(UserId, Seq)>,
}

/// Rooms with something due, and where the next page begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DuePage {
    /// Those of this page.
    pub rooms: Vec<RoomId>,
    /// Absent: this was the last page.
    pub next: Option<RoomId>,
}

/// Messages that have left a room and may still have words in the index of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unindexed {
    /// Where.
    pub room: RoomId,
    /// From this one on.
    pub from: Seq,
    /// Up to and without this one.
    pub until: Seq,
}

impl Store {
    /// The rule of the server.
    ///
    /// # Errors
    /// [`ReadError`] only if the database fails.
    pub async fn retention(&self) -> Result<Retention, ReadError> {
        self.read(|connection| Ok(of_server(connection)?)).await
    }

    /// Sets it.
    ///
    /// # Errors
    /// What every control transaction can meet.
    pub async fn set_retention(&self, retention: Retention) -> Result<(), ControlError> {
        self.control(move |connection| Ok(set_of_server(connection, retention)?)).await
    }

    /// The rooms with a rule of their own, by name.
    ///
    /// # Errors
    /// [`ReadError`] only if the database fails.
    pub async fn room_retentions(&self) -> Result<Vec<RoomRetention>, ReadError> {
        self.read(|connection| Ok(of_rooms(connection)?)).await
    }

    /// Gives a room a rule of its own, or that of the server again.
    ///
    /// # Errors
    /// [`ControlError::NotFound`] if there is no such room.
    pub async fn set_room_retention(
        &self,
        room: RoomId,
        retention: Option<Retention>,
    ) -> Result<(), ControlError> {
        self.control(move |connection| match set_of_room(connection, room, retention)? {
            true => Ok(()),
            false => Err(ControlError::NotFound("room")),
        })
        .await
    }

    /// Rooms after one, by id, in which messages are due at `now`.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn rooms_with_due(
        &self,
        after: Option<RoomId>,
        now: UnixMillis,
    ) -> Result<DuePage, ReadError> {
        // What was said just now may push out what was said before.
        self.barrier().await?;
        self.read(move |connection| Ok(rooms_with_due(connection, after, now)?)).await
    }

    /// The oldest messages of a room that are due at `now`; `None` if none is.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn due(&self, room: RoomId, now: UnixMillis) -> Result<Option<Due>, ReadError> {
        self.barrier_for(&[Stream::Room(room)]).await?;
        self.read(move |connection| {
            let Some(up_to) = due_up_to(connection, room, now)? else { return Ok(None) };
            let (mentions, messages) = mentions(connection, room, up_to)?;
            Ok(Some(Due { room, up_to, messages, mentions }))
        })
        .await
    }

    /// Rooms from which messages have gone whose words may still be in the index.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn unindexed(&self) -> Result<Vec<Unindexed>, ReadError> {
        self.read(|connection| {
            let sql = "SELECT id, indexed_from, first_seq FROM rooms \
                       WHERE first_seq > indexed_from AND deleted_at IS NULL ORDER BY id LIMIT ?1";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map([ROOMS_LOOKED_AT], |row| {
                Ok(Unindexed {
                    room: RoomId::from_u64(from_sql(row.get(0)?)),
                    from: Seq::from_u64(from_sql(row.get(1)?)),
                    until: Seq::from_u64(from_sql(row.get(2)?)),
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Notes that the words of a room's messages before `until` have left the index.
    ///
    /// # Errors
    /// What every control transaction can meet.
    pub async fn note_indexed_from(&self, room: RoomId, until: Seq) -> Result<(), ControlError> {
        self.control(move |connection| {
            let sql = "UPDATE rooms SET indexed_from = max(indexed_from, ?2) WHERE id = ?1";
            let place = [to_sql(room.as_u64()), to_sql(until.as_u64())];
            connection.prepare_cached(sql)?.execute(place)?;
            Ok(())
        })
        .await
    }
}

/// The rule of the server, inside a snapshot.
pub(crate) fn of_server(connection: &Connection) -> sql::Result<Retention> {
    let sql = "SELECT value FROM settings WHERE name = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let value: Option<String> = statement.query_row([SETTING], |row| row.get(0)).optional()?;
    Ok(value.as_deref().and_then(parse).unwrap_or_default())
}

/// Sets the rule of the server.
pub(crate) fn set_of_server(connection: &Connection, rule: Retention) -> sql::Result<()> {
    let sql = "INSERT INTO settings VALUES (?1, ?2) \
 ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    connection.execute(sql, [SETTING, &text(rule)]).map(drop)
}

/// The rooms with a rule of their own.
pub(crate) fn of_rooms(connection: &Connection) -> sql::Result<Vec<RoomRetention>> {
    let sql = "SELECT id, name, retention FROM rooms \
               WHERE retention IS NOT NULL AND deleted_at IS NULL ORDER BY name, id";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| {
        let rule: String = row.get(2)?;
        Ok(RoomRetention {
            room: RoomId::from_u64(from_sql(row.get(0)?)),
            name: row.get(1)?,
            retention: parse(&rule).unwrap_or_default(),
        })
    })?;
    rows.collect()
}

/// Sets the rule of a room; says whether there is such a room.
pub(crate) fn set_of_room(
    connection: &Connection,
    room: RoomId,
    rule: Option<Retention>,
) -> sql::Result<bool> {
    let sql = "UPDATE rooms SET retention = ?2 WHERE id = ?1 AND deleted_at IS NULL";
    let changed = connection.execute(sql, params![to_sql(room.as_u64()), rule.map(text)])?;
    Ok(changed > 0)
}

fn text(rule: Retention) -> String {
    serde_json::to_string(&rule).expect("two numbers are JSON")
}

/// A rule that this program does not understand deletes nothing.
fn parse(text: &str) -> Option<Retention> {
    serde_json::from_str(text)
        .inspect_err(|error| tracing::error!(%error, text, "a rule of retention is not understood"))
        .ok()
}

fn rooms_with_due(
    connection: &Connection,
    after: Option<RoomId>,
    now: UnixMillis,
) -> sql::Result<DuePage> {
    let sql = "SELECT id FROM rooms WHERE (CAST(?1 AS BIGINT) IS NULL OR id > ?1) AND deleted_at IS NULL \
               AND last_seq >= first_seq ORDER BY id LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let after = after.map(|room| to_sql(room.as_u64()));
    let rows = statement.query_map(params![after, ROOMS_LOOKED_AT], |row| row.get(0))?;
    let ids: Vec<i64> = rows.collect::<Result<_, _>>()?;
    let mut page = DuePage::default();
    for id in &ids {
        let room = RoomId::from_u64(from_sql(*id));
        if due_up_to(connection, room, now)?.is_some() {
            page.rooms.push(room);
        }
    }
    let is_full = ids.len() == ROOMS_LOOKED_AT as usize;
    page.next = ids.last().filter(|_| is_full).map(|id| RoomId::from_u64(from_sql(*id)));
    Ok(page)
}

/// The last message of the next batch that is due in a room.
fn due_up_to(connection: &Connection, room: RoomId, now: UnixMillis) -> sql::Result<Option<Seq>> {
    let sql = "SELECT first_seq, last_seq, retention FROM rooms \
               WHERE id = ?1 AND deleted_at IS NULL";
    let id = to_sql(room.as_u64());
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement
        .query_row([id], |row| {
            let rule: Option<String> = row.get(2)?;
            Ok((from_sql(row.get(0)?), from_sql(row.get(1)?), rule))
        })
        .optional()?;
    let Some((first, last, rule)) = found else { return Ok(None) };
    let rule = match rule {
        Some(rule) => parse(&rule).unwrap_or_default(),
        None => of_server(connection)?,
    };
    let by_count = rule.messages.map(|kept| last.saturating_sub(kept));
    let by_age = match rule.days {
        Some(days) => {
            let before = now.as_u64().saturating_sub(u64::from(days) * DAY_MS);
            older_than(connection, id, before, now.as_u64())?
        }
        None => None,
    };
    let up_to = by_count.max(by_age).unwrap_or_default().min(first + EXPIRED_AT_ONCE - 1);
    Ok((up_to >= first).then(|| Seq::from_u64(up_to)))
}

/// The last of the oldest messages that were all sent before a moment, of one batch. One that says
/// it is of a time to come was sent when the clock was ahead: it is as old as the one behind it,
/// however many of them there are.
fn older_than(
    connection: &Connection,
    room: i64,
    before: u64,
    now: u64,
) -> sql::Result<Option<u64>> {
    let mut statement = connection.prepare_cached(
        "SELECT seq, at FROM messages WHERE room = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
    )?;
    let (mut last, mut after) = (None, 0);
    loop {
        let mut rows = statement.query([room, after, to_sql(EXPIRED_AT_ONCE)])?;
        let mut looked = 0;
        while let Some(row) = rows.next()? {
            (after, looked) = (row.get(0)?, looked + 1);
            let at = from_sql(row.get(1)?);
            if at < before {
                last = Some(from_sql(after));
            } else if at <= now {
                return Ok(last);
            }
        }
        if last.is_some() || looked < EXPIRED_AT_ONCE {
            return Ok(last);
        }
    }
}

/// Whom the messages up to one mention, and how many they are.
fn mentions(
    connection: &Connection,
    room: RoomId,
    up_to: Seq,
) -> Result<(Vec<(UserId, Seq)>, u64), ReadError> {
    let mut statement = connection
        .prepare_cached("SELECT seq, details FROM messages WHERE room = ?1 AND seq <= ?2")?;
    let mut rows = statement.query([to_sql(room.as_u64()), to_sql(up_to.as_u64())])?;
    let (mut mentions, mut count) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let seq = Seq::from_u64(from_sql(row.get(0)?));
        let details: Option<Vec<u8>> = row.get(1)?;
        let details = MessageDetails::decode(details.as_deref()).unwrap_or_default();
        mentions.extend(details.mentions.into_iter().map(|user| (user, seq)));
        count += 1;
    }
    Ok((mentions, count))
}
