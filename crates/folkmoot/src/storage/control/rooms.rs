//! Making rooms, and lifting bans. Everything else that happens in a room goes through the log.

use super::moderation::{ModerationAction, NewModeration, note};
use super::privacy::has_blocked;
use crate::storage::error::{ControlError, ReadError};
use crate::storage::ids::{Offset, RoomId, UnixMillis, UserId};
use crate::storage::progress::Stream;
use crate::storage::record::{RecordError, Role, RoomEvent};
use crate::storage::sql::{Connection, OptionalExtension, params};
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::store::Store;

/// What a room is. Stored by number; never renumber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RoomKind {
    /// Has a name, an owner and invites.
    Room = 1,
    /// Two people talking.
    Direct = 2,
}

impl RoomKind {
    /// The kind stored under a number.
    pub(crate) fn from_number(number: u32) -> Result<Self, RecordError> {
        match number {
            1 => Ok(Self::Room),
            2 => Ok(Self::Direct),
            _ => Err(RecordError::UnknownNumber { of: "RoomKind", number }),
        }
    }
}

/// A room to make.
#[derive(Clone, Debug)]
pub struct NewRoom {
    /// A fresh id.
    pub id: RoomId,
    /// Its name.
    pub name: String,
    /// Its topic.
    pub topic: String,
    /// Who makes it and owns it.
    pub owner: UserId,
    /// Now.
    pub at: UnixMillis,
}

/// A direct room to make, unless the two have one.
#[derive(Clone, Debug)]
pub struct NewDirectRoom {
    /// A fresh id, used if there is none yet.
    pub id: RoomId,
    /// Who opens it.
    pub opener: UserId,
    /// The other one.
    pub peer: UserId,
    /// Now.
    pub at: UnixMillis,
}

/// The one direct room of two people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectRoom {
    /// The room.
    pub room: RoomId,
    /// Whether it was made just now.
    pub is_new: bool,
}

impl Store {
    /// Makes a room; its stream begins with the owner's `Joined` at offset 1.
    ///
    /// # Errors
    /// [`ControlError::NotFound`] if there is no such owner.
    pub async fn create_room(&self, new: NewRoom) -> Result<(), ControlError> {
        self.control(move |connection| {
            insert_room(connection, &new, RoomKind::Room)?;
            join(connection, new.id, new.owner, Role::Owner, new.at)
        })
        .await
    }

    /// Gives the direct room of two people, making it if needed. Its stream begins with both
    /// `Joined`.
    ///
    /// # Errors
    /// [`ControlError::NotFound`] if one of the accounts does not exist,
    /// [`ControlError::NotAllowed`] if there is no room yet and the other one has blocked the
    /// opener.
    pub async fn open_direct_room(&self, new: NewDirectRoom) -> Result<DirectRoom, ControlError> {
        self.control(move |connection| {
            let low = to_sql(new.opener.min(new.peer).as_u64());
            let high = to_sql(new.opener.max(new.peer).as_u64());
            let found = connection
                .query_row(
                    "SELECT room FROM directs WHERE low = ?1 AND high = ?2",
                    [low, high],
                    |row| row.get(0),
                )
                .optional()?;
            if let Some(room) = found {
                return Ok(DirectRoom { room: RoomId::from_u64(from_sql(room)), is_new: false });
            }
            if has_blocked(connection, new.peer, new.opener)? {
                return Err(ControlError::NotAllowed("they take no messages from you"));
            }
            connection.execute(
                "INSERT INTO directs VALUES (?1, ?2, ?3)",
                [low, high, to_sql(new.id.as_u64())],
            )?;
            let (name, topic) = (String::new(), String::new());
            let room = NewRoom { id: new.id, name, topic, owner: new.opener, at: new.at };
            insert_room(connection, &room, RoomKind::Direct)?;
            join(connection, new.id, new.opener, Role::Member, new.at)?;
            if new.peer != new.opener {
                join(connection, new.id, new.peer, Role::Member, new.at)?;
            }
            Ok(DirectRoom { room: new.id, is_new: true })
        })
        .await
    }

