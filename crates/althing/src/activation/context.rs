//! What a handler can do besides changing its state: time, randomness, timers, children, watching,
//! stopping.
//!
//! `Context<A>` is `RunCore` with the actor's type put back on; it lives in the body of the running
//! handler and is never moved while one runs. It is the only source of time and randomness for an
//! actor, which is what makes simulation possible.

use std::error::Error;
use std::future::Future;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use crate::activation::guard;
use crate::activation::turn;
use crate::actor::{Actor, Receives, StopReason};
use crate::address::actor_id::{Activation, ActorId};
use crate::address::actor_ref::{ActorRef, forget_watcher};
use crate::address::child::Parent;
use crate::address::key::{self, KeyError};
use crate::address::kind::{Start, boxed_factory};
use crate::address::place::{AnyPlace, AsAnyPlace, Debt, Header, Place};
use crate::error::ActorError;
use crate::mail::reply::ReplyTo;
use crate::node::Node;
use crate::node::env::Timestamp;
use crate::rejection::Rejection;
use crate::timer::pending::Wakes;
use crate::timer::{Schedule, TimerId};
use crate::topic::Topic;

const RUNS_ON: u8 = 0;
const STOPS: u8 = 1;
const PASSIVATES: u8 = 2;
const FAILS: u8 = 3;

/// The untyped part, one per body.
pub(crate) struct RunCore {
    /// Kept alive by the run that owns the body; `None` in pooled bodies.
    place: Option<NonNull<dyn AnyPlace>>,
    stop: AtomicU8,
}

// SAFETY: the pointer stands for a shared reference to a `Send + Sync` place.
unsafe impl Send for RunCore {}
// SAFETY: as above; the rest is atomic.
unsafe impl Sync for RunCore {}

/// A handler's access to its actor's surroundings.
///
/// ```
/// use std::time::Duration;
///
/// use althing::{ActorRef, Context, Node, actor};
///
/// struct Clerk;
/// struct Office;
///
/// #[actor(name = "example.clerk")]
/// impl Clerk {
///     async fn greet(&self, name: String) -> String {
///         format!("Good day, {name}")
///     }
/// }
///
/// #[actor(name = "example.office")]
/// impl Office {
///     async fn hire(&mut self, ctx: &mut Context<Self>) -> ActorRef<Clerk> {
///         ctx.after(Duration::from_secs(3600), office_messages::Close);
///         ctx.spawn(async |_| Ok(Clerk)) // a child: it stops when the office does
///     }
///
///     async fn close(&mut self, ctx: &mut Context<Self>) {
///         ctx.stop();
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let office = Node::builder("town").build().spawn(Office);
/// let clerk = office.hire().await?;
/// assert_eq!(clerk.greet("Ada".into()).await?, "Good day, Ada");
/// office.close().await?;
/// clerk.stopped().await;
/// # Ok(())
/// # }
/// ```
#[repr(transparent)]
pub struct Context<A: Actor> {
    core: RunCore,
    actor: PhantomData<fn() -> A>,
}

impl RunCore {
    pub(crate) const fn nobody() -> Self {
        Self { place: None, stop: AtomicU8::new(RUNS_ON) }
    }

    pub(crate) fn new(place: *const dyn AnyPlace) -> Self {
        let place = NonNull::new(place.cast_mut());
        Self { place, stop: AtomicU8::new(RUNS_ON) }
    }

    fn place(&self) -> &dyn AnyPlace {
        let place = self.place.expect("a core in use has a place");
        // SAFETY: the run that owns this body owns a reference to the place.
        unsafe { place.as_ref() }
    }

    pub(crate) fn header(&self) -> &Header {
        self.place().header()
    }

    pub(crate) fn id(&self) -> ActorId {
        self.header().id()
    }

    #[inline]
    pub(crate) fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed) != RUNS_ON
    }

    pub(crate) fn take_stop(&self) -> Option<StopReason> {
        if !self.stops() {
            return None;
        }
        match self.stop.swap(RUNS_ON, Ordering::Relaxed) {
            STOPS => Some(StopReason::Requested),
            PASSIVATES => Some(StopReason::Passivated),
            FAILS => self.header().mailbox.lock().extras().failure.take().map(StopReason::Failed),
            _ => None,
        }
    }
}

impl<A: Actor> Context<A> {
    /// Puts the type back on.
    pub(crate) fn of(core: *mut RunCore) -> *mut Self {
        core.cast()
    }

    /// The actor's own address.
    pub fn address(&self) -> ActorRef<A> {
        let place: *const Place<A> = std::ptr::from_ref(self.core.place()).cast();
        // SAFETY: a `Context<A>` is made only for places of type `A`, which an `Arc` in the run
        // keeps alive.
        unsafe { Arc::increment_strong_count(place) };
        // SAFETY: the count was raised for this `Arc`.
        ActorRef::from_place(unsafe { Arc::from_raw(place) })
    }

