//! What a simulation is told of: each step that actors take, and from whom their messages came.
//!
//! Steps are borrowed views, made on the stack; who keeps them copies what it needs.

use tracing::Span;

use crate::address::actor_id::ActorId;
use crate::rejection::Rejection;
use crate::stop_reason::StopReason;
use crate::topic::published::Sequence;

/// One step of an actor. Message types are given by their full path.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Step<'a> {
    /// It takes a message; what becomes of it is the next step of this actor.
    Takes {
        /// The message's type.
        message: &'static str,
        /// Who sent it; `None` from outside of actors.
        from: Option<&'a ActorId>,
        /// Where its handler runs.
        way: Way,
    },
    /// The handler ended at once.
    Ran,
    /// The handler waits for something.
    Waits,
    /// A handler that waited has ended.
    Ended,
    /// A guard put the message aside.
    Stashed,
    /// A guard refused the message.
    Refused(&'a Rejection),
    /// The message is dropped, because its asker waits no more.
    Abandoned,
    /// A handler or hook panicked.
    Panicked(&'a str),
    /// It has its state and its `started` hook has run.
    Started,
    /// Its life has ended.
    Stopped(&'a StopReason),
    /// Its state is dropped, and is built anew.
    Restarts,
    /// A timer fires: the actor is sent the message.
    TimerFires {
        /// The message's type.
        message: &'static str,
    },
    /// It publishes an event.
    Publishes {
        /// The topic's name.
        topic: &'a str,
        /// The event's position.
        sequence: Sequence,
    },
}

/// Where a handler runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// On the task of who sent the message.
    InPlace,
    /// On a task of its own, after waiting in the mailbox.
    Queued,
}

/// Who sent a message: what a queued message carries with it where somebody wants to know.
pub(crate) struct Sender {
    pub(crate) span: Span,
    pub(crate) actor: Option<ActorId>,
}
