//! Why a life ends, and what those hear who watch it. Plain values: nothing here acts.

use althing_macros::Wire;

use crate::address::actor_id::ActorId;
use crate::error::ActorError;

/// Why an actor stops.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[wire(crate = crate)]
#[non_exhaustive]
pub enum StopReason {
    /// `stop()` was called on it or by it.
    Requested,
    /// Idle for long enough; it comes back with its next message.
    Passivated,
    /// It failed, or a sibling did, and supervision restarts it.
    Restarting,
    /// A handler panicked, `ctx.fail` was called or a child escalated, and supervision gave up;
    /// with the cause. Of a panic that is its text.
    Failed(ActorError),
    /// Its factory or `started` hook failed.
    NotStarted(ActorError),
    /// Killed: no hook ran, waiting messages were dropped.
    Killed,
    /// Its parent or a linked actor stopped.
    Linked(ActorId),
    /// The node shuts down.
    NodeShutdown,
    /// Another node owns the actor now, in a higher epoch: no hook ran.
    Fenced,
    /// The actor moved to another node, where it lives on.
    Moved,
    /// The node on which it lived is gone.
    NodeLost,
}

/// Tells a watcher who stopped, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminated {
    /// Who stopped.
    pub id: ActorId,
    /// Why.
    pub reason: StopReason,
}
