//! Addresses that keep nothing in memory.

use std::sync::{Arc, Weak};

use crate::actor::Actor;
use crate::address::actor_ref::ActorRef;
use crate::address::place::AnyPlace;
use crate::address::typed::Place;
use crate::node::shared::Node;

/// An address that does not keep a stopped actor's memory.
///
/// ```
/// use althing::{Node, actor};
///
/// #[derive(Default)]
/// struct Counter(u64);
///
/// #[actor(name = "example.counter")]
/// impl Counter {
///     async fn add(&mut self, n: u64) -> u64 {
///         self.0 += n;
///         self.0
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Node::builder("shop").build();
/// let counter = node.spawn(Counter::default());
/// let weak = counter.downgrade();
/// assert!(weak.upgrade().is_some());
/// counter.stop().await;
/// drop(counter);
/// assert!(weak.upgrade().is_none());
/// # Ok(())
/// # }
/// ```
pub struct WeakRef<A: Actor> {
    place: Weak<Place<A>>,
}

impl<A: Actor> ActorRef<A> {
    /// An address that does not keep the actor's memory.
    pub fn downgrade(&self) -> WeakRef<A> {
        WeakRef { place: Arc::downgrade(self.place()) }
    }
}

impl<A: Actor> WeakRef<A> {
    /// The address, if the actor's memory is still there.
    pub fn upgrade(&self) -> Option<ActorRef<A>> {
        let place = self.place.upgrade()?;
        let header = place.header();
        if !header.mailbox.lock().is_forgotten() {
            return Some(ActorRef::from_place(place));
        }
        // The directory forgot it a moment ago, so the name leads to another place by now.
        let node = Node::from_shared(header.kind.node.clone());
        header.key().map(|key| node.get::<A>(key))
    }
}

impl<A: Actor> Clone for WeakRef<A> {
    fn clone(&self) -> Self {
        Self { place: self.place.clone() }
    }
}

impl<A: Actor> std::fmt::Debug for WeakRef<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("WeakRef").field(&self.upgrade()).finish()
    }
}