    /// Keeps a user who is no member out of a room. A member is banned by a `Left` event.
    ///
    /// # Errors
    /// What every control transaction can meet.
    pub async fn ban(
        &self,
        room: RoomId,
        user: UserId,
        by: UserId,
        at: UnixMillis,
    ) -> Result<(), ControlError> {
        self.after_log(room).await?;
        self.control(move |connection| {
            connection.execute(
                "INSERT INTO bans VALUES (?1, ?2, ?3, ?4) \
 ON CONFLICT (room, user) DO UPDATE SET by = excluded.by, at = excluded.at",
                [
                    to_sql(room.as_u64()),
                    to_sql(user.as_u64()),
                    to_sql(by.as_u64()),
                    to_sql(at.as_u64()),
                ],
            )?;
            let entry = NewModeration::in_room(at, by, ModerationAction::Banned, room);
            note(connection, NewModeration { user: Some(user), ..entry })?;
            Ok(())
        })
        .await
    }

    /// Lets a banned user come back. Says whether there was a ban.
    ///
    /// # Errors
    /// What every control transaction can meet.
    pub async fn unban(
        &self,
        room: RoomId,
        user: UserId,
        by: UserId,
        at: UnixMillis,
    ) -> Result<bool, ControlError> {
        self.after_log(room).await?;
        self.control(move |connection| {
            let removed = connection.execute(
                "DELETE FROM bans WHERE room = ?1 AND user = ?2",
                [to_sql(room.as_u64()), to_sql(user.as_u64())],
            )?;
            if removed == 0 {
                return Ok(false);
            }
            let entry = NewModeration::in_room(at, by, ModerationAction::Unbanned, room);
            note(connection, NewModeration { user: Some(user), ..entry })?;
            Ok(true)
        })
        .await
    }

    /// A ban in the log's tail would undo a transaction that overtakes it.
    pub(super) async fn after_log(&self, room: RoomId) -> Result<(), ControlError> {
        self.barrier_for(&[Stream::Room(room)]).await.map_err(|error| log_failure(&error))
    }
}

/// What a transaction that had to wait for the log says when it cannot.
pub(super) fn log_failure(error: &ReadError) -> ControlError {
    match error {
        ReadError::Stalled(_) => ControlError::DiskFull,
        _ => ControlError::ShuttingDown,
    }
}

fn insert_room(connection: &Connection, new: &NewRoom, kind: RoomKind) -> Result<(), ControlError> {
    connection.execute(
        "INSERT INTO rooms (id, kind, name, topic, created_at, created_by, \
                            last_offset, last_seq, member_count) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, 0)",
        params![
            to_sql(new.id.as_u64()),
            kind as u8,
            new.name,
            new.topic,
            to_sql(new.at.as_u64()),
            to_sql(new.owner.as_u64())
        ],
    )?;
    Ok(())
}

/// Adds a member and the event that says so.
fn join(
    connection: &Connection,
    room: RoomId,
    user: UserId,
    role: Role,
    at: UnixMillis,
) -> Result<(), ControlError> {
    let account = super::accounts::existing(connection, user)?;
    let offset: i64 = connection.query_row(
        "UPDATE rooms SET last_offset = last_offset + 1, member_count = member_count + 1 \
         WHERE id = ?1 RETURNING last_offset",
        [to_sql(room.as_u64())],
        |row| row.get(0),
    )?;
    connection.execute(
        "INSERT INTO members (room, user, role, joined_at, name) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![
            to_sql(room.as_u64()),
            to_sql(user.as_u64()),
            role.number(),
            to_sql(at.as_u64()),
            account.name
        ],
    )?;
    let event =
        RoomEvent::Joined { user, name: account.name, display_name: account.display_name, role };
    connection.execute(
        "INSERT INTO room_events VALUES (?1, ?2, ?3, NULL, ?4)",
        params![
            to_sql(room.as_u64()),
            to_sql(Offset::from_u64(from_sql(offset)).as_u64()),
            to_sql(at.as_u64()),
            event.encode()
        ],
    )?;
    Ok(())
}
