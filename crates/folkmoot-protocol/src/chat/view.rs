//! Views: rooms, messages, members, users, devices and invites as one user sees them at one moment.

use serde::{Deserialize, Serialize};

use super::is_false;
use crate::id::{AttachmentId, DeviceId, Offset, PictureId, RoomId, Seq, UnixMillis, UserId};

/// What a member may do; each role may do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub enum Role {
    /// Reads and writes.
    Member,
    /// Also kicks, bans, mutes and deletes messages of members.
    Moderator,
    /// Also gives roles; the one who made the room.
    Owner,
}

/// Whether a room has a name and roles or connects two people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub enum RoomKind {
    /// A room with a name.
    Room,
    /// A conversation of two.
    Direct,
}

/// Which messages of a room a user wants to hear about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub enum Notify {
    /// Every message.
    #[default]
    All,
    /// Only those that mention the user.
    Mentions,
    /// None.
    None,
}

/// How a membership ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub enum LeaveReason {
    /// The member went.
    Left,
    /// A moderator ended it; the user may return with an invite.
    Kicked,
    /// A moderator ended it for good.
    Banned,
    /// The account was deleted, or the room.
    Deleted,
}

/// What a user is up to. Emoji or text may be empty, and not both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct Status {
    /// An emoji that stands beside the name.
    pub emoji: String,
    /// A few words.
    pub text: String,
    /// From then on it is not shown any more; absent: until it is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMillis>,
}

/// A user as others see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct UserView {
    /// The user.
    pub id: UserId,
    /// Name for signing in and mentions; unique.
    pub name: String,
    /// Name to show.
    pub display_name: String,
    /// The account was deleted: both names are empty.
    #[serde(default, skip_serializing_if = "is_false")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<bool>"))]
    pub deleted: bool,
    /// The picture, at `/api/v1/pictures/<id>`; absent: one is drawn from the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture: Option<PictureId>,
    /// What the user is up to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
}

/// A room as one of its members sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct RoomView {
    /// The room.
    pub id: RoomId,
    /// Its name; empty in a direct conversation.
    pub name: String,
    /// Its topic.
    pub topic: String,
    /// Named or direct.
    pub kind: RoomKind,
    /// What the viewer may do.
    pub role: Role,
    /// Number of members.
    pub members: u32,
    /// The newest message.
    pub last_seq: Seq,
    /// The newest event.
    pub offset: Offset,
    /// Epoch in which `offset` counts.
    pub epoch: String,
    /// The last message the viewer has read.
    pub read_seq: Seq,
    /// Messages of others after `read_seq`.
    pub unread: u32,
    /// Those among them that mention the viewer.
    pub mentions: u32,
    /// What the viewer wants to hear about.
    pub notify: Notify,
    /// The other one in a direct conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<UserView>,
    /// The newest message itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Box<MessageView>>,
    /// Until when the viewer may not write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub muted_until: Option<UnixMillis>,
    /// Nobody may write in it, until an owner opens it again.
    #[serde(default, skip_serializing_if = "is_false")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<bool>"))]
    pub archived: bool,
}

/// Who may find a room, and come in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub enum RoomAccess {
    /// Everybody on the server finds it and may join.
    Open,
    /// Everybody on the server finds it; members let others in.
    Invite,
    /// Only members know of it, and whom they let in.
    #[default]
    Hidden,
}

/// A room in the directory, as somebody sees it who need not be a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct ListedRoom {
    /// The room.
    pub id: RoomId,
    /// Its name.
    pub name: String,
    /// Its topic.
    pub topic: String,
    /// Number of members.
    pub members: u32,
    /// Open or by invitation.
    pub access: RoomAccess,
    /// The viewer is a member.
    #[serde(default, skip_serializing_if = "is_false")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<bool>"))]
    pub joined: bool,
}

/// A message as one member sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct MessageView {
    /// The room.
    pub room: RoomId,
    /// Its number in the room.
    pub seq: Seq,
    /// The author.
    pub user: UserId,
    /// The author's name to show; empty once the account is deleted.
    pub name: String,
    /// The text; empty once deleted.
    pub body: String,
    /// When it was sent.
    pub at: UnixMillis,
    /// When it was last edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_at: Option<UnixMillis>,
    /// Whether it was deleted.
    #[serde(default, skip_serializing_if = "is_false")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<bool>"))]
    pub deleted: bool,
    /// Whether it is pinned for everybody in the room.
    #[serde(default, skip_serializing_if = "is_false")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<bool>"))]
    pub pinned: bool,
    /// The sender's idempotency key; only its author sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The message it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<ReplyRef>,
    /// Members it mentions by name.
    pub mentions: Vec<UserId>,
    /// Whether it mentions everyone.
    #[serde(default, skip_serializing_if = "is_false")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<bool>"))]
    pub mention_all: bool,
    /// Reactions, in order of first use.
    pub reactions: Vec<Reaction>,
    /// Files sent with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<Vec<Attachment>>"))]
    pub attachments: Vec<Attachment>,
}

/// The message that another one answers, as it was then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ReplyRef {
    /// Its number in the room.
    pub seq: Seq,
    /// Its author.
    pub user: UserId,
    /// The author's name to show.
    pub name: String,
    /// The beginning of its text.
    pub body: String,
}

/// One emoji under a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Reaction {
    /// The emoji.
    pub emoji: String,
    /// How many members gave it.
    pub count: u32,
    /// Whether the viewer is one of them.
    pub mine: bool,
}

/// A file sent with a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct Attachment {
    /// The attachment.
    pub id: AttachmentId,
    /// File name.
    pub name: String,
    /// Media type.
    pub media_type: String,
    /// Bytes.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub size: u64,
    /// Pixels across, of an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Pixels down, of an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
    /// Where the file is.
    pub url: String,
    /// Where a small picture of it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thumbnail_url: Option<String>,
}

/// How far a file has come that comes in pieces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct UploadProgress {
    /// The upload, and later the attachment.
    pub id: AttachmentId,
    /// Bytes that have come: where the next piece begins.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub offset: u64,
    /// The file, once all of it is on disk and a message may name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachment: Option<Attachment>,
}

/// A member of a room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct MemberView {
    /// The user.
    pub user: UserId,
    /// Name for mentions.
    pub name: String,
    /// Name to show.
    pub display_name: String,
    /// What the member may do.
    pub role: Role,
    /// Whether a device of the member is connected.
    pub online: bool,
    /// Until when the member may not write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub muted_until: Option<UnixMillis>,
    /// The picture, at `/api/v1/pictures/<id>`; absent: one is drawn from the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture: Option<PictureId>,
    /// What the user is up to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
}

/// What presence tells of a connection (`conn_info`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ConnInfo {
    /// The user's name to show.
    pub name: String,
}

/// A signed-in device of the viewer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct DeviceView {
    /// The device.
    pub id: DeviceId,
    /// What the user calls it.
    pub label: String,
    /// When it signed in.
    pub created_at: UnixMillis,
    /// When it was last connected.
    pub seen_at: UnixMillis,
    /// Whether it is the one asking.
    pub current: bool,
}

/// An invite of a room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct InviteView {
    /// What to put into the link.
    pub code: String,
    /// When it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<UnixMillis>,
    /// How often it was accepted.
    pub uses: u32,
    /// How often it may be accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uses_max: Option<u32>,
    /// Who made it.
    pub by: UserId,
}
