//! Who is subscribed to a topic, as its chunks list them.

use std::sync::Arc;

use super::buffer::Buffer;
use super::chunk::Listed;
use super::fan_out::{Visitor, deliver_to_actors, deliver_to_streams};
use super::published::{Published, Sequence};
use crate::actor::EventHandler;
use crate::address::place::{AnyPlace, AsAnyPlace};
use crate::address::typed::Place;

/// Delivers to as many subscribers from the first on as have this same function, which is made for
/// their type, and as the visitor's share allows, at least one; returns how many that were. Those
/// who are gone are added to the list.
///
/// # Safety
/// There is a first subscriber, and it has this function.
pub(super) type Deliver<T> =
    unsafe fn(&mut Visitor<'_>, &[Subscriber<T>], &Arc<Published<T>>, &mut Vec<u64>) -> usize;

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
