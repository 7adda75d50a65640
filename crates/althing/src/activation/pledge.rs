//! What a life of an actor waits for besides its handlers: a future that it has piped, a stream that
//! it has attached. Its mailbox counts them, so that it is not unloaded meanwhile; no later life is
//! kept in memory for them.

use std::sync::Arc;

use crate::address::place::AnyPlace;
use crate::mail::mailbox::Life;

/// One of them; it is settled when this drops.
pub(crate) struct Pledge {
    actor: Arc<dyn AnyPlace>,
    life: Life,
}

impl Pledge {
    /// For the life that the actor is in.
    pub(crate) fn of(actor: Arc<dyn AnyPlace>) -> Self {
        let mut inner = actor.header().mailbox.lock();
        let life = inner.life();
        inner.extras().pledges += 1;
        drop(inner);
        Self { actor, life }
    }

    /// Whose it is.
    pub(crate) fn life(&self) -> Life {
        self.life
    }
}

impl Drop for Pledge {
    fn drop(&mut self) {
        let mut inner = self.actor.header().mailbox.lock();
        let spare = inner.settle_pledge(self.life);
        // Released before dropping, as all that lies beside a mailbox.
        drop(inner);
        drop(spare);
    }
}
