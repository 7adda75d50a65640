//! Entries of the log of moderation, as every transaction may write them.

use super::apply::to_sql;
use crate::storage::ids::{RoomId, UnixMillis, UserId};
use crate::storage::record::{RecordError, Role};
use crate::storage::sql::{self, Connection, params};

/// What was done. Stored by number; never renumber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModerationAction {
    /// A member was sent away.
    Kicked = 1,
    /// Somebody was sent away for good.
    Banned = 2,
    /// A ban was lifted.
    Unbanned = 3,
    /// A member may not speak until `NewModeration::until`.
    Muted = 4,
    /// A mute was ended.
    Unmuted = 5,
    /// A member got `NewModeration::role`.
    RoleSet = 6,
    /// A message of somebody else was deleted.
    MessageDeleted = 7,
    /// An invite link was made.
    InviteMade = 8,
    /// An invite link was taken back.
    InviteRevoked = 9,
    /// A room was made read-only.
    RoomArchived = 10,
    /// A room was opened again.
    RoomOpened = 11,
    /// A room was deleted.
    RoomDeleted = 12,
    /// Everybody on the server may find the room and join it.
    RoomMadeOpen = 13,
    /// Everybody on the server may find the room.
    RoomMadeListed = 14,
    /// Only members know of the room.
    RoomMadeHidden = 15,
    /// The server got its first administrator.
    SetUp = 20,
    /// A user became an administrator.
    AdministratorMade = 21,
    /// An administrator became an ordinary user.
    AdministratorUnmade = 22,
    /// An account was disabled.
    UserDisabled = 23,
    /// A disabled account was enabled.
    UserEnabled = 24,
    /// All devices of a user were signed out.
    DevicesSignedOut = 25,
    /// A link was made by which a user may choose a new password.
    ResetLinkMade = 26,
    /// The user has chosen it.
    PasswordReset = 27,
    /// An account was deleted.
    AccountDeleted = 28,
}

impl ModerationAction {
    /// All of them.
    pub const ALL: [Self; 24] = [
        Self::Kicked,
        Self::Banned,
        Self::Unbanned,
        Self::Muted,
        Self::Unmuted,
        Self::RoleSet,
        Self::MessageDeleted,
        Self::InviteMade,
        Self::InviteRevoked,
        Self::RoomArchived,
        Self::RoomOpened,
        Self::RoomDeleted,
        Self::RoomMadeOpen,
        Self::RoomMadeListed,
        Self::RoomMadeHidden,
        Self::SetUp,
        Self::AdministratorMade,
        Self::AdministratorUnmade,
        Self::UserDisabled,
        Self::UserEnabled,
        Self::DevicesSignedOut,
        Self::ResetLinkMade,
        Self::PasswordReset,
        Self::AccountDeleted,
    ];

    pub(crate) fn from_number(number: u32) -> Result<Self, RecordError> {
        let found = Self::ALL.into_iter().find(|action| *action as u32 == number);
        found.ok_or(RecordError::UnknownNumber { of: "ModerationAction", number })
    }
}

/// An entry to write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewModeration {
    pub(crate) at: UnixMillis,
    pub(crate) by: UserId,
    pub(crate) action: ModerationAction,
    pub(crate) user: Option<UserId>,
    pub(crate) room: Option<RoomId>,
    pub(crate) role: Option<Role>,
    pub(crate) until: Option<UnixMillis>,
}

impl NewModeration {
    /// Somebody did something to a user of the server.
    pub(crate) fn of_user(
        at: UnixMillis,
        by: UserId,
        action: ModerationAction,
        user: UserId,
    ) -> Self {
        Self { at, by, action, user: Some(user), room: None, role: None, until: None }
    }

    /// Somebody did something in a room.
    pub(crate) fn in_room(
        at: UnixMillis,
        by: UserId,
        action: ModerationAction,
        room: RoomId,
    ) -> Self {
        Self { at, by, action, user: None, room: Some(room), role: None, until: None }
    }
}

/// Writes an entry into the transaction at hand.
pub(crate) fn note(connection: &Connection, entry: NewModeration) -> sql::Result<()> {
    let NewModeration { at, by, action, user, room, role, until } = entry;
    connection
        .prepare_cached(
            "INSERT INTO moderation (at, by, action, user, room, role, until) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            to_sql(at.as_u64()),
            to_sql(by.as_u64()),
            action as u8,
            user.map(|user| to_sql(user.as_u64())),
            room.map(|room| to_sql(room.as_u64())),
            role.map(Role::number),
            until.map(|until| to_sql(until.as_u64()))
        ])?;
    Ok(())
}
