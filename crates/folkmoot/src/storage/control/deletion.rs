//! Deleting rooms and accounts: what is decided at once, and what is still to be done.
//!
//! The first transaction makes the room or account unreachable and notes that it has to go; from
//! then on nothing takes it back. The rest is erased in small steps (see `erasure`), each of which
//! can be done twice; the note stays until all of it is gone, so that a crash forgets nothing.

use super::accounts::{DELETED_MARK, existing};
use super::administration::{LAST_ADMINISTRATOR, end_resets, has_administrator, sign_out};
use super::moderation::{ModerationAction, NewModeration, note};
use super::rooms::{RoomKind, log_failure};
use crate::storage::error::{ControlError, ReadError};
use crate::storage::ids::{RoomId, UnixMillis, UserId};
use crate::storage::record::Role;
use crate::storage::sql::{self, Connection, OptionalExtension, Row, params};
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::store::Store;

/// Rooms named in one refusal.
const OWNED_ROOMS_NAMED_MAX: u32 = 20;

/// What is being deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletionTarget {
    /// A room with everything in it.
    Room(RoomId),
    /// An account.
    Account {
        /// Whose.
        user: UserId,
        /// Whether each of its messages is deleted, or stays without a name.
        erase: bool,
    },
}

/// A deletion that was decided and is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// Rises in the order in which they were decided.
    pub id: u64,
    /// What goes.
    pub target: DeletionTarget,
}

/// In which right a room is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// As one of its owners, which is checked.
    Owner,
    /// As an administrator of the server.
    Administrator,
    /// Because its last member's account is deleted.
    LastMember,
}

/// An account to delete.
#[derive(Clone, Debug)]
pub struct AccountDeletion {
    /// Whose.
    pub user: UserId,
    /// Who wants it: the user, or an administrator.
    pub by: UserId,
    /// The hash that the password was compared with; absent: an administrator needs none.
    pub verified_hash: Option<String>,
    /// Whether its messages are deleted too.
    pub erase: bool,
    /// Whether rooms without another owner get one; else they are a reason to refuse.
    pub hand_over: bool,
    /// Now.
    pub at: UnixMillis,
}

/// What came of deciding to delete an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountDeletionBegun {
    /// It is out, and the rest follows.
    Yes,
    /// Nothing changed: others are in these rooms, and nobody else owns them.
    Owns(Vec<String>),
}

/// A room that somebody is in who is to leave it for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tie {
    /// The room.
    pub room: RoomId,
    /// Nobody else is in it.
    pub is_alone: bool,
    /// Who becomes its owner if it has no other.
    pub successor: Option<UserId>,
}