    /// Identity of the actor.
    pub fn id(&self) -> ActorId {
        self.core.id()
    }

    /// Key of a named actor; empty for an anonymous one.
    pub fn key(&self) -> &str {
        self.core.header().key().map_or("", |key| key)
    }

    /// Key of a named actor as the type that stands for it.
    ///
    /// # Errors
    /// The key is no such thing; the error names it and the actor's kind.
    pub fn key_as<K>(&self) -> Result<K, KeyError>
    where
        K: FromStr<Err: Error + Send + Sync + 'static>,
    {
        key::parse(A::NAME, self.key())
    }

    /// The node it runs on.
    pub fn node(&self) -> Node {
        Node::from_shared(self.core.header().kind.node.clone())
    }

    /// Wall-clock time, milliseconds since 1970 in UTC; virtual under simulation.
    pub fn now(&self) -> Timestamp {
        self.core.header().kind.node.env.now()
    }

    /// Time since the node started; never goes back.
    pub fn elapsed(&self) -> Duration {
        self.core.header().kind.node.env.elapsed()
    }

    /// A random number; seeded under simulation. Not for secrets.
    pub fn random_u64(&self) -> u64 {
        self.core.header().kind.node.env.random_u64()
    }

    /// Stops the actor after this handler; what waits in its mailbox is refused, or kept for the
    /// next life of a named actor.
    pub fn stop(&mut self) {
        self.core.stop.store(STOPS, Ordering::Relaxed);
    }

    /// Unloads the actor after this handler; its next message brings it back.
    pub fn passivate(&mut self) {
        self.core.stop.store(PASSIVATES, Ordering::Relaxed);
    }

    /// Fails the actor after this handler, as a panic would: supervision decides what becomes of
    /// it. Unlike after a panic, the handler's reply is sent. The cause is in `StopReason::Failed`,
    /// for hooks and for those who watch.
    pub fn fail(&mut self, error: impl Into<ActorError>) {
        let error = error.into();
        let earlier = self.core.header().mailbox.lock().extras().failure.replace(error);
        // Dropped outside of the lock: it is foreign.
        drop(earlier);
        self.core.stop.store(FAILS, Ordering::Relaxed);
    }

    /// Sends `message` to the actor itself after `delay`, exempt from the mailbox's bound.
    ///
    /// The actor stays in memory for it: it is not unloaded for being idle. Whatever ends this life
    /// ends the timer.
    pub fn after<M>(&mut self, delay: Duration, message: M) -> TimerId
    where
        A: Receives<M>,
        M: Send + 'static,
    {
        let mut message = Some(message);
        let schedule = Schedule { delay, repeats: false, wakes: Wakes::No };
        self.start_timer(schedule, move || message.take())
    }

    /// As `after`, but the timer outlives unloading and brings the actor back when it is due. A
    /// stop, a failure and the end of the process end it.
    pub fn wake_after<M>(&mut self, delay: Duration, message: M) -> TimerId
    where
        A: Receives<M>,
        M: Send + 'static,
    {
        let mut message = Some(message);
        let schedule = Schedule { delay, repeats: false, wakes: Wakes::Yes };
        self.start_timer(schedule, move || message.take())
    }

    /// Sends clones of `message` to the actor itself each `period`, exempt from the mailbox's
    /// bound. A tick whose predecessor's handler has not ended yet is left out.
    ///
    /// Ticks do not keep the actor in memory: an actor that gets nothing else counts as idle.
    pub fn every<M>(&mut self, period: Duration, message: M) -> TimerId
    where
        A: Receives<M>,
        M: Clone + Send + 'static,
    {
        self.every_with(period, move || message.clone())
    }

    /// As `every`, with a message that is made anew each time.
    pub fn every_with<M>(
        &mut self,
        period: Duration,
        mut make: impl FnMut() -> M + Send + 'static,
    ) -> TimerId
    where
        A: Receives<M>,
        M: Send + 'static,
    {
        let schedule = Schedule { delay: period, repeats: true, wakes: Wakes::No };
        self.start_timer(schedule, move || Some(make()))
    }

