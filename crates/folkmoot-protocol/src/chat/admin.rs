//! Bodies of the HTTP interface for whoever runs the server: the first administrator, lost
//! passwords, users, rooms, storage, live counters, the log of moderation.

use serde::{Deserialize, Serialize};

use super::account::{AccountCreate, MessagesFate, OwnedRooms};
use super::branding::{Branding, BrandingUpdate};
use super::is_false;
use super::view::{Role, UserView};
use crate::field::{self, Checked};
use crate::id::{RoomId, UnixMillis, UserId};
use crate::rpc::RpcError;

/// Answer of `GET /api/v1/setup`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct SetupState {
    /// Nobody administers the server yet.
    pub needed: bool,
    /// Everybody who is here already is a bot: a server with `--demo`.
    #[serde(default, skip_serializing_if = "is_false")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<bool>"))]
    pub demo: bool,
    /// Who may make an account.
    pub registration: Registration,
    /// How the server shows itself.
    pub branding: Branding,
}

/// Who may make an account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub enum Registration {
    /// Everybody.
    #[default]
    Open,
    /// Who was invited to a room.
    Invite,
    /// Nobody.
    Closed,
}

/// Answer of `GET` and `PATCH /api/v1/admin/settings`, and of `PUT` and `DELETE /api/v1/admin/logo`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct AdminSettings {
    /// Who may make an account.
    pub registration: Registration,
    /// Set by a flag or the settings file, and so not to be changed here.
    pub registration_fixed: bool,
    /// How the server shows itself.
    pub branding: Branding,
}

/// Body of `PATCH /api/v1/admin/settings`. What is left out stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct AdminSettingsUpdate {
    /// Who may make an account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration: Option<Registration>,
    /// How the server shows itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branding: Option<BrandingUpdate>,
}

impl Checked for AdminSettingsUpdate {
    fn check(&self) -> Result<(), RpcError> {
        field::optional(&self.branding, Checked::check)
    }
}

/// Body of `POST /api/v1/setup`: makes the first administrator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct SetupCreate {
    /// The token of the link that the server printed when it started.
    pub token: String,
    /// The account to be.
    #[serde(flatten)]
    pub account: AccountCreate,
}

impl Checked for SetupCreate {
    fn check(&self) -> Result<(), RpcError> {
        self.account.check()
    }
}

/// Body of `POST /api/v1/password-resets`: chooses a new password by the token of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct PasswordReset {
    /// The token of the link.
    pub token: String,
    /// The new password.
    pub password: String,
    /// What to call this device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

impl Checked for PasswordReset {
    fn check(&self) -> Result<(), RpcError> {
        field::password("password", &self.password)?;
        field::optional(&self.device, |text| field::device_label("device", text))
    }
}

/// What the connect reply tells of its user, as its `data`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ConnectData {
    /// Whether the user administers the server.
    pub administrator: bool,
    /// What the server's clock shows, by which a client knows how far its own is off.
    pub now: UnixMillis,
}

/// A user as administrators see them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct AdminUser {
    /// The user.
    pub id: UserId,
    /// The unique name.
    pub name: String,
    /// The name to show.
    pub display_name: String,
    /// Administers the server.
    #[serde(default, skip_serializing_if = "is_false")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<bool>"))]
    pub administrator: bool,
    /// Kept out since then; absent: may sign in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled_at: Option<UnixMillis>,
    /// When the account was made.
    pub created_at: UnixMillis,
    /// When one of the devices signed in was last connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<UnixMillis>,
    /// Devices signed in.
    pub devices: u32,
    /// Rooms and conversations it is in.
    pub rooms: u32,
}

/// A page of users in the order of their names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct AdminUsers {
    /// The users.
    pub users: Vec<AdminUser>,
    /// `after` for the next page; absent: this is the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Body of `PATCH /api/v1/admin/users/{id}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct AdminUserUpdate {
    /// Makes the user an administrator, or an ordinary user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub administrator: Option<bool>,
    /// Signs the user out everywhere and keeps them out, or lets them in again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
}

impl Checked for AdminUserUpdate {
    fn check(&self) -> Result<(), RpcError> {
        match (self.administrator, self.disabled) {
            (None, None) => Err(RpcError::invalid("administrator", "or `disabled` must be given")),
            (Some(_), Some(_)) => {
                Err(RpcError::invalid("disabled", "must not be given with `administrator`"))
            }
            _ => Ok(()),
        }
    }
}

/// A link by which a user may choose a new password; the token is shown this once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ResetLink {
    /// What to put behind `/reset#`.
    pub token: String,
    /// Until when it works.
    pub expires_at: UnixMillis,
}