impl Store {
    /// What is to be erased, in the order in which it was decided.
    ///
    /// # Errors
    /// [`ReadError`] only if the database fails.
    pub async fn deletions(&self) -> Result<Vec<Deletion>, ReadError> {
        self.read(|connection| {
            let sql = "SELECT id, room, user, erase FROM deletions ORDER BY id";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map([], read_deletion)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Decides that a room is deleted: nobody gets at it any more, and no invite leads there.
    ///
    /// # Errors
    /// [`ControlError::NotFound`] if there is no such room (any more), [`ControlError::NotAllowed`]
    /// for a direct conversation and for who does not own it.
    pub async fn begin_room_deletion(
        &self,
        room: RoomId,
        by: UserId,
        authority: Authority,
        at: UnixMillis,
    ) -> Result<(), ControlError> {
        // A change of roles may still be on its way from the log.
        self.after_log(room).await?;
        self.control(move |connection| {
            let id = to_sql(room.as_u64());
            let sql = "SELECT kind FROM rooms WHERE id = ?1 AND deleted_at IS NULL";
            let kind: Option<u8> = connection.query_row(sql, [id], |row| row.get(0)).optional()?;
            let kind = kind.ok_or(ControlError::NotFound("room"))?;
            let is_direct = kind == RoomKind::Direct as u8;
            if is_direct && authority != Authority::LastMember {
                let text = "a direct conversation cannot be deleted; it goes with both accounts";
                return Err(ControlError::NotAllowed(text));
            }
            if authority == Authority::Owner && !owns(connection, room, by)? {
                return Err(ControlError::NotAllowed("only an owner may delete the room"));
            }
            let sql = "UPDATE rooms SET deleted_at = ?2 WHERE id = ?1";
            connection.execute(sql, [id, to_sql(at.as_u64())])?;
            connection.execute("DELETE FROM invites WHERE room = ?1", [id])?;
            connection.execute("INSERT INTO deletions (room, erase) VALUES (?1, TRUE)", [id])?;
            if authority != Authority::LastMember {
                let action = ModerationAction::RoomDeleted;
                note(connection, NewModeration::in_room(at, by, action, room))?;
            }
            Ok(())
        })
        .await
    }

    /// Decides that an account is deleted: its devices are signed out, nobody can sign in to it,
    /// its names and password are erased, its invites end.
    ///
    /// # Errors
    /// [`ControlError::NotFound`] if there is no such account (any more),
    /// [`ControlError::NotAllowed`] for the last administrator and if the password was changed
    /// since it was verified.
    pub async fn begin_account_deletion(
        &self,
        new: AccountDeletion,
    ) -> Result<AccountDeletionBegun, ControlError> {
        // Who owns which room may still be on its way from the log.
        self.barrier().await.map_err(|error| log_failure(&error))?;
        self.control(move |connection| {
            let account = existing(connection, new.user)?;
            let id = to_sql(new.user.as_u64());
            let sql = "SELECT password_hash FROM users WHERE id = ?1";
            let hash: String = connection.query_row(sql, [id], |row| row.get(0))?;
            if new.verified_hash.is_some_and(|verified| verified != hash) {
                return Err(ControlError::NotAllowed("the password has just been changed"));
            }
            if !new.hand_over {
                let owned = only_owned(connection, new.user)?;
                if !owned.is_empty() {
                    return Ok(AccountDeletionBegun::Owns(owned));
                }
            }
            connection.execute(
                "UPDATE users SET name = ?2, display_name = '', password_hash = '', \
                                  status_emoji = '', status_text = '', status_until = NULL, \
                                  is_admin = FALSE, disabled_at = ?3, deleted_at = ?3 WHERE id = ?1",
                params![id, format!("{DELETED_MARK}{}", new.user), to_sql(new.at.as_u64())],
            )?;
            if account.is_admin {
                end_resets(connection)?;
                if !has_administrator(connection)? {
                    return Err(LAST_ADMINISTRATOR);
                }
            }
            sign_out(connection, new.user)?;
            connection.execute("DELETE FROM name_words WHERE user = ?1", [id])?;
            connection.execute("DELETE FROM password_resets WHERE user = ?1", [id])?;
            connection.execute("DELETE FROM invites WHERE by = ?1", [id])?;
            connection.execute(
                "INSERT INTO deletions (user, erase) VALUES (?1, ?2)",
                params![id, new.erase],
            )?;
            let action = ModerationAction::AccountDeleted;
            note(connection, NewModeration::of_user(new.at, new.by, action, new.user))?;
            Ok(AccountDeletionBegun::Yes)
        })
        .await
    }

    /// A room that `user` is still in and that is not deleted itself; the first one by id.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn first_tie(&self, user: UserId) -> Result<Option<Tie>, ReadError> {
        self.barrier().await?;
        self.read(move |connection| {
            let sql = "SELECT m.room, r.member_count, \
                         (SELECT o.user FROM members o JOIN users u ON u.id = o.user \
                          WHERE o.room = m.room AND u.deleted_at IS NULL \
                          ORDER BY o.role DESC, o.joined_at, o.user LIMIT 1) \
                       FROM members m JOIN rooms r ON r.id = m.room \
                       WHERE m.user = ?1 AND r.deleted_at IS NULL ORDER BY m.room LIMIT 1";
            let mut statement = connection.prepare_cached(sql)?;
            let found = statement.query_row([to_sql(user.as_u64())], |row| {
                let successor: Option<i64> = row.get(2)?;
                Ok(Tie {
                    room: RoomId::from_u64(from_sql(row.get(0)?)),
                    is_alone: row.get::<i64>(1)? <= 1,
                    successor: successor.map(|user| UserId::from_u64(from_sql(user))),
                })
            });
            Ok(found.optional()?)
        })
        .await
    }

    /// The other one of a direct conversation, also when their account is deleted.
    ///
    /// # Errors
    /// [`ReadError`] only if the database fails.
    pub async fn direct_peer(
        &self,
        room: RoomId,
        user: UserId,
    ) -> Result<Option<UserId>, ReadError> {
        self.read(move |connection| {
            let sql =
                "SELECT CASE WHEN low = ?2 THEN high ELSE low END FROM directs WHERE room = ?1";
            let mut statement = connection.prepare_cached(sql)?;
            let place = [to_sql(room.as_u64()), to_sql(user.as_u64())];
            let found = statement.query_row(place, |row| row.get(0)).optional()?;
            Ok(found.map(|peer: i64| UserId::from_u64(from_sql(peer))))
        })
        .await
    }
}

fn owns(connection: &Connection, room: RoomId, user: UserId) -> sql::Result<bool> {
    connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM members WHERE room = ?1 AND user = ?2 AND role = ?3)",
        params![to_sql(room.as_u64()), to_sql(user.as_u64()), Role::Owner.number()],
        |row| row.get(0),
    )
}

/// The names of rooms that others are in and nobody else owns.
fn only_owned(connection: &Connection, user: UserId) -> sql::Result<Vec<String>> {
    let mut statement = connection.prepare_cached(
        "SELECT r.name FROM members m JOIN rooms r ON r.id = m.room \
         WHERE m.user = ?1 AND m.role = ?2 AND r.member_count > 1 AND r.deleted_at IS NULL \
         AND NOT EXISTS (SELECT 1 FROM members o \
                         WHERE o.room = m.room AND o.role = ?2 AND o.user <> m.user) \
         ORDER BY r.name LIMIT ?3",
    )?;
    let place = params![to_sql(user.as_u64()), Role::Owner.number(), OWNED_ROOMS_NAMED_MAX];
    statement.query_map(place, |row| row.get(0))?.collect()
}

fn read_deletion(row: &Row<'_>) -> sql::Result<Deletion> {
    let room: Option<i64> = row.get(1)?;
    let target = match room {
        Some(room) => DeletionTarget::Room(RoomId::from_u64(from_sql(room))),
        None => DeletionTarget::Account {
            user: UserId::from_u64(from_sql(row.get(2)?)),
            erase: row.get(3)?,
        },
    };
    Ok(Deletion { id: from_sql(row.get(0)?), target })
}
