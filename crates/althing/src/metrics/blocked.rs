//! Who is at a standstill, and for whom it waits: for a test that hangs, and for a console.

use crate::activation::waits;
use crate::address::actor_id::ActorId;
use crate::mail::mailbox::Phase;
use crate::metrics::inspection::Inspector;

/// An actor with work that it has not finished.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Blocked {
    /// Who it is.
    pub id: ActorId,
    /// Messages that wait in its mailbox.
    pub depth: usize,
    /// Whether a handler or hook of it has begun and not ended.
    pub is_at_work: bool,
    /// Whose replies its handlers wait for.
    pub waits_for: Vec<ActorId>,
}

impl Inspector {
    /// The actors that have begun or been sent something and have not finished it, in the order in
    /// which they were made. Visits every actor of the node.
    pub fn blocked(&self) -> Vec<Blocked> {
        let mut blocked = Vec::new();
        self.node().holdings().directory.for_each(|place| {
            let header = place.header();
            if header.mailbox.is_quiet() {
                return;
            }
            let inner = header.mailbox.lock();
            let (depth, is_at_work) = (inner.len(), inner.phase == Phase::Running);
            drop(inner);
            if depth > 0 || is_at_work {
                let waits_for = waits::awaited_by(place);
                blocked.push(Blocked { id: header.id(), depth, is_at_work, waits_for });
            }
        });
        blocked.sort_by(|one, other| one.id.cmp(&other.id));
        blocked
    }
}
