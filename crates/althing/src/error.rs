//! Errors of sending, asking and starting.
//!
//! A variant exists only where a caller acts differently. Each says whether the message may have run, because
//! that decides whether a retry is safe. A send that fails hands its message back.

use crate::actor_id::ActorId;

/// Why an ask brought no reply.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskError {
    /// The mailbox was full until the deadline. The message did not run; retry later.
    #[error("mailbox of {0} is full")]
    Overloaded(ActorId),
    /// No reply before the deadline. The message may have run, or may still run.
    #[error("no reply from {0} before the deadline")]
    Timeout(ActorId),
    /// The actor has stopped. The message did not run.
    #[error("{0} has stopped")]
    Stopped(ActorId),
    /// The actor could not be started. The message did not run.
    #[error("{0} could not start: {1}")]
    NotStarted(ActorId, ActorError),
    /// The handler panicked. The message ran in part; the actor's supervision decides what follows.
    #[error("a handler of {0} panicked")]
    HandlerPanicked(ActorId),
    /// The handler ended, or the actor stopped, without a reply. The message may have run.
    #[error("{0} dropped the reply")]
    NoReply(ActorId),
    /// The ask would wait for itself. The message did not run.
    #[error("cyclic ask: {}", path(.0))]
    Cycle(Vec<ActorId>),
    /// A guard of the actor refused the message, which did not run.
    #[error("{0} refused the message: {1}")]
    Rejected(ActorId, String),
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
}

impl<M> SendError<M> {
    /// Takes the message back.
    pub fn into_message(self) -> M {
        match self {
            Self::Full(message) | Self::Timeout(message) | Self::Stopped(message) => message,
        }
    }
}

impl<M> std::fmt::Debug for SendError<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Timeout(_) => "Timeout(..)",
            Self::Stopped(_) => "Stopped(..)",
        })
    }
}

/// Why an actor could not be started, as its factory or its `started` hook tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActorError {
    text: std::sync::Arc<str>,
}

impl ActorError {
    /// Describes a failed start; the text reaches those who asked the actor meanwhile.
    pub fn new(text: impl std::fmt::Display) -> Self {
        Self { text: text.to_string().into() }
    }
}

impl std::fmt::Display for ActorError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl<E: std::error::Error> From<E> for ActorError {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

/// A name that is already taken on this node.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0} is already running")]
pub struct NameTaken(pub ActorId);

fn path(ids: &[ActorId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" -> ")
}
