//! Methods on messages: sending, changing, reading.

use serde::{Deserialize, Serialize};

use super::RpcError;
use crate::chat::{MessageView, UserView, is_false};
use crate::field::{self, Checked};
use crate::id::{AttachmentId, Offset, RoomId, Seq, UnixMillis};
use crate::limits::HISTORY_PAGE_MAX;

/// Sends a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct MessageSend {
    /// The room.
    pub room: RoomId,
    /// The sender's idempotency key; a retry carries the same.
    pub key: String,
    /// The text.
    pub body: String,
    /// The message it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Seq>,
    /// Files uploaded before.
    #[serde(
        default,
        deserialize_with = "field::null_as_absent",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<Vec<AttachmentId>>"))]
    pub attachments: Vec<AttachmentId>,
}

impl Checked for MessageSend {
    fn check(&self) -> Result<(), RpcError> {
        field::key("key", &self.key)?;
        field::attachments("attachments", &self.attachments)?;
        field::body("body", &self.body, self.attachments.len())
    }
}

/// Data of a `publish` to `room:<id>`: a [`MessageSend`] whose channel names the room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct RoomPublish {
    /// The sender's idempotency key; absent: a retry may double the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The text.
    pub body: String,
    /// The message it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Seq>,
    /// Files uploaded before.
    #[serde(
        default,
        deserialize_with = "field::null_as_absent",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<Vec<AttachmentId>>"))]
    pub attachments: Vec<AttachmentId>,
}

impl Checked for RoomPublish {
    fn check(&self) -> Result<(), RpcError> {
        field::optional(&self.key, |key| field::key("key", key))?;
        field::attachments("attachments", &self.attachments)?;
        field::body("body", &self.body, self.attachments.len())
    }
}

/// Where a message went; sent only once it is durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct MessageSent {
    /// Its number in the room.
    pub seq: Seq,
    /// Its place in the room's stream.
    pub offset: Offset,
    /// When it was sent.
    pub at: UnixMillis,
    /// Whether an earlier command with the same key sent it.
    #[serde(default, skip_serializing_if = "is_false")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<bool>"))]
    pub duplicate: bool,
}

/// Replaces the text of the caller's message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct MessageEdit {
    /// The room.
    pub room: RoomId,
    /// The message.
    pub seq: Seq,
    /// The new text.
    pub body: String,
}

impl Checked for MessageEdit {
    fn check(&self) -> Result<(), RpcError> {
        field::body("body", &self.body, 0)
    }
}

/// When the text was replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct MessageEdited {
    /// The moment.
    pub edited_at: UnixMillis,
}

/// Deletes a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct MessageDelete {
    /// The room.
    pub room: RoomId,
    /// The message.
    pub seq: Seq,
}

impl Checked for MessageDelete {}

/// Gives a reaction or takes it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct MessageReact {
    /// The room.
    pub room: RoomId,
    /// The message.
    pub seq: Seq,
    /// The emoji.
    pub emoji: String,
    /// Whether it is given.
    pub on: bool,
}

impl Checked for MessageReact {
    fn check(&self) -> Result<(), RpcError> {
        field::emoji("emoji", &self.emoji)
    }
}

/// Asks who reacted to a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct MessageReactions {
    /// The room.
    pub room: RoomId,
    /// The message.
    pub seq: Seq,
}

impl Checked for MessageReactions {}

/// Who reacted to a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ReactionsPage {
    /// The emoji, in order of first use.
    pub reactions: Vec<ReactionUsers>,
}

/// The users who gave one emoji.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ReactionUsers {
    /// The emoji.
    pub emoji: String,
    /// Who gave it first comes first; at most [`crate::limits::REACTION_USERS_MAX`].
    pub users: Vec<UserView>,
}

/// Asks for messages: the newest, or those before, after or around one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(optional_fields))]
pub struct HistoryGet {
    /// The room.
    pub room: RoomId,
    /// Only older ones than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Seq>,
    /// Only newer ones than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Seq>,
    /// This one in the middle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub around: Option<Seq>,
    /// Length of the page; absent: 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

impl Checked for HistoryGet {
    fn check(&self) -> Result<(), RpcError> {
        let anchors = [self.before, self.after, self.around];
        if anchors.iter().flatten().count() > 1 {
            return Err(RpcError::invalid("before", "excludes `after` and `around`"));
        }
        field::optional(&self.limit, |limit| field::between("limit", *limit, 1, HISTORY_PAGE_MAX))
    }
}

/// A page of messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct HistoryPage {
    /// The messages, oldest first.
    pub messages: Vec<MessageView>,
    /// The oldest message the room has.
    pub first_seq: Seq,
    /// The newest message the room has.
    pub last_seq: Seq,
}

/// Moves the caller's read cursor; it never moves back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ReadSet {
    /// The room.
    pub room: RoomId,
    /// The last message read.
    pub seq: Seq,
}

impl Checked for ReadSet {}

/// The caller's read cursor and what lies after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ReadState {
    /// The last message read.
    pub read_seq: Seq,
    /// Messages of others after it.
    pub unread: u32,
    /// Those among them that mention the caller.
    pub mentions: u32,
}

/// Tells the room that the caller writes or has stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TypingSet {
    /// The room.
    pub room: RoomId,
    /// Whether the caller writes.
    pub on: bool,
}

impl Checked for TypingSet {}