    fn start_timer<M: Send + 'static>(
        &self,
        schedule: Schedule,
        message: impl FnMut() -> Option<M> + Send + 'static,
    ) -> TimerId
    where
        A: Receives<M>,
    {
        let me = self.address().place().as_any_place();
        self.timers().start::<A, M, A::Way>(&me, schedule, message)
    }

    /// Cancels a timer; returns whether it was still to fire. One whose message waits in the
    /// mailbox does not fire any more.
    pub fn cancel(&mut self, timer: TimerId) -> bool {
        self.timers().cancel(self.core.header(), timer)
    }

    fn timers(&self) -> &Arc<crate::timer::Timers> {
        &self.core.header().kind.node.timers
    }

    /// Starts an anonymous child, which stops when this actor stops, and restarts by its own
    /// policy.
    pub fn spawn<C, F, B>(&mut self, factory: F) -> ActorRef<C>
    where
        C: Actor,
        F: Fn(Start<C>) -> B + Send + Sync + 'static,
        B: Future<Output = Result<C, ActorError>> + Send + 'static,
    {
        let parent = Parent::of(&self.address());
        self.node().spawn_child(boxed_factory(factory), Some(&parent))
    }

    /// Calls this actor's `terminated` hook once `other` has stopped; at once if it has already.
    /// Watching twice tells once. The watch ends with this actor's own life, but not when it is
    /// unloaded.
    pub fn watch<B: Actor>(&mut self, other: &ActorRef<B>) {
        let me = self.address().place().as_any_place();
        let them = other.place().as_any_place();
        if Arc::ptr_eq(&me, &them) {
            // It cannot hear of its own end.
            return;
        }
        let mut inner = self.core.header().mailbox.lock();
        inner.extras().watched.insert(them.header().serial(), Arc::downgrade(&them));
        drop(inner);
        other.add_watcher(&me);
    }

    /// Takes `watch` back.
    pub fn unwatch<B: Actor>(&mut self, other: &ActorRef<B>) {
        let them = other.place().as_any_place();
        let mut inner = self.core.header().mailbox.lock();
        if let Some(extras) = &mut inner.extras {
            extras.watched.remove(&them.header().serial());
        }
        drop(inner);
        forget_watcher(&them, self.core.header().serial());
    }

    /// Ties two lives: when one of them stops, so does the other.
    pub fn link<B: Actor>(&mut self, other: &ActorRef<B>) {
        let me = self.address().place().as_any_place();
        let them = other.place().as_any_place();
        if Arc::ptr_eq(&me, &them) {
            return;
        }
        let entry = (them.header().serial(), them);
        self.core.header().mailbox.lock().extras().linked.extend([entry]);
        other.add_link(me);
    }

    /// Takes a permit from the bucket `name`: at most `burst` at once, refilled `per_second`.
    ///
    /// # Errors
    /// There is none; `RateLimited` says when the next one comes.
    pub fn take_permit(
        &self,
        name: &'static str,
        per_second: u32,
        burst: u32,
    ) -> Result<(), Rejection> {
        let header = self.core.header();
        let now = header.kind.node.env.elapsed();
        let mut inner = header.mailbox.lock();
        let taken = guard::take_permit(&mut inner.extras().buckets, name, (per_second, burst), now);
        taken.map_err(|retry_after| Rejection::RateLimited { retry_after })
    }

    /// Puts the stashed messages back, in front of those that wait.
    pub fn unstash_all(&mut self) {
        let header = self.core.header();
        let mut inner = header.mailbox.lock();
        let extras = inner.extras();
        extras.unstashed.append(&mut extras.stash);
        // The runner puts them in front of what it has taken out of the mailbox already.
        header.call_attention();
    }

    /// Runs CPU-heavy work on the node's bounded pool; this handler waits for it without holding a
    /// reactor thread.
    ///
    /// # Panics
    /// Passes on a panic of `work`.
    pub fn blocking<T, W>(&self, work: W) -> impl Future<Output = T> + Send + use<T, W, A>
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
    {
        self.core.header().kind.node.blocking.run(work)
    }

    /// Runs `future` beside the actor; its output comes back as a message, exempt from the
    /// mailbox's bound, unless the actor has restarted or stopped meanwhile. Until then the actor
    /// is not unloaded for being idle.
    pub fn pipe<F, M, W>(&mut self, future: F, wrap: W)
    where
        A: Receives<M>,
        M: Send + 'static,
        F: Future + Send + 'static,
        W: FnOnce(F::Output) -> M + Send + 'static,
    {
        let me = self.address();
        let life = me.life();
        let debt = Debt::of(me.place().as_any_place());
        self.detach(async move {
            // Settled when the message is queued, or the future is dropped unfinished.
            let _debt = debt;
            let output = future.await;
            me.push_result(life, wrap(output), ReplyTo::nowhere());
        });
    }

    /// Runs `future` beside the actor, for its effects. It outlives the actor.
    pub fn detach(&mut self, future: impl Future<Output = ()> + Send + 'static) {
        let node = self.core.header().kind.node.clone();
        turn::with_the_turn(move || node.env.spawn(future));
    }

    /// Publishes with the next number, when this turn lets go of what it lets out: at once, unless
    /// turns are held. Why it could not be published by then is logged.
    pub fn publish<T: Send + Sync + 'static>(&mut self, topic: &Topic<T>, payload: T) {
        let topic = topic.clone();
        turn::with_the_turn(move || {
            if let Err(error) = topic.publish(payload) {
                tracing::error!(%error, "an event of a turn was not published");
            }
        });
    }

    /// This life of the actor: who, where, and in which epoch.
    pub fn activation(&self) -> Activation {
        self.core.header().activation()
    }
}

impl<A: Actor> std::fmt::Debug for Context<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Context").field(&self.id()).finish()
    }
}
