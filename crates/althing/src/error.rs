//! Errors of sending, asking and starting.
//!
//! A variant exists only where a caller acts differently. Each says whether the message may have
//! run, because that decides whether a retry is safe. A send that fails hands its message back.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use althing_macros::Wire;

use crate::address::actor_id::ActorId;
use crate::rejection::Rejection;
use crate::wire::{Depth, Wire, WireError, WireField};

/// Bytes of an error's text on its way to another node, at most: far below a frame, and enough to
/// say what is wrong.
const TEXT_LEN_MAX: usize = 4_096;

/// Why an ask brought no reply.
///
/// Whether to ask again hangs on whether the message may have run, which
/// [`may_have_run`](Self::may_have_run) says: if not, asking again is safe; if so, only for
/// messages that may run twice.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[wire(crate = crate)]
#[non_exhaustive]
pub enum AskError {
    /// The mailbox was full until the deadline. The message did not run; retry later.
    Overloaded(ActorId),
    /// No reply before the deadline. The message may have run, or may still run.
    Timeout(ActorId),
    /// The actor has stopped. The message did not run. A retry helps only if the actor has a key
    /// and a factory.
    Stopped(ActorId),
    /// The actor could not be started, and why. The message did not run. A retry starts it again.
    NotStarted(ActorId, ActorError),
    /// The handler panicked. The message ran in part; the actor's supervision decides what follows.
    HandlerPanicked(ActorId),
    /// The handler ended, or the actor stopped, without a reply. The message may have run.
    NoReply(ActorId),
    /// The ask would wait for itself. The message did not run, and never will on this way.
    Cycle(Vec<ActorId>),
    /// A guard of the actor refused the message, which did not run. Whether a retry helps is in the
    /// reason.
    Rejected(ActorId, Rejection),
    /// The actor lives on another node, and the message's type, given by its Rust path, does not
    /// travel: its kind registers no codec for it. The message did not run, and never will on this
    /// way.
    LocalOnly(ActorId, String),
    /// The message is longer than a frame between the nodes, the other node could not read it, or
    /// this one the reply; the text says which and why. A message that could not be read did not
    /// run.
    NotUnderstood(ActorId, String),
    /// The node of the actor went away before it replied. The message may have run.
    NodeLost(ActorId),
    /// The handler ran, but what it changed could not be made durable and is gone; see
    /// [`Actor::commit`](crate::Actor::commit). A commit whose outcome is unknown counts as this:
    /// the message may have run.
    NotCommitted(ActorId),
    /// The handler ran, and its reply is longer than a frame between the nodes, as the text says.
    ReplyTooLong(ActorId, String),
}

impl AskError {
    /// Whether the message may have run, in whole or in part, or may still run: then a retry may
    /// run it twice.
    ///
    /// Of an ask that was handed on (`reply_to`) it speaks of the actor that had it last, which the
    /// error names; the one that handed it on has run.
    ///
    /// ```
    /// use althing::AskError;
    ///
    /// /// Repeats what is safe to repeat.
    /// async fn ask_twice<R, C: Future<Output = Result<R, AskError>>>(
    ///     mut ask: impl FnMut() -> C,
    /// ) -> Result<R, AskError> {
    ///     match ask().await {
    ///         Err(error) if !error.may_have_run() => ask().await,
    ///         answer => answer,
    ///     }
    /// }
    /// ```
    pub fn may_have_run(&self) -> bool {
        match self {
            Self::Timeout(_)
            | Self::HandlerPanicked(_)
            | Self::NoReply(_)
            | Self::NodeLost(_)
            | Self::NotUnderstood(..)
            | Self::NotCommitted(_)
            | Self::ReplyTooLong(..) => true,
            Self::Overloaded(_)
            | Self::Stopped(_)
            | Self::NotStarted(..)
            | Self::Cycle(_)
            | Self::LocalOnly(..)
            | Self::Rejected(..) => false,
        }
    }
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overloaded(id) => write!(f, "mailbox of {id} is full"),
            Self::Timeout(id) => write!(f, "no reply from {id} before the deadline"),
            Self::Stopped(id) => write!(f, "{id} has stopped"),
            Self::NotStarted(id, why) => write!(f, "{id} could not start: {why}"),
            Self::HandlerPanicked(id) => write!(f, "a handler of {id} panicked"),
            Self::NoReply(id) => write!(f, "{id} dropped the reply"),
            Self::Cycle(ids) => write!(f, "cyclic ask: {}", path(ids)),
            Self::Rejected(id, why) => write!(f, "{id} refused the message: {why}"),
            Self::LocalOnly(id, message) => {
                write!(f, "{id} lives on another node, and `{message}` does not travel")
            }
            Self::NotUnderstood(id, why) => write!(f, "no understanding with {id}: {why}"),
            Self::NodeLost(id) => write!(f, "the node of {id} went away"),
            Self::NotCommitted(id) => write!(f, "what {id} changed was not made durable"),
            Self::ReplyTooLong(id, why) => write!(f, "{id} did it, but cannot say so: {why}"),
        }
    }
}

