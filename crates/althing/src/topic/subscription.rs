//! The handle by which a subscription ends.

use super::published::Sequence;
use crate::shield::shielded;

/// Keeps an actor subscribed until dropped.
///
/// It also keeps the topic. Dropped while an event is being delivered on another thread, that event
/// may still arrive.
#[must_use = "dropping it unsubscribes"]
pub struct Subscription {
    /// Until it is dropped.
    seat: Option<Box<dyn Seated>>,
}

/// A subscriber's place in a topic whose type of events is forgotten.
pub(super) trait Seated: Send + Sync {
    /// The topic's last event when it was taken.
    fn since(&self) -> Sequence;
    /// Gives it back.
    fn leave(self: Box<Self>);
}

impl Subscription {
    pub(super) fn new(seat: impl Seated + 'static) -> Self {
        Self { seat: Some(Box::new(seat)) }
    }

    /// The topic's last event at the moment of subscribing; every later one is delivered.
    pub fn since(&self) -> Sequence {
        self.seat.as_ref().expect("it is given back by the drop").since()
    }

    /// Ends the subscription.
    pub fn cancel(self) {
        drop(self);
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(seat) = self.seat.take() {
            // It may be dropped by an actor's state or in a panic.
            shielded("the end of a subscription", || seat.leave());
        }
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription").field("since", &self.since()).finish_non_exhaustive()
    }
}
