//! The handle by which a subscription ends.

use super::published::Sequence;
use crate::shield::shielded;

/// Keeps an actor subscribed until dropped.
///
/// It also keeps the topic. Dropped while an event is being delivered on another thread, that event
/// may still arrive.
#[must_use = "dropping it unsubscribes"]
pub struct Subscription {
    since: Sequence,
    end: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl Subscription {
    pub(super) fn new(since: Sequence, end: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self { since, end: Some(Box::new(end)) }
    }

    /// The topic's last event at the moment of subscribing; every later one is delivered.
    pub fn since(&self) -> Sequence {
        self.since
    }

    /// Ends the subscription.
    pub fn cancel(self) {
        drop(self);
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            // It may be dropped by an actor's state or in a panic.
            shielded("the end of a subscription", end);
        }
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription").field("since", &self.since).finish_non_exhaustive()
    }
}
