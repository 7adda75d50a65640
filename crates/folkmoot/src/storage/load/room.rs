//! What a room's actor needs to come alive.

use super::{events, pins};
use crate::storage::control::{RoomKind, Upload, blockers_in, unsent};
use crate::storage::error::ReadError;
use crate::storage::ids::{Offset, RoomId, Seq, UnixMillis, UserId, WriteEpoch};
use crate::storage::progress::Stream;
use crate::storage::record::RoomRecord;
use crate::storage::sql::{Connection, OptionalExtension, Row, params};
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::store::Store;

/// The latest `@everyone` mentions that are loaded; a badge says no more than this.
const EVERYONE_MENTIONS_MAX: u32 = 1_000;

/// The columns of [`RoomSummary`], in its order.
pub(super) const SUMMARY_COLUMNS: &str = "r.id, r.kind, r.name, r.topic, r.created_at, \
     r.created_by, r.last_offset, r.last_seq, r.member_count, r.first_seq";

/// A room without its people and messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomSummary {
    /// Its id.
    pub id: RoomId,
    /// What it is.
    pub kind: RoomKind,
    /// Its name; empty for a direct room.
    pub name: String,
    /// Its topic.
    pub topic: String,
    /// When it was made.
    pub created_at: UnixMillis,
    /// By whom.
    pub created_by: UserId,
    /// The last event of its stream.
    pub last_offset: Offset,
    /// Its last message.
    pub last_seq: Seq,
    /// The first one that is kept; above the last one if none is.
    pub first_seq: Seq,
    /// How many members it has.
    pub member_count: u64,
}

/// What a room's actor begins with: nothing of it grows with the members.
#[derive(Clone, Debug)]
pub struct RoomSnapshot {
    /// The room.
    pub summary: RoomSummary,
    /// Nobody may write in it.
    pub is_archived: bool,
    /// How many of its members own it.
    pub owners: u64,
    /// The two of a direct room.
    pub pair: Option<(UserId, UserId)>,
    /// Who of the two in a direct room has blocked the other.
    pub blockers: Vec<UserId>,
    /// Messages that mention everyone, latest first, at most 1,000.
    pub everyone_mentions: Vec<Seq>,
    /// The pinned messages.
    pub pins: Vec<Seq>,
    /// Files that wait to be sent by a message of this room.
    pub uploads: Vec<Upload>,
    /// The last events, oldest first.
    pub tail: Vec<RoomRecord>,
    /// The epoch to append under.
    pub epoch: WriteEpoch,
}

impl Store {
    /// Loads a room for its actor, with the last `tail_len` events; `None` if there is no such
    /// room.
    ///
    /// Covers appends still in flight when it is called, so an actor that starts again after a
    /// crash cannot hand out an offset twice.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn load_room(
        &self,
        room: RoomId,
        tail_len: u32,
        now: UnixMillis,
    ) -> Result<Option<RoomSnapshot>, ReadError> {
        // Before the barrier: if an append fails after this, the epoch is stale and says so.
        let epoch = self.write_epoch();
        self.barrier_for(&[Stream::Room(room)]).await?;
        let found =
            self.read(move |connection| snapshot_of(connection, room, tail_len, now)).await?;
        Ok(found.map(|snapshot| RoomSnapshot { epoch, ..snapshot }))
    }

    /// Reads a room without its people and messages.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn room(&self, room: RoomId) -> Result<Option<RoomSummary>, ReadError> {
        self.barrier_for(&[Stream::Room(room)]).await?;
        self.read(move |connection| summary(connection, room)).await
    }
}

/// Reads a room inside a snapshot; under which epoch to append is not for the database to say.
pub(crate) fn snapshot_of(
    connection: &Connection,
    room: RoomId,
    tail_len: u32,
    now: UnixMillis,
) -> Result<Option<RoomSnapshot>, ReadError> {
    let Some(summary) = summary(connection, room)? else { return Ok(None) };
    let since = Offset::from_u64(summary.last_offset.as_u64().saturating_sub(u64::from(tail_len)));
    Ok(Some(RoomSnapshot {
        is_archived: is_archived(connection, room)?,
        owners: owners(connection, room)?,
        pair: pair(connection, room)?,
        blockers: blockers_in(connection, room)?,
        everyone_mentions: everyone_mentions(connection, room)?,
        pins: pins::pinned(connection, room)?,
        uploads: unsent(connection, room, now)?,
        tail: events::room_events(connection, room, since, tail_len)?,
        summary,
        epoch: WriteEpoch::default(),
    }))
}

fn summary(connection: &Connection, room: RoomId) -> Result<Option<RoomSummary>, ReadError> {
    let sql =
        format!("SELECT {SUMMARY_COLUMNS} FROM rooms r WHERE r.id = ?1 AND r.deleted_at IS NULL");
    let mut statement = connection.prepare_cached(&sql)?;
    let found =
        statement.query_row([to_sql(room.as_u64())], |row| Ok(read_summary(row))).optional()?;
    found.transpose()
}

/// Reads a summary from a row that begins with [`SUMMARY_COLUMNS`].
pub(super) fn read_summary(row: &Row<'_>) -> Result<RoomSummary, ReadError> {
    Ok(RoomSummary {
        id: RoomId::from_u64(from_sql(row.get(0)?)),
        kind: RoomKind::from_number(row.get(1)?)?,
        name: row.get(2)?,
        topic: row.get(3)?,
        created_at: UnixMillis::from_u64(from_sql(row.get(4)?)),
        created_by: UserId::from_u64(from_sql(row.get(5)?)),
        last_offset: Offset::from_u64(from_sql(row.get(6)?)),
        last_seq: Seq::from_u64(from_sql(row.get(7)?)),
        member_count: from_sql(row.get(8)?),
        first_seq: Seq::from_u64(from_sql(row.get(9)?)),
    })
}

fn is_archived(connection: &Connection, room: RoomId) -> Result<bool, ReadError> {
    let sql = "SELECT archived_at IS NOT NULL FROM rooms WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_row([to_sql(room.as_u64())], |row| row.get(0))?)
}

fn owners(connection: &Connection, room: RoomId) -> Result<u64, ReadError> {
    // A partial index holds the owners only.
    let mut statement =
        connection.prepare_cached("SELECT count(*) FROM members WHERE room = ?1 AND role = 3")?;
    Ok(from_sql(statement.query_row([to_sql(room.as_u64())], |row| row.get(0))?))
}

fn pair(connection: &Connection, room: RoomId) -> Result<Option<(UserId, UserId)>, ReadError> {
    let mut statement =
        connection.prepare_cached("SELECT low, high FROM directs WHERE room = ?1")?;
    let user = |id: i64| UserId::from_u64(from_sql(id));
    let pair = statement
        .query_row([to_sql(room.as_u64())], |row| Ok((user(row.get(0)?), user(row.get(1)?))));
    Ok(pair.optional()?)
}

fn everyone_mentions(connection: &Connection, room: RoomId) -> Result<Vec<Seq>, ReadError> {
    let mut statement = connection.prepare_cached(
        "SELECT seq FROM everyone_mentions WHERE room = ?1 ORDER BY seq DESC LIMIT ?2",
    )?;
    let rows = statement
        .query_map(params![to_sql(room.as_u64()), EVERYONE_MENTIONS_MAX], |row| {
            Ok(Seq::from_u64(from_sql(row.get(0)?)))
        })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
