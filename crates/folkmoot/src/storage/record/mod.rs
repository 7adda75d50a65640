//! What goes down the hot road: events of rooms, events of users' own streams, read cursors.
//!
//! A record carries its own offset, so applying it is idempotent. Whoever appends a room's records
//! is the only one to do so, and numbers them without gaps. The bytes on disk are in `wire`.

mod attachment;
mod convert;
mod wire;

pub use attachment::{Attachment, Picture};

use althing::Wire;
use serde::{Deserialize, Serialize};

use super::ids::{DeviceId, Offset, RoomId, Seq, UnixMillis, UserId};

/// One entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// An event in a room's stream.
    Room(RoomRecord),
    /// An event in a user's own stream.
    User(UserRecord),
    /// A read cursor moved without an event; merged by maximum.
    Cursor(ReadCursor),
    /// A device was seen; merged by maximum.
    DeviceSeen {
        /// The device.
        device: DeviceId,
        /// When.
        at: UnixMillis,
    },
}

/// An event of a room, as it is stored and as it is read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomRecord {
    /// The room.
    pub room: RoomId,
    /// Its place in the room's stream.
    pub offset: Offset,
    /// When the room decided it.
    pub at: UnixMillis,
    /// What happened.
    pub event: RoomEvent,
}

/// What can happen in a room and is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoomEvent {
    /// Somebody said something.
    Message(Message),
    /// The author changed a message.
    Edited {
        /// Which one.
        seq: Seq,
        /// Its new text.
        body: String,
        /// Whom the new text mentions.
        mentions: Vec<UserId>,
    },
    /// A message was taken back; its text is erased from the store too.
    Deleted {
        /// Which one.
        seq: Seq,
        /// By whom: the author or a moderator.
        by: UserId,
    },
    /// A reaction was added or taken away.
    Reaction {
        /// On which message.
        seq: Seq,
        /// By whom.
        user: UserId,
        /// The emoji.
        emoji: String,
        /// Added or taken away.
        on: bool,
    },
    /// Somebody became a member.
    Joined {
        /// Who.
        user: UserId,
        /// Their account's name.
        name: String,
        /// Their name to show, as it was then.
        display_name: String,
        /// As what.
        role: Role,
    },
    /// Somebody is no longer a member.
    Left {
        /// Who.
        user: UserId,
        /// Who removed them, if it was not themselves.
        by: Option<UserId>,
        /// Why; `Banned` keeps them out.
        reason: LeaveReason,
    },
    /// A member's role or mute changed.
    RoleSet {
        /// Whose.
        user: UserId,
        /// The role from now on.
        role: Role,
        /// Muted until then; absent: not muted.
        muted_until: Option<UnixMillis>,
        /// By whom.
        by: UserId,
    },
    /// The oldest messages are kept no longer: they were deleted for good, by the server.
    Expired {
        /// All up to and including this one.
        up_to: Seq,
    },
    /// A message was pinned for everybody, or is so no more.
    Pinned {
        /// Which one.
        seq: Seq,
        /// By whom.
        by: UserId,
        /// Pinned or not.
        on: bool,
    },
    /// The room became read-only, or is open again.
    Archived {
        /// Whether it is read-only from now on.
        on: bool,
        /// By whom: an owner or an administrator.
        by: UserId,
    },
    /// The room's name or topic changed.
    Described {
        /// The name from now on.
        name: String,
        /// The topic from now on.
        topic: String,
        /// By whom.
        by: UserId,
    },
}

impl RoomEvent {
    /// The message this event is about, if it is about one.
    #[must_use]
    pub fn seq(&self) -> Option<Seq> {
        match self {
            Self::Message(message) => Some(message.seq),
            Self::Edited { seq, .. }
            | Self::Deleted { seq, .. }
            | Self::Reaction { seq, .. }
            | Self::Pinned { seq, .. } => Some(*seq),
            Self::Joined { .. }
            | Self::Left { .. }
            | Self::RoleSet { .. }
            | Self::Expired { .. }
            | Self::Archived { .. }
            | Self::Described { .. } => None,
        }
    }
}

