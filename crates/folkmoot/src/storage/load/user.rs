//! What a user's actor needs to come alive.

use std::collections::HashMap;

use super::{RoomSummary, events, room};
use crate::storage::control::{Account, account, blocked_ids};
use crate::storage::error::ReadError;
use crate::storage::ids::{Offset, RoomId, Seq, UnixMillis, UserId, WriteEpoch};
use crate::storage::progress::Stream;
use crate::storage::record::{Notify, Role, UserRecord};
use crate::storage::sql::Connection;
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::store::Store;

/// A room from the side of one of its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserRoom {
    /// The room.
    pub summary: RoomSummary,
    /// What the user may do there.
    pub role: Role,
    /// Muted until then; absent: not muted.
    pub muted_until: Option<UnixMillis>,
    /// Read up to and including this message.
    pub read_seq: Seq,
    /// What the user wants to hear of it.
    pub notify: Notify,
    /// Unread messages that mention the user by name, oldest first, at most 1,000.
    pub mentions: Vec<Seq>,
    /// The other one of a direct room.
    pub peer: Option<UserId>,
    /// Off the user's list: nothing was said since it was hidden.
    pub is_hidden: bool,
}

/// Everything that a user's actor keeps in memory.
#[derive(Clone, Debug)]
pub struct UserSnapshot {
    /// The account.
    pub account: Account,
    /// The last event of the user's stream.
    pub last_offset: Offset,
    /// The last events, oldest first.
    pub tail: Vec<UserRecord>,
    /// The rooms the user is in, by id.
    pub rooms: Vec<UserRoom>,
    /// Whom the user has blocked.
    pub blocked: Vec<UserId>,
    /// The epoch to append under.
    pub epoch: WriteEpoch,
}

impl Store {
    /// Loads a user for its actor, with the last `tail_len` events; `None` if there is no such
    /// user.
    ///
    /// The rooms' own numbers may lag behind: only rooms off the list are waited for, because
    /// whether they are back follows from their last message.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn load_user(
        &self,
        user: UserId,
        tail_len: u32,
    ) -> Result<Option<UserSnapshot>, ReadError> {
        // Before the barrier: if an append fails after this, the epoch is stale and says so.
        let epoch = self.write_epoch();
        self.barrier_for(&[Stream::User(user)]).await?;
        let mut streams = self
            .read_one(move |connection| {
                let mut statement =
                    connection.prepare_cached("SELECT room FROM hidden_rooms WHERE user = ?1")?;
                let rows = statement.query_map([to_sql(user.as_u64())], |row| {
                    Ok(Stream::Room(RoomId::from_u64(from_sql(row.get(0)?))))
                })?;
                Ok(rows.collect::<Result<Vec<_>, _>>()?)
            })
            .await?;
        // Also keeps the list from being empty, which would mean everything.
        streams.push(Stream::User(user));
        self.barrier_for(&streams).await?;
        self.read(move |connection| load(connection, user, tail_len, epoch)).await
    }
}

fn load(
    connection: &Connection,
    user: UserId,
    tail_len: u32,
    epoch: WriteEpoch,
) -> Result<Option<UserSnapshot>, ReadError> {
    // Nothing happens to somebody who is gone.
    let Some(account) = account(connection, user)?.filter(|account| !account.is_deleted()) else {
        return Ok(None);
    };
    let last_offset = connection
        .prepare_cached("SELECT last_offset FROM users WHERE id = ?1")?
        .query_row([to_sql(user.as_u64())], |row| Ok(Offset::from_u64(from_sql(row.get(0)?))))?;
    let since = Offset::from_u64(last_offset.as_u64().saturating_sub(u64::from(tail_len)));
    let tail = events::user_events(connection, user, since, tail_len)?;
    let rooms = rooms(connection, user)?;
    let blocked = blocked_ids(connection, user)?;
    Ok(Some(UserSnapshot { account, last_offset, tail, rooms, blocked, epoch }))
}

fn rooms(connection: &Connection, user: UserId) -> Result<Vec<UserRoom>, ReadError> {
    let sql = format!(
        "SELECT {}, m.role, m.muted_until, coalesce(s.read_seq, 0), coalesce(s.notify, 1), \
                (SELECT CASE WHEN d.low = ?1 THEN d.high ELSE d.low END FROM directs d WHERE d.room = r.id), \
                coalesce(h.seq >= r.last_seq, FALSE) \
         FROM members m JOIN rooms r ON r.id = m.room \
         LEFT JOIN read_states s ON s.user = m.user AND s.room = m.room \
         LEFT JOIN hidden_rooms h ON h.user = m.user AND h.room = m.room \
         WHERE m.user = ?1 ORDER BY r.id",
        room::SUMMARY_COLUMNS
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([to_sql(user.as_u64())])?;
    let mut mentions = mentions(connection, user)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let summary = room::read_summary(&row)?;
        let read_seq = Seq::from_u64(from_sql(row.get(12)?));
        let mentions = mentions.remove(&summary.id).unwrap_or_default();
        let mentions = mentions.into_iter().filter(|seq| *seq > read_seq).collect();
        found.push(UserRoom {
            summary,
            role: Role::from_number(row.get(10)?)?,
            muted_until: row.get::<Option<i64>>(11)?.map(|at| UnixMillis::from_u64(from_sql(at))),
            read_seq,
            notify: Notify::from_number(row.get(13)?)?,
            mentions,
            peer: row.get::<Option<i64>>(14)?.map(|peer| UserId::from_u64(from_sql(peer))),
            is_hidden: row.get(15)?,
        });
    }
    Ok(found)
}

/// The mentions of a user by room, oldest first.
fn mentions(connection: &Connection, user: UserId) -> Result<HashMap<RoomId, Vec<Seq>>, ReadError> {
    let mut statement = connection
        .prepare_cached("SELECT room, seq FROM mentions WHERE user = ?1 ORDER BY room, seq")?;
    let mut rows = statement.query([to_sql(user.as_u64())])?;
    let mut mentions: HashMap<RoomId, Vec<Seq>> = HashMap::new();
    while let Some(row) = rows.next()? {
        let room = RoomId::from_u64(from_sql(row.get(0)?));
        mentions.entry(room).or_default().push(Seq::from_u64(from_sql(row.get(1)?)));
    }
    Ok(mentions)
}
