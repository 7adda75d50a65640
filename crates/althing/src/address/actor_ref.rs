//! Typed addresses. Getting one never fails, never starts anything and does no I/O.
//!
//! An address is an `Arc` of the actor's place, so sending looks nothing up.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::activation::ending::{close_for_good, kill};
use crate::activation::run::Run;
use crate::activation::stopped::Stopped;
use crate::actor::{Actor, Receives, StopReason, Terminated};
use crate::address::actor_id::{ActorId, Key};
use crate::address::call::Call;
use crate::address::place::{AnyPlace, AsAnyPlace, Place, send_system, send_system_from, wake};
use crate::address::recipient::Recipient;
use crate::mail::claim::{Guard, Value};
use crate::mail::envelope::Envelope;
use crate::mail::extras::System;
use crate::mail::mailbox::{Inner, Life, Phase, Sent};
use crate::mail::outbox;
use crate::mail::reply::ReplyTo;
use crate::node::Node;
use crate::remote;
use crate::shield::discard;

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

    /// Addresses a message. Await it to ask; see `Call` for telling.
    #[inline]
    pub fn send<M: Send + 'static>(&self, message: M) -> Call<'_, A, M, A::Way>
    where
        A: Receives<M>,
    {
        Call::new(self, message)
    }

    /// An address that knows the message's type only.
    pub fn recipient<M: Send + 'static>(&self) -> Recipient<M, A::Reply>
    where
        A: Receives<M>,
    {
        Recipient::new(self.clone())
    }

    /// An address that does not keep the actor's memory.
    pub fn downgrade(&self) -> WeakRef<A> {
        WeakRef { place: Arc::downgrade(&self.place) }
    }

    /// Whether the actor has its state in this node's memory now.
    pub fn is_active(&self) -> bool {
        self.place.header().mailbox.lock().active
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
    /// hook.
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

    /// Queues what a future of that `life` has come to, without regard to the bound; returns
    /// whether that life goes on. It belongs to the life as a timer's tick does: a later one does
    /// not get it.
    pub(crate) fn push_result<M: Send + 'static>(
        &self,
        life: Life,
        message: M,
        reply: ReplyTo<A::Reply>,
    ) -> bool
    where
        A: Receives<M>,
    {
        let header = self.place.header();
        let (id, timer) = header.kind.node.timers.due_now::<A, M, A::Way>(message, reply);
        let mut inner = header.mailbox.lock();
        if inner.has_ended() || inner.life() != life {
            // Released before dropping: the message's drop may send to us.
            drop(inner);
            discard("dropping a piped result", timer);
            return false;
        }
        let tick = Envelope::tick(id, timer.access, timer.name);
        inner.extras().timers.insert(id, timer);
        let what = inner.push_exempt(tick);
        drop(inner);
        wake(&self.place, what);
        true
    }

    /// Adds a watcher, once.
    pub(crate) fn add_watcher(&self, watcher: &Arc<dyn AnyPlace>) {
        let serial = watcher.header().serial();
        let mut inner = self.place.header().mailbox.lock();
        if !inner.has_ended() {
            inner.extras().watchers.insert(serial, watcher.clone());
            let is_elsewhere = inner.is_elsewhere();
            drop(inner);
            if is_elsewhere {
                remote::ship_watch(&self.place.as_any_place(), false);
            }
            return;
        }
        let reason = inner.extras().stopped.clone().unwrap_or(StopReason::Requested);
        // Released before telling: the watcher may be us.
        drop(inner);
        let news = Terminated { id: self.id(), reason };
        send_system(watcher, System::Terminated(news, self.place.header().serial()));
    }

    pub(crate) fn add_link(&self, other: Arc<dyn AnyPlace>) {
        let mut inner = self.place.header().mailbox.lock();
        if !inner.has_ended() {
            inner.extras().linked.insert(other.header().serial(), other);
            let is_elsewhere = inner.is_elsewhere();
            drop(inner);
            if is_elsewhere {
                remote::ship_watch(&self.place.as_any_place(), false);
            }
            return;
        }
        // Released before telling: the other may be us.
        drop(inner);
        // Nobody else takes that back: this one's end is over. And if the other is being unloaded,
        // it does not hear of it.
        forget_link(&other, self.place.header().serial());
        send_system(&other, System::Fail(StopReason::Linked(self.id())));
    }

    /// The default deadline of asks and waiting tells.
    pub(crate) fn deadline(&self) -> Duration {
        self.place.header().kind.options.deadline
    }
}

/// Asks an actor to stop after what waits; an actor that has no later life takes no more messages.
/// One that sleeps has nothing to stop. Returns the run that stops an idle actor: the caller
/// decides where it runs.
#[must_use]
pub(crate) fn request_stop(
    place: &Arc<dyn AnyPlace>,
    reason: StopReason,
    from: Sent,
) -> Option<Run> {
    let (_, is_idle) = begin_stop(place);
    if is_idle {
        return Some(Run::stopping(place.clone(), reason));
    }
    send_system_from(place, System::Stop(reason), from);
    None
}

/// Has an actor that has no later life take no more messages. Returns which life it is in, and
/// whether it was idle: then its claim is the caller's, who stops it.
fn begin_stop(place: &Arc<dyn AnyPlace>) -> (u32, bool) {
    // What the caller has told it before comes before its end.
    outbox::hand_over();
    let mut inner = place.header().mailbox.lock();
    let is_idle = inner.is_quiet();
    close_for_good(place, &mut inner);
    if is_idle {
        inner.phase = Phase::Running;
    }
    (inner.lives(), is_idle)
}

/// Takes the claim of a quiet actor, whose mailbox is locked, for the run that stops it.
pub(crate) fn claim_to_stop(
    place: &Arc<dyn AnyPlace>,
    mut inner: Guard<'_, Inner>,
    reason: StopReason,
) -> Run {
    close_for_good(place, &mut inner);
    inner.phase = Phase::Running;
    drop(inner);
    Run::stopping(place.clone(), reason)
}

/// Takes a watcher off an actor's list.
pub(crate) fn forget_watcher(place: &Arc<dyn AnyPlace>, watcher: u64) {
    let mut inner = place.header().mailbox.lock();
    let gone = inner.extras.as_mut().and_then(|extras| extras.watchers.remove(&watcher));
    // Released before dropping: the last reference to an actor may go.
    drop(inner);
    drop(gone);
}

/// Takes an actor of whose end the watcher hears off the list of those that it watches, unless it
/// watches the next life already. The caller holds the watcher's claim, so that no handler of it
/// begins another watch meanwhile.
pub(crate) fn end_watch(watcher: &Arc<dyn AnyPlace>, ended: u64) {
    let header = watcher.header();
    let watched = header.mailbox.lock().extras().watched.get(&ended).cloned();
    let watches_on = watched.and_then(|watched| watched.upgrade()).is_some_and(|place| {
        let inner = place.header().mailbox.lock();
        inner.extras.as_ref().is_some_and(|extras| extras.watchers.contains_key(&header.serial()))
    });
    if !watches_on {
        // Even a weak reference keeps the memory of a place.
        header.mailbox.lock().extras().watched.remove(&ended);
    }
}

/// Takes an actor whose life has ended off the list of those that another one is linked to.
pub(crate) fn forget_link(place: &Arc<dyn AnyPlace>, ended: u64) {
    let mut inner = place.header().mailbox.lock();
    let gone = inner.extras.as_mut().and_then(|extras| extras.linked.remove(&ended));
    // Released before dropping, as above.
    drop(inner);
    drop(gone);
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