/// A message as it was sent.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
pub struct Message {
    /// Its number in the room.
    pub seq: Seq,
    /// The sender.
    pub user: UserId,
    /// The sender's name to show, as it was then.
    pub name: String,
    /// The sender's idempotency key; empty: none.
    pub key: String,
    /// A hash of what was sent under the key; survives edits, so that a reused key is told from a
    /// retry.
    pub content_hash: u64,
    /// The text; empty after a deletion.
    pub body: String,
    /// What it answers, quoted as it was then.
    pub reply_to: Option<Quote>,
    /// Whom it mentions by name.
    pub mentions: Vec<UserId>,
    /// Whether it mentions everyone.
    pub mention_all: bool,
    /// The files sent with it.
    pub attachments: Vec<Attachment>,
}

/// The message that another one answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Quote {
    /// Its number in the same room.
    pub seq: Seq,
    /// Its author.
    pub user: UserId,
    /// The author's name to show, as it was then.
    pub name: String,
    /// Its text, or the beginning of it.
    pub body: String,
}

/// The parts of a message that few messages have; one column of its row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MessageDetails {
    pub(crate) reply_to: Option<Quote>,
    pub(crate) mentions: Vec<UserId>,
    pub(crate) mention_all: bool,
    pub(crate) attachments: Vec<Attachment>,
}

/// An event of a user's own stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserRecord {
    /// Whose stream.
    pub user: UserId,
    /// Its place in it.
    pub offset: Offset,
    /// When.
    pub at: UnixMillis,
    /// The publication's `data`, JSON, handed back verbatim on recovery.
    pub data: String,
    /// What else it changes in the store; `None` when read back.
    pub effect: Option<UserEffect>,
}

/// What a user event changes besides the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserEffect {
    /// A message mentions the user; counted once however often it is recorded.
    Mention {
        /// In which room.
        room: RoomId,
        /// By which message.
        seq: Seq,
    },
    /// The user has read up to here.
    Read {
        /// In which room.
        room: RoomId,
        /// Merged by maximum.
        seq: Seq,
    },
    /// The user wants to hear of this much.
    Notify {
        /// Of which room.
        room: RoomId,
        /// How much.
        notify: Notify,
    },
}

/// How far a user has read in a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadCursor {
    /// Who.
    pub user: UserId,
    /// Where.
    pub room: RoomId,
    /// Up to and including this message.
    pub seq: Seq,
}

/// What a member may do. Stored by number; never renumber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Role {
    /// Talks.
    Member = 1,
    /// Keeps order.
    Moderator = 2,
    /// Owns the room.
    Owner = 3,
}

/// Why a member is no longer one. Stored by number; never renumber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeaveReason {
    /// Went.
    Left = 1,
    /// Was sent away, may come back.
    Kicked = 2,
    /// Was sent away for good.
    Banned = 3,
    /// The account was deleted, or the room.
    Deleted = 4,
}

/// What a user wants to be notified of in a room. Stored by number; never renumber.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Notify {
    /// Every message.
    #[default]
    All = 1,
    /// Mentions only.
    Mentions = 2,
    /// Nothing.
    None = 3,
}

macro_rules! stored_by_number {
    ($name:ident { $($number:literal => $variant:ident),+ }) => {
        impl $name {
            /// The number it is stored under.
            #[must_use]
            pub fn number(self) -> u8 {
                self as u8
            }

            /// The value stored under a number.
            ///
            /// # Errors
            /// [`RecordError::UnknownNumber`] for one that this program does not know.
            pub fn from_number(number: u32) -> Result<Self, RecordError> {
                match number {
                    $($number => Ok(Self::$variant),)+
                    _ => Err(RecordError::UnknownNumber { of: stringify!($name), number }),
                }
            }
        }
    };
}
stored_by_number!(Role { 1 => Member, 2 => Moderator, 3 => Owner });
stored_by_number!(LeaveReason { 1 => Left, 2 => Kicked, 3 => Banned, 4 => Deleted });
stored_by_number!(Notify { 1 => All, 2 => Mentions, 3 => None });

/// Why stored bytes are not a record. Never a panic, whatever the bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Not a protobuf message of this shape.
    #[error("malformed: {0}")]
    Malformed(String),
    /// A kind of record that this program does not know: written by a newer one.
    #[error("unknown kind of record")]
    UnknownKind,
    /// A number without a meaning here.
    #[error("{of} has no value {number}")]
    UnknownNumber {
        /// The enumeration.
        of: &'static str,
        /// The number found.
        number: u32,
    },
}

#[cfg(test)]
mod tests;
