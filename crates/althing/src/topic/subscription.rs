//! Who is subscribed to a topic, as its chunks list them, and the handle by which a subscription
//! ends.

use std::sync::Arc;

use super::chunk::Listed;
use super::fan_out::{Deliver, deliver_to_actors, deliver_to_streams};
use super::published::{Published, Sequence};
use super::stream::Buffer;
use crate::actor::EventHandler;
use crate::address::place::{AnyPlace, AsAnyPlace, Place};
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

/// One subscription in a chunk's list.
pub(super) struct Subscriber<T> {
    pub(super) id: u64,
    since: Sequence,
    /// `Header::stops` of the actor when it subscribed.
    pub(super) stops: u32,
    pub(super) listener: Listener<T>,
    pub(super) deliver: Deliver<T>,
}

/// Where events go.
pub(super) enum Listener<T> {
    Actor(Arc<dyn AnyPlace>),
    Stream(Arc<Buffer<T>>),
}

impl<T: Send + Sync + 'static> Subscriber<T> {
    /// An actor that gets every event after `since`.
    pub(super) fn actor<A: EventHandler<T>>(
        id: u64,
        since: Sequence,
        place: &Arc<Place<A>>,
    ) -> Self {
        let stops = place.header().stops();
        let listener = Listener::Actor(place.as_any_place());
        Self { id, since, stops, listener, deliver: deliver_to_actors::<A, T> }
    }

    /// A stream that gets every event after `since`.
    pub(super) fn stream(id: u64, since: Sequence, buffer: Arc<Buffer<T>>) -> Self {
        let listener = Listener::Stream(buffer);
        Self { id, since, stops: 0, listener, deliver: deliver_to_streams::<T> }
    }
}

impl<T> Subscriber<T> {
    /// Whether it came after the event. Who has a higher id came later.
    #[inline]
    pub(super) fn misses(&self, event: &Published<T>) -> bool {
        event.sequence <= self.since
    }
}

impl<T> Listed for Subscriber<T> {
    fn id(&self) -> u64 {
        self.id
    }
}

impl<T> Clone for Subscriber<T> {
    fn clone(&self) -> Self {
        let listener = match &self.listener {
            Listener::Actor(place) => Listener::Actor(place.clone()),
            Listener::Stream(buffer) => Listener::Stream(buffer.clone()),
        };
        Self { listener, ..*self }
    }
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
