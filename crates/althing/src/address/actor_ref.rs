//! Typed addresses. Getting one never fails, never starts anything and does no I/O.
//!
//! An address is an `Arc` of the actor's place, so sending looks nothing up.

use std::sync::Arc;
use std::time::Duration;

use crate::activation::ending::kill;
use crate::activation::run::Run;
use crate::activation::stopped::Stopped;
use crate::activation::stopping::begin_stop;
use crate::actor::Actor;
use crate::address::actor_id::{ActorId, Key};
use crate::address::place::{AnyPlace, AsAnyPlace};
use crate::address::signal::send_system;
use crate::address::tie::{self, Tie};
use crate::address::typed::Place;
use crate::address::watching::forget_link;
use crate::mail::extras::System;
use crate::mail::mailbox::{Life, Sent};
use crate::mail::outbox;
use crate::node::shared::Node;
use crate::remote::outgoing::ship_watch;
use crate::stop_reason::{StopReason, Terminated};

/// Address of an actor of type `A`.
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
/// let node = Node::builder("shop").actor(async |_| Ok(Counter::default())).build();
/// let alice = node.get::<Counter>("alice");
/// assert!(!alice.is_active(), "an address starts nobody");
/// alice.add(2).tell().await?;
/// assert_eq!(node.get::<Counter>("alice").add(3).await?, 5);
/// assert_eq!(alice.id().to_string(), "example.counter/alice");
/// alice.stop().await;
/// assert_eq!(alice.add(1).await?, 1, "the next life begins anew");
/// # Ok(())
/// # }
/// ```
pub struct ActorRef<A: Actor> {
    place: Arc<Place<A>>,
}

impl<A: Actor> ActorRef<A> {
    pub(crate) fn from_place(place: Arc<Place<A>>) -> Self {
        Self { place }
    }

    pub(crate) fn place(&self) -> &Arc<Place<A>> {
        &self.place
    }

    /// Identity of the actor.
    pub fn id(&self) -> ActorId {
        self.place.header().id()
    }

    /// Key of a named actor.
    pub fn key(&self) -> Option<&Key> {
        let header = self.place.header();
        header.key().filter(|_| header.kind.home.is_none())
    }

    /// The node it lives on.
    pub fn node(&self) -> Node {
        Node::from_shared(self.place.header().kind.node.clone())
    }

    /// Whether the actor has its state in this node's memory now.
    pub fn is_active(&self) -> bool {
        self.place.header().mailbox.lock().is_active()
    }

    /// Whether it has stopped for good: sends will be refused.
    pub fn is_stopped(&self) -> bool {
        // From here on the caller's own tells are refused too.
        outbox::hand_over();
        self.place.header().mailbox.lock().is_closed()
    }

    /// Messages that wait on this node, or are about to run.
    pub fn mailbox_depth(&self) -> usize {
        self.place.header().mailbox.depth()
    }

    /// Stops the actor after the messages that wait now, and waits for the end of its `stopping`
    /// hook. If it unloads or stops itself before they have run, that is the end of the life in
    /// which they run.
    ///
    /// Awaited in one of the actor's own handlers it is ready at once: the actor stops when that
    /// handler has ended. An idle actor's `stopping` hook begins on the caller's stack, so hold no
    /// lock that the hook takes.
    ///
    /// # Cancel safety
    /// The actor stops even if the future is dropped.
    pub fn stop(&self) -> Stopped {
        let place = self.place.as_any_place();
        // Of this life: what its `stopping` hook sends may begin the next.
        let (life, is_idle) = begin_stop(&place);
        if is_idle {
            Run::stop_now(place.clone(), StopReason::Requested);
        } else {
            send_system(&place, System::Stop(StopReason::Requested));
        }
        Stopped::of_life(place, life)
    }

    /// Stops the actor at once: no hook runs, what waits is refused, a handler that waits is
    /// dropped.
    pub fn kill(&self) {
        kill(&self.place.as_any_place(), Sent::Here);
    }

    /// Waits until the present life has ended; ready at once if there is none, and in the actor's
    /// own handlers.
    pub fn stopped(&self) -> Stopped {
        Stopped::of(self.place.as_any_place())
    }

    /// Starts a named actor without a message.
    pub fn activate(&self) {
        send_system(&self.place.as_any_place(), System::Start);
    }

    /// The life the actor is in.
    pub(crate) fn life(&self) -> Life {
        self.place.header().mailbox.lock().life()
    }

    /// Adds a watcher, once.
    pub(crate) fn add_watcher(&self, watch: Tie<Arc<dyn AnyPlace>>) {
        let mut inner = self.place.header().mailbox.lock();
        if !inner.has_ended() {
            tie::add(&mut inner.extras().watchers, watch.other.header().serial(), watch);
            let is_elsewhere = inner.is_elsewhere();
            drop(inner);
            if is_elsewhere {
                ship_watch(&self.place.as_any_place(), false);
            }
            return;
        }
        let reason = inner.last_end();
        // Released before telling: the watcher may be us.
        drop(inner);
        let news = Terminated { id: self.id(), reason };
        let serial = self.place.header().serial();
        send_system(&watch.other, System::Terminated(news, serial, watch.number));
    }

    pub(crate) fn add_link(&self, link: Tie<Arc<dyn AnyPlace>>) {
        let mut inner = self.place.header().mailbox.lock();
        if !inner.has_ended() {
            tie::add(&mut inner.extras().linked, link.other.header().serial(), link);
            let is_elsewhere = inner.is_elsewhere();
            drop(inner);
            if is_elsewhere {
                ship_watch(&self.place.as_any_place(), false);
            }
            return;
        }
        // Released before telling: the other may be us.
        drop(inner);
        // Nobody else takes that back: this one's end is over. And if the other is being unloaded,
        // it does not hear of it.
        forget_link(&link.other, self.place.header().serial(), link.number);
        send_system(&link.other, System::Fail(StopReason::Linked(self.id())));
    }

    /// The default deadline of asks and waiting tells.
    pub(crate) fn deadline(&self) -> Duration {
        self.place.header().kind.options.deadline
    }
}

impl<A: Actor> Clone for ActorRef<A> {
    fn clone(&self) -> Self {
        Self { place: self.place.clone() }
    }
}

impl<A: Actor> PartialEq for ActorRef<A> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.place, &other.place)
    }
}

impl<A: Actor> Eq for ActorRef<A> {}

impl<A: Actor> std::hash::Hash for ActorRef<A> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.place.header().serial().hash(state);
    }
}

impl<A: Actor> std::fmt::Debug for ActorRef<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ActorRef").field(&self.id()).finish()
    }
}
