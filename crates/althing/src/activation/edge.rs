//! Who waits for whom, as the mailboxes of both keep it: the one that waits has an edge, the one
//! that is waited for a caller.

use std::sync::Arc;

use crate::address::actor_id::ActorId;
use crate::address::place::AnyPlace;
use crate::mail::awaited::Awaited;

/// A reply that is waited for, and who is to give it.
pub(crate) trait Owed: Awaited {
    /// The actor that owes it, where a handler has kept it or has handed the ask on.
    fn owed_by(&self) -> Option<Arc<dyn AnyPlace>>;
}

/// One handler's wait, as its actor's mailbox keeps it.
pub(crate) struct Edge {
    pub(super) to: Arc<dyn AnyPlace>,
    pub(super) reply: Arc<dyn Owed>,
    /// Its number with the actor that is waited for, where there is a cluster.
    pub(super) called: Option<u64>,
    /// Whether the handler is suspended: until then it may still end, and leave the ask to a task.
    pub(super) counts: bool,
}

impl Edge {
    /// Whether its handler has not been suspended since.
    pub(crate) fn is_new(&self) -> bool {
        !self.counts
    }
}

/// Somebody who waits for an actor's reply.
#[derive(Clone)]
pub(crate) enum Caller {
    /// An actor of this node.
    Here(Arc<dyn AnyPlace>),
    /// Actors of other nodes, the asking one last.
    Elsewhere(Arc<[ActorId]>),
}

impl Drop for Edge {
    fn drop(&mut self) {
        if let Some(id) = self.called {
            forget_caller(&self.to, id);
        }
    }
}

/// Takes back that somebody waits for the actor.
pub(crate) fn forget_caller(place: &Arc<dyn AnyPlace>, id: u64) {
    let mut inner = place.header().mailbox.lock();
    let caller = inner.extras.as_mut().and_then(|extras| extras.callers.remove(&id));
    // Released before dropping: the last reference to an actor may go.
    drop(inner);
    drop(caller);
}