/// A room as administrators see it: its size, never its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct AdminRoom {
    /// The room.
    pub id: RoomId,
    /// Its name.
    pub name: String,
    /// Its topic.
    pub topic: String,
    /// When it was made.
    pub created_at: UnixMillis,
    /// How many members it has.
    pub members: u32,
    /// How many messages were sent in it.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub messages: u64,
    /// Bytes of their texts.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub bytes: u64,
    /// When the last one was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_at: Option<UnixMillis>,
    /// Read-only since then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<UnixMillis>,
}

/// Body of `PATCH /api/v1/admin/rooms/{id}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct AdminRoomUpdate {
    /// Whether the room is read-only.
    pub archived: bool,
}

impl Checked for AdminRoomUpdate {}

/// Body of `POST /api/v1/admin/users/{id}/deletion`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct AdminUserDelete {
    /// What becomes of the messages.
    pub messages: MessagesFate,
    /// What becomes of rooms that have no other owner; absent: the deletion is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rooms: Option<OwnedRooms>,
}

impl Checked for AdminUserDelete {}

/// A page of rooms, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct AdminRooms {
    /// The rooms.
    pub rooms: Vec<AdminRoom>,
    /// `after` for the next page; absent: this is the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<RoomId>,
}

/// A part of the data directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct StoragePart {
    /// `log`, `database`, or the directory's name.
    pub name: String,
    /// What its files hold.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub bytes: u64,
}

/// What the server keeps, and how much room is left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct StorageView {
    /// Parts of the data directory, the largest first.
    pub parts: Vec<StoragePart>,
    /// What may still be written to its disk.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub free_bytes: u64,
    /// The size of its disk.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub disk_bytes: u64,
    /// Segments of the log.
    pub segments: u32,
    /// Bytes of the log that are not in the database yet.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub lag_bytes: u64,
    /// Accounts.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub users: u64,
    /// Rooms.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub rooms: u64,
    /// Direct conversations.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub directs: u64,
    /// Messages ever sent.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub messages: u64,
    /// Bytes of their texts.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub body_bytes: u64,
}

/// One second of the server's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct LiveSecond {
    /// When it ended.
    pub at: UnixMillis,
    /// Open sockets at its end.
    pub connections: u32,
    /// Messages sent in it.
    pub messages: u32,
    /// Records made durable in it.
    pub appends: u32,
    /// Half of them took less; absent without appends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append_p50_us: Option<u32>,
    /// All but one in a hundred took less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append_p99_us: Option<u32>,
}

/// The actors of one type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ActorCount {
    /// Its name, such as `folkmoot.room`.
    pub name: String,
    /// In memory now.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub live: u64,
    /// Messages that wait in their mailboxes.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub waiting: u64,
    /// Messages handled since the start.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub handled: u64,
}

/// What goes on at the moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct LiveView {
    /// Now.
    pub at: UnixMillis,
    /// When the server was started.
    pub started_at: UnixMillis,
    /// Its version.
    pub version: String,
    /// Open sockets.
    pub connections: u32,
    /// Messages sent since the start.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub messages_total: u64,
    /// Records made durable since the start.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub appends_total: u64,
    /// Half of the last minute's records took less; absent without records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append_p50_us: Option<u32>,
    /// All but one in a hundred of the last minute's records took less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append_p99_us: Option<u32>,
    /// The last minute, oldest first.
    pub seconds: Vec<LiveSecond>,
    /// Actors by type, the most first.
    pub actors: Vec<ActorCount>,
}

/// What was done, in the log of moderation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[expect(missing_docs, reason = "the names say it; `docs/protocol.md` lists them")]
pub enum ModerationAction {
    Kicked,
    Banned,
    Unbanned,
    Muted,
    Unmuted,
    RoleSet,
    MessageDeleted,
    InviteMade,
    InviteRevoked,
    RoomArchived,
    RoomOpened,
    RoomDeleted,
    RoomMadeOpen,
    RoomMadeListed,
    RoomMadeHidden,
    SetUp,
    AdministratorMade,
    AdministratorUnmade,
    UserDisabled,
    UserEnabled,
    DevicesSignedOut,
    ResetLinkMade,
    PasswordReset,
    AccountDeleted,
}

/// A room that an entry names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct NamedRoom {
    /// The room.
    pub id: RoomId,
    /// Its present name; empty for a direct conversation and for a room that was deleted.
    pub name: String,
}

/// An entry of the log of moderation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct ModerationEntry {
    /// Its number; later entries have higher ones.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub id: u64,
    /// When.
    pub at: UnixMillis,
    /// Who did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<UserView>,
    /// What.
    pub action: ModerationAction,
    /// To whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserView>,
    /// Where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<NamedRoom>,
    /// The role that was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The end of a mute or an invite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMillis>,
}

/// A page of the log, the latest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct ModerationPage {
    /// The entries.
    pub entries: Vec<ModerationEntry>,
    /// `before` for the next page; absent: this is the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional, type = "number"))]
    pub next: Option<u64>,
}