impl Error for AskError {
    /// What a factory or `started` hook failed with. Its text is part of ours already.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NotStarted(_, why) => Some(why.as_error()),
            _ => None,
        }
    }
}

/// Why a tell was not accepted; every variant returns the message, which did not run.
#[derive(thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError<M> {
    /// The mailbox is full and the caller did not wait.
    #[error("mailbox is full")]
    Full(M),
    /// The mailbox stayed full until the deadline.
    #[error("mailbox stayed full until the deadline")]
    Timeout(M),
    /// The actor has stopped.
    #[error("actor has stopped")]
    Stopped(M),
    /// The actor lives on another node, and messages of this type do not travel.
    #[error("actor lives on another node, and the message does not travel")]
    LocalOnly(M),
    /// The actor lives on another node, and the message is longer than what can be sent there.
    #[error("actor lives on another node, and the message is too long to be sent there")]
    TooLong(M),
}

impl<M> SendError<M> {
    /// Takes the message back.
    pub fn into_message(self) -> M {
        match self {
            Self::Full(message)
            | Self::Timeout(message)
            | Self::Stopped(message)
            | Self::LocalOnly(message)
            | Self::TooLong(message) => message,
        }
    }
}

impl<M> fmt::Debug for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Timeout(_) => "Timeout(..)",
            Self::Stopped(_) => "Stopped(..)",
            Self::LocalOnly(_) => "LocalOnly(..)",
            Self::TooLong(_) => "TooLong(..)",
        })
    }
}

/// Why an actor did not start, or failed: any error, shared, so that each of those who hear of it
/// can look into it.
///
/// `?` makes one of any error. It is no `Error` itself, because that would take `?` away:
/// [`as_error`](Self::as_error) is. Two are equal if they say the same.
///
/// ```
/// use std::io;
///
/// use althing::{ActorError, AskError, Node, Start, actor};
///
/// struct Document;
///
/// #[actor(name = "example.document")]
/// impl Document {
///     async fn load(start: Start<Self>) -> Result<Self, ActorError> {
///         std::fs::read(format!("/nowhere/{}", start.key()))?;
///         Ok(Self)
///     }
///
///     async fn read_page(&self) {}
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let node = Node::builder("library").actor(Document::load).build();
/// match node.get::<Document>("faust").read_page().await {
///     Err(AskError::NotStarted(_, why)) => {
///         let why = why.downcast_ref::<io::Error>().expect("a file could not be read");
///         assert_eq!(why.kind(), io::ErrorKind::NotFound);
///     }
///     other => panic!("{other:?}"),
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct ActorError {
    inner: Arc<dyn Error + Send + Sync>,
}

impl ActorError {
    /// An error that is only a text. For one that is an error already, `ActorError::from` keeps it
    /// whole.
    pub fn new(text: impl fmt::Display) -> Self {
        Self { inner: Arc::new(Text(text.to_string())) }
    }

    /// The error itself.
    pub fn as_error(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.inner
    }

    /// The error itself, if it is an `E`.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.inner.downcast_ref()
    }

    /// What the error itself was caused by.
    pub fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.inner.source()
    }
}

impl fmt::Display for ActorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, f)
    }
}

impl fmt::Debug for ActorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.inner, f)
    }
}

impl PartialEq for ActorError {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner) || self.to_string() == other.to_string()
    }
}

impl Eq for ActorError {}

impl<E: Error + Send + Sync + 'static> From<E> for ActorError {
    fn from(error: E) -> Self {
        Self { inner: Arc::new(error) }
    }
}

/// As its text: a type of error means nothing on another node. Of a long one only the beginning
/// travels, because who waits to hear of an end has to hear of it.
impl Wire for ActorError {
    fn encode(&self, out: &mut Vec<u8>) {
        let mut text = self.to_string();
        if text.len() > TEXT_LEN_MAX {
            let is_border = |at: &usize| text.is_char_boundary(*at);
            let end = (0..=TEXT_LEN_MAX).rev().find(is_border).unwrap_or(0);
            text.truncate(end);
            text.push('…');
        }
        text.encode(out);
    }

    fn decode_within(bytes: &[u8], depth: Depth) -> Result<Self, WireError> {
        String::decode_within(bytes, depth).map(Self::new)
    }
}

impl WireField for ActorError {}

/// An error without a type of its own.
struct Text(String);

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Error for Text {}

/// Why a parent failed whose child escalated its own failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildFailed {
    /// The child.
    pub child: ActorId,
    /// Why the child failed.
    pub error: ActorError,
}

impl fmt::Display for ChildFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", self.child, self.error)
    }
}

impl Error for ChildFailed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.error.as_error())
    }
}

/// A name that is already taken on this node.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0} is there already")]
pub struct NameTaken(pub ActorId);

fn path(ids: &[ActorId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" -> ")
}
