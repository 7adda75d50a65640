//! What can be asked of a room, and the ways it refuses.

use althing::Wire;
use folkmoot_protocol::wire_as;
use std::borrow::Cow;
use std::sync::Arc;

use folkmoot_protocol::limits::{PINS_PER_ROOM_MAX, REACTIONS_PER_MESSAGE_MAX};

use super::idempotency::FirstSend;
use super::people::Missing;
use super::state::Original;
use crate::storage::record::{Role, RoomEvent};
use crate::storage::{AttachmentId, Seq, UnixMillis, UserId};

/// Limits of text were checked at the edge; who may do what is checked here.
#[derive(Debug, Clone, Wire)]
pub(crate) enum Command {
    Send {
        /// Empty: the sender will not repeat it.
        key: String,
        body: String,
        reply_to: Option<Seq>,
        /// Files that the sender uploaded to this room.
        attachments: Vec<AttachmentId>,
    },
    Edit {
        seq: Seq,
        body: String,
    },
    Delete {
        seq: Seq,
    },
    React {
        seq: Seq,
        emoji: String,
        on: bool,
    },
    /// Keeps a message in sight for everybody, or no more.
    Pin {
        seq: Seq,
        on: bool,
    },
    /// The server lets somebody in: the creator, an invited person, the two of a direct room.
    Admit {
        name: String,
        display_name: String,
        role: Role,
    },
    /// Nothing for a member: the answer tells that the membership is durable.
    Stay,
    Leave,
    Kick {
        user: UserId,
    },
    Ban {
        user: UserId,
        on: bool,
    },
    /// `until` in the future mutes; `None` ends it.
    Mute {
        user: UserId,
        until: Option<UnixMillis>,
    },
    SetRole {
        user: UserId,
        role: Role,
    },
    Update {
        name: Option<String>,
        topic: Option<String>,
    },
    /// Makes the room read-only, or opens it again.
    Archive {
        on: bool,
        by: Archivist,
    },
    /// The server takes somebody out whose account is deleted.
    Vacate {
        /// Who becomes the owner if the room has no other.
        successor: Option<UserId>,
    },
    /// The server deletes a message of somebody whose account is deleted, member or not.
    Erase {
        seq: Seq,
    },
}

/// In which right a room is archived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Wire)]
pub(crate) enum Archivist {
    Owner,
    /// Of the server; need not be a member.
    Administrator,
}

impl Command {
    /// The earlier message this command is about, if any.
    pub(crate) fn about(&self) -> Option<Seq> {
        match self {
            Self::Send { reply_to, .. } => *reply_to,
            Self::Edit { seq, .. }
            | Self::Delete { seq }
            | Self::Erase { seq }
            | Self::Pin { seq, .. }
            | Self::React { seq, .. } => Some(*seq),
            _ => None,
        }
    }

    /// Whom it is about, beside who gave it.
    pub(crate) fn target(&self) -> Option<UserId> {
        match self {
            Self::Kick { user }
            | Self::Ban { user, .. }
            | Self::Mute { user, .. }
            | Self::SetRole { user, .. } => Some(*user),
            Self::Vacate { successor } => *successor,
            _ => None,
        }
    }

    /// The text it brings, in which people may be named.
    pub(crate) fn body(&self) -> Option<&str> {
        match self {
            Self::Send { body, .. } | Self::Edit { body, .. } => Some(body),
            _ => None,
        }
    }
}

/// A command with who gave it.
#[derive(Debug, Clone, Wire)]
pub(crate) struct Request {
    pub(crate) by: UserId,
    /// By which connection; none over HTTP.
    pub(crate) client: Option<Arc<str>>,
    pub(crate) command: Command,
    /// Whose the names in [`Command::body`] are, once that was looked up. A name belongs to one
    /// account for good.
    pub(crate) named: Option<Vec<(String, UserId)>>,
    /// The message [`Command::about`] names, for one too old to be in memory.
    pub(crate) original: Option<Original>,
}

impl Request {
    /// A command given for the first time.
    pub(crate) fn new(by: UserId, client: Option<Arc<str>>, command: Command) -> Self {
        Self { by, client, command, named: None, original: None }
    }
}

/// What a permitted command leads to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Decision {
    /// Append, then acknowledge and publish.
    Append(RoomEvent),
    /// The same for a change of a message, after which it mentions these no more.
    Change { event: RoomEvent, unmentioned: Vec<UserId> },
    /// The same send came before; answer with its numbers.
    Repeat(FirstSend),
    /// Store a ban of somebody outside, or that it is lifted; outsiders are not in the stream.
    Ban { user: UserId, on: bool },
    /// Things are as asked already.
    Nothing,
}

/// Which rule forbids it, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reason(Cow<'static, str>);

wire_as!(Reason as String, |reason| reason.0.clone().into_owned(), |text| Ok(Self(text.into())));

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why nothing changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Wire)]
pub(crate) enum Refusal {
    /// Somebody who is not in a room learns nothing about it.
    #[error("you are not a member of this room")]
    NotMember,
    #[error("you are banned from this room")]
    Banned,
    #[error("they take no messages from you")]
    Blocked,
    #[error("this room is archived; an owner can open it again")]
    Archived,
    #[error("the account of the other one was deleted")]
    PeerDeleted,
    #[error("you are muted until {until}")]
    Muted { until: UnixMillis },
    #[error("{0}")]
    NotAllowed(Reason),
    #[error("no message {0} in this room")]
    NoMessage(Seq),
    #[error("this user is not a member of the room")]
    NoSuchMember,
    #[error("no such user")]
    NoSuchUser,
    #[error("a message takes at most {REACTIONS_PER_MESSAGE_MAX} different reactions")]
    TooManyReactions,
    #[error("a room keeps at most {PINS_PER_ROOM_MAX} pinned messages; unpin another one first")]
    TooManyPins,
    #[error("key was used for other content, in message {first}")]
    KeyReused { first: Seq },
    /// Never uploaded here by this user, sent already, or expired.
    #[error("attachments: no file {0} of yours waits to be sent in this room")]
    NoUpload(AttachmentId),
    /// The room does not keep what it needs to judge this; it has to be told first.
    #[error("facts have to be loaded")]
    Unloaded(Box<Missing>),
}

impl Refusal {
    /// A rule of the room forbids it.
    pub(crate) fn not_allowed(why: &'static str) -> Self {
        Self::NotAllowed(Reason(Cow::Borrowed(why)))
    }
}
