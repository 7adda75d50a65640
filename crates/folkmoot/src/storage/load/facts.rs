//! What a room does not keep and asks when somebody acts: who they are to it, the keys they have
//! sent under, whom a name belongs to. Each costs a few rows, however many members the room has.

use althing::Wire;
use serde::{Deserialize, Serialize};

use crate::storage::error::ReadError;
use crate::storage::ids::{Offset, RoomId, Seq, UnixMillis, UserId};
use crate::storage::progress::Stream;
use crate::storage::record::Role;
use crate::storage::sql::{Connection, OptionalExtension, SqlError, params};
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::store::Store;

/// A sender's keys are kept for this long: a phone that was offline for a night still retries.
pub(crate) const KEYS_KEPT_MS: u64 = 24 * 60 * 60 * 1_000;
/// A sender's keys of so many messages are kept regardless of age: a quiet sender's cost nothing.
pub(crate) const KEYS_KEPT: usize = 100;
/// A sender's keys of more messages than this are not kept, whatever their age.
pub(crate) const KEYS_KEPT_MAX: usize = 1_000;

/// What somebody is to a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Standing {
    /// Who.
    pub user: UserId,
    /// The name of their account; empty: there is no such account.
    pub name: String,
    /// Their name to show.
    pub display_name: String,
    /// What they may do; absent: no member.
    pub rights: Option<Rights>,
    /// Kept out.
    pub is_banned: bool,
    /// Of somebody who has left while they were muted: until when they are so if they come back.
    pub kept_mute: Option<UnixMillis>,
}

/// What a member may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Rights {
    /// The role.
    pub role: Role,
    /// Muted until then; absent: not muted.
    pub muted_until: Option<UnixMillis>,
}

/// An idempotency key that must still be recognised.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
pub struct RecentKey {
    /// The key.
    pub key: String,
    /// For which message.
    pub seq: Seq,
    /// That message's event.
    pub offset: Offset,
    /// When.
    pub at: UnixMillis,
    /// The hash of what was sent under it.
    pub content_hash: u64,
}

impl Store {
    /// What some users are to a room, in the order asked for.
    ///
    /// Covers the memberships, roles and bans that were decided before the call, also those whose
    /// records are still on their way to the disk.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn standings(
        &self,
        room: RoomId,
        users: Vec<UserId>,
    ) -> Result<Vec<Standing>, ReadError> {
        // Records of memberships and roles count among their user's, so a busy room is not waited
        // for.
        let streams: Vec<Stream> = users.iter().map(|user| Stream::User(*user)).collect();
        if streams.is_empty() {
            return Ok(Vec::new());
        }
        self.barrier_for(&streams).await?;
        if let [user] = users[..] {
            return self
                .read_one(move |connection| Ok(vec![standing(connection, room, user)?]))
                .await;
        }
        self.read(move |connection| {
            users.into_iter().map(|user| standing(connection, room, user)).collect()
        })
        .await
    }

    /// The keys that a user has sent under in a room, oldest first: those of the last 24 hours and
    /// of the last hundred messages, whichever reaches further back, at most of the last thousand.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn keys_of(
        &self,
        room: RoomId,
        sender: UserId,
        now: UnixMillis,
    ) -> Result<Vec<RecentKey>, ReadError> {
        self.barrier_for(&[Stream::Room(room)]).await?;
        self.read(move |connection| keys(connection, room, sender, now)).await
    }

    /// Whose names these are; those that are nobody's are left out.
    ///
    /// # Errors
    /// [`ReadError`] only if the database fails.
    pub async fn users_named(
        &self,
        names: Vec<String>,
    ) -> Result<Vec<(String, UserId)>, ReadError> {
        self.read(move |connection| {
            let mut statement =
                connection.prepare_cached("SELECT id FROM users WHERE name = ?1")?;
            let mut found = Vec::new();
            for name in names {
                let id = statement.query_row([&name], |row| row.get(0)).optional()?;
                if let Some(id) = id {
                    found.push((name, UserId::from_u64(from_sql(id))));
                }
            }
            Ok(found)
        })
        .await
    }
}

fn standing(connection: &Connection, room: RoomId, user: UserId) -> Result<Standing, ReadError> {
    // Whoever has no account has a row, too.
    let mut statement = connection.prepare_cached(
        "SELECT coalesce(u.name, ''), coalesce(u.display_name, ''), m.role, m.muted_until, \
                EXISTS (SELECT 1 FROM bans b WHERE b.room = ?1 AND b.user = ?2), k.until \
         FROM (SELECT 1) AS one \
         LEFT JOIN users u ON u.id = ?2 \
         LEFT JOIN members m ON m.room = ?1 AND m.user = ?2 \
         LEFT JOIN mutes k ON k.room = ?1 AND k.user = ?2",
    )?;
    let mut rows = statement.query([to_sql(room.as_u64()), to_sql(user.as_u64())])?;
    let row = rows.next()?.ok_or(SqlError::NoRow)?;
    let time = |column: usize| -> Result<_, SqlError> {
        let at = row.get::<Option<i64>>(column)?;
        Ok(at.map(|at| UnixMillis::from_u64(from_sql(at))))
    };
    let (muted_until, kept_mute) = (time(3)?, time(5)?);
    let rights = match row.get::<Option<u32>>(2)? {
        None => None,
        Some(role) => Some(Rights { role: Role::from_number(role)?, muted_until }),
    };
    let (name, display_name) = (row.get(0)?, row.get(1)?);
    Ok(Standing { user, name, display_name, rights, is_banned: row.get(4)?, kept_mute })
}

/// Walks back from the sender's last message until both bounds are passed.
fn keys(
    connection: &Connection,
    room: RoomId,
    sender: UserId,
    now: UnixMillis,
) -> Result<Vec<RecentKey>, ReadError> {
    let first_time_kept = now.as_u64().saturating_sub(KEYS_KEPT_MS);
    let mut statement = connection.prepare_cached(
        "SELECT key, seq, offset, at, content_hash FROM messages INDEXED BY messages_of_sender \
         WHERE room = ?1 AND user = ?2 ORDER BY seq DESC LIMIT ?3",
    )?;
    let place = params![to_sql(room.as_u64()), to_sql(sender.as_u64()), KEYS_KEPT_MAX as i64];
    let mut rows = statement.query(place)?;
    let mut keys = Vec::new();
    let mut messages = 0;
    while let Some(row) = rows.next()? {
        let key = RecentKey {
            key: row.get(0)?,
            seq: Seq::from_u64(from_sql(row.get(1)?)),
            offset: Offset::from_u64(from_sql(row.get(2)?)),
            at: UnixMillis::from_u64(from_sql(row.get(3)?)),
            content_hash: from_sql(row.get(4)?),
        };
        if messages >= KEYS_KEPT && key.at.as_u64() < first_time_kept {
            break;
        }
        messages += 1;
        if !key.key.is_empty() {
            keys.push(key);
        }
    }
    keys.reverse();
    Ok(keys)
}
