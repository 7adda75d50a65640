//! Events: what the publications of a room's and a user's stream say. The stream's offset is the
//! publication's, so that only `message` repeats it. All are recoverable except `typing`,
//! `presence`, `room_deleted` and a room's `profile`, which have no offset.

use serde::{Deserialize, Serialize};

use super::is_false;
use super::view::{Attachment, LeaveReason, Notify, ReplyRef, Role, RoomView, Status};
use crate::id::{Offset, PictureId, RoomId, Seq, UnixMillis, UserId};

/// An event of `room:<id>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
#[expect(missing_docs, reason = "each field is described in the view or request of the same name")]
pub enum RoomEvent {
    /// A message was sent.
    Message(Box<MessageEvent>),
    /// A message's text was replaced by its author.
    Edited { room: RoomId, seq: Seq, body: String, edited_at: UnixMillis, mentions: Vec<UserId> },
    /// A message was deleted.
    Deleted { room: RoomId, seq: Seq, by: UserId, at: UnixMillis },
    /// A reaction was given or taken back.
    Reaction { room: RoomId, seq: Seq, user: UserId, emoji: String, on: bool },
    /// A member started or stopped writing.
    Typing { room: RoomId, user: UserId, name: String, on: bool },
    /// A member shows another name, picture or status. Never recovered: lists of members have it
    /// too.
    Profile {
        room: RoomId,
        user: UserId,
        display_name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        picture: Option<PictureId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<Status>,
    },
    /// Who of those that this connection watches (`presence.watch`) is here and who is not, and how
    /// many different users are. To this connection alone, without an offset.
    Presence { room: RoomId, online: Vec<UserId>, away: Vec<UserId>, users: u32 },
    /// A user became a member.
    Joined { room: RoomId, user: UserId, name: String, role: Role, at: UnixMillis },
    /// A membership ended.
    Left {
        room: RoomId,
        user: UserId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<UserId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<LeaveReason>,
        at: UnixMillis,
    },
    /// A member's role or mute changed.
    Role {
        room: RoomId,
        user: UserId,
        role: Role,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        muted_until: Option<UnixMillis>,
        by: UserId,
        at: UnixMillis,
    },
    /// A message was pinned for everybody, or is so no more. It is neither once it is deleted.
    Pinned { room: RoomId, seq: Seq, by: UserId, on: bool, at: UnixMillis },
    /// The room's name or topic changed.
    Room { room: RoomId, name: String, topic: String, by: UserId, at: UnixMillis },
    /// The room became read-only, or is open again.
    Archived { room: RoomId, on: bool, by: UserId, at: UnixMillis },
    /// The room keeps its oldest messages no longer: all up to `up_to` are deleted for good, and who
    /// comes back from before then has to fetch anew.
    Expired { room: RoomId, up_to: Seq, at: UnixMillis },
    /// The room is being deleted, and this subscription ends. Without an offset: there is nothing
    /// to recover.
    RoomDeleted { room: RoomId },
}

/// A message was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct MessageEvent {
    /// The room.
    pub room: RoomId,
    /// Its number in the room.
    pub seq: Seq,
    /// Its place in the room's stream.
    pub offset: Offset,
    /// The author.
    pub user: UserId,
    /// The author's name to show.
    pub name: String,
    /// The text.
    pub body: String,
    /// When it was sent.
    pub at: UnixMillis,
    /// The sender's idempotency key, by which the sender finds its own unacknowledged message.
    pub key: String,
    /// The message it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<ReplyRef>,
    /// Members it mentions by name.
    pub mentions: Vec<UserId>,
    /// Whether it mentions everyone.
    #[serde(default, skip_serializing_if = "is_false")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<bool>"))]
    pub mention_all: bool,
    /// Files sent with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<Vec<Attachment>>"))]
    pub attachments: Vec<Attachment>,
}

/// An event of `user:<id>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
#[expect(missing_docs, reason = "each field is described in the view or request of the same name")]
pub enum UserEvent {
    /// The user became a member of a room.
    RoomAdded { room: Box<RoomView> },
    /// The user's membership of a room ended.
    RoomRemoved { room: RoomId, reason: LeaveReason },
    /// A message mentions the user.
    Mention(Excerpt),
    /// The user has read up to here, on any device.
    Read { room: RoomId, read_seq: Seq, unread: u32, mentions: u32 },
    /// The user's profile changed.
    Profile {
        user: UserId,
        name: String,
        display_name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        picture: Option<PictureId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<Status>,
    },
    /// The user's settings of a room changed.
    Settings { room: RoomId, notify: Notify },
    /// The user has saved a message for later, or taken it off the list.
    Saved { room: RoomId, seq: Seq, on: bool },
}

/// A message pointed at from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Excerpt {
    /// The room.
    pub room: RoomId,
    /// The message.
    pub seq: Seq,
    /// Its author.
    pub user: UserId,
    /// The author's name to show.
    pub name: String,
    /// A part of its text.
    pub excerpt: String,
    /// When it was sent.
    pub at: UnixMillis,
}
