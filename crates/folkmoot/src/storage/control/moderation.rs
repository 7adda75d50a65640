//! The log of moderation: who did what to whom, where and when. Append-only: the database itself
//! refuses to change or delete a row.
//!
//! A row is written in the transaction of the change it tells of: by the mover for what happens in
//! a room, by a control transaction for everything else. So it is there exactly when the change is.

use rusqlite::{Connection, Row, params};

use crate::storage::error::ReadError;
use crate::storage::ids::{RoomId, UnixMillis, UserId};
use crate::storage::record::{RecordError, Role};
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::store::Store;

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
    pub const ALL: [Self; 21] = [
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

    fn from_number(number: u32) -> Result<Self, RecordError> {
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

/// Somebody that an entry names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedUser {
    /// The id.
    pub id: UserId,
    /// The unique name.
    pub name: String,
    /// The name to show, as it is now.
    pub display_name: String,
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModerationEntry {
    /// Its number; rises, may skip.
    pub id: u64,
    /// When.
    pub at: UnixMillis,
    /// Who did it.
    pub by: Option<NamedUser>,
    /// What.
    pub action: ModerationAction,
    /// To whom.
    pub user: Option<NamedUser>,
    /// Where, with the room's present name; it has none once it is deleted.
    pub room: Option<(RoomId, String)>,
    /// The new role.
    pub role: Option<Role>,
    /// Until when.
    pub until: Option<UnixMillis>,
}

impl Store {
    /// A page of the log, the latest first, before the entry of a number.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn moderation(
        &self,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<ModerationEntry>, ReadError> {
        // What happened in rooms may still be on its way from the log.
        self.barrier().await?;
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT m.id, m.at, m.action, m.by, b.name, b.display_name, \
                        m.user, u.name, u.display_name, m.room, r.name, m.role, m.until \
                 FROM moderation m LEFT JOIN users b ON b.id = m.by \
                 LEFT JOIN users u ON u.id = m.user LEFT JOIN rooms r ON r.id = m.room AND r.deleted_at IS NULL \
                 WHERE m.id < ?1 ORDER BY m.id DESC LIMIT ?2",
            )?;
            let before = before.and_then(|before| i64::try_from(before).ok()).unwrap_or(i64::MAX);
            let mut rows = statement.query(params![before, limit])?;
            let mut entries = Vec::new();
            while let Some(row) = rows.next()? {
                entries.push(read_entry(row)?);
            }
            Ok(entries)
        })
        .await
    }
}

/// Writes an entry into the transaction at hand.
pub(crate) fn note(connection: &Connection, entry: NewModeration) -> rusqlite::Result<()> {
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

fn read_entry(row: &Row<'_>) -> Result<ModerationEntry, ReadError> {
    let name: Option<String> = row.get(10)?;
    let room = row.get::<_, Option<i64>>(9)?;
    let room = room.map(|id| (RoomId::from_u64(from_sql(id)), name.unwrap_or_default()));
    let role = row.get::<_, Option<u32>>(11)?.map(Role::from_number).transpose()?;
    Ok(ModerationEntry {
        id: from_sql(row.get(0)?),
        at: UnixMillis::from_u64(from_sql(row.get(1)?)),
        action: ModerationAction::from_number(row.get(2)?)?,
        by: named_user(row, 3)?,
        user: named_user(row, 6)?,
        room,
        role,
        until: row.get::<_, Option<i64>>(12)?.map(|at| UnixMillis::from_u64(from_sql(at))),
    })
}

/// The user in three columns: id, name, name to show.
fn named_user(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<NamedUser>> {
    let (Some(id), Some(name)) = (row.get::<_, Option<i64>>(first)?, row.get(first + 1)?) else {
        return Ok(None);
    };
    let display_name = row.get(first + 2)?;
    Ok(Some(NamedUser { id: UserId::from_u64(from_sql(id)), name, display_name }))
}
