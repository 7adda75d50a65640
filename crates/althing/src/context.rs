//! What a handler can do besides changing its state: time, randomness, timers, children, watching, stopping.
//!
//! `Context<A>` is `RunCore` with the actor's type put back on; it lives in the body of the running handler and is never moved while
//! one runs. It is the only source of time and randomness for an actor, which is what makes simulation possible.

use std::future::Future;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use crate::actor::{Actor, Handler, StopReason};
use crate::actor_id::ActorId;
use crate::actor_ref::ActorRef;
use crate::cell::{AnyCell, AsAnyCell, Cell, Header};
use crate::env::Timestamp;
use crate::error::ActorError;
use crate::guard;
use crate::kind::{Start, boxed_factory};
use crate::node::Node;
use crate::reply::ReplyTo;
use crate::timer::TimerId;

const RUNS_ON: u8 = 0;
const STOPS: u8 = 1;
const PASSIVATES: u8 = 2;

/// The untyped part, one per body.
pub(crate) struct RunCore {
    /// Kept alive by the run that owns the body; `None` in pooled bodies.
    cell: Option<NonNull<dyn AnyCell>>,
    stop: AtomicU8,
}

// SAFETY: the pointer stands for a shared reference to a `Send + Sync` cell.
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
        Self { cell: None, stop: AtomicU8::new(RUNS_ON) }
    }

    pub(crate) fn new(cell: *const dyn AnyCell) -> Self {
        let cell = NonNull::new(cell.cast_mut());
        Self { cell, stop: AtomicU8::new(RUNS_ON) }
    }

    fn cell(&self) -> &dyn AnyCell {
        let cell = self.cell.expect("a core in use has a cell");
        // SAFETY: the run that owns this body owns a reference to the cell.
        unsafe { cell.as_ref() }
    }

    pub(crate) fn header(&self) -> &Header {
        self.cell().header()
    }

    pub(crate) fn id(&self) -> ActorId {
        self.header().id()
    }

    #[inline]
    pub(crate) fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed) != RUNS_ON
    }

    pub(crate) fn take_stop(&self) -> Option<StopReason> {
        match self.stop.swap(RUNS_ON, Ordering::Relaxed) {
            STOPS => Some(StopReason::Requested),
            PASSIVATES => Some(StopReason::Passivated),
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
        let cell: *const Cell<A> = std::ptr::from_ref(self.core.cell()).cast();
        // SAFETY: a `Context<A>` is made only for cells of type `A`, which an `Arc` in the run keeps alive.
        unsafe { Arc::increment_strong_count(cell) };
        // SAFETY: the count was raised for this `Arc`.
        ActorRef::from_cell(unsafe { Arc::from_raw(cell) })
    }

    /// Identity of the actor.
    pub fn id(&self) -> ActorId {
        self.core.id()
    }

    /// Key of a named actor; empty for an anonymous one.
    pub fn key(&self) -> &str {
        self.core.header().key().map_or("", |key| key)
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

    /// Stops the actor after this handler; what waits in its mailbox is refused, or kept for the next life of a named actor.
    pub fn stop(&mut self) {
        self.core.stop.store(STOPS, Ordering::Relaxed);
    }

    /// Unloads the actor after this handler; its next message brings it back.
    pub fn passivate(&mut self) {
        self.core.stop.store(PASSIVATES, Ordering::Relaxed);
    }

    /// Sends `message` to the actor itself after `delay`, exempt from the mailbox's bound.
    pub fn after<M>(&mut self, delay: Duration, message: M) -> TimerId
    where
        A: Handler<M>,
        M: Send + 'static,
    {
        self.timers().after(&self.address(), delay, message)
    }

    /// Sends clones of `message` to the actor itself each `period`, exempt from the mailbox's bound. A tick whose
    /// predecessor has not run yet is skipped.
    pub fn every<M>(&mut self, period: Duration, message: M) -> TimerId
    where
        A: Handler<M>,
        M: Clone + Send + Sync + 'static,
    {
        self.timers().every(&self.address(), period, message)
    }

    /// Cancels a timer; returns whether it was still to fire.
    #[expect(clippy::needless_pass_by_value, reason = "a cancelled timer has no further use")]
    pub fn cancel(&mut self, timer: TimerId) -> bool {
        self.timers().cancel(&timer)
    }

    fn timers(&self) -> &Arc<crate::timer::Timers> {
        &self.core.header().kind.node.timers
    }

    /// Starts an anonymous child, which stops when this actor stops, and restarts by its own policy.
    pub fn spawn<C, F, B>(&mut self, factory: F) -> ActorRef<C>
    where
        C: Actor,
        F: Fn(Start<C>) -> B + Send + Sync + 'static,
        B: Future<Output = Result<C, ActorError>> + Send + 'static,
    {
        let child = self.node().spawn_child(boxed_factory(factory));
        let me = self.address().cell().as_any_cell();
        child.cell().header().mailbox.lock().extras().parent = Some(me);
        let cell = child.cell().as_any_cell();
        self.core.header().mailbox.lock().extras().children.push(cell);
        child
    }

    /// Calls this actor's `terminated` hook once `other` has stopped; at once if it has already.
    pub fn watch<B: Actor>(&mut self, other: &ActorRef<B>) {
        other.add_watcher(self.address().cell().as_any_cell());
    }

    /// Takes `watch` back.
    pub fn unwatch<B: Actor>(&mut self, other: &ActorRef<B>) {
        other.remove_watcher(self.core.header().serial());
    }

    /// Ties two lives: when one of them stops, so does the other.
    pub fn link<B: Actor>(&mut self, other: &ActorRef<B>) {
        let me = self.address().cell().as_any_cell();
        self.core.header().mailbox.lock().extras().linked.push(other.cell().as_any_cell());
        other.add_link(me);
    }

    /// Takes a permit from the bucket `name`: at most `burst` at once, refilled `per_second`.
    pub fn take_permit(&self, name: &'static str, per_second: u32, burst: u32) -> bool {
        let header = self.core.header();
        let now = header.kind.node.env.elapsed();
        let mut inner = header.mailbox.lock();
        guard::take_permit(&mut inner.extras().buckets, name, (per_second, burst), now)
    }

    /// Puts the stashed messages back, in front of those that wait.
    pub fn unstash_all(&mut self) {
        let mut inner = self.core.header().mailbox.lock();
        let stash = std::mem::take(&mut inner.extras().stash);
        inner.unstash(stash);
    }

    /// Runs CPU-heavy work on the node's bounded pool; this handler waits for it without holding a reactor thread.
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

    /// Runs `future` beside the actor; its output comes back as a message, exempt from the mailbox's bound, unless the actor
    /// has restarted or stopped meanwhile.
    pub fn pipe<F, M, W>(&mut self, future: F, wrap: W)
    where
        A: Handler<M>,
        M: Send + 'static,
        F: Future + Send + 'static,
        W: FnOnce(F::Output) -> M + Send + 'static,
    {
        let me = self.address();
        let life = me.life();
        self.detach(async move {
            let output = future.await;
            me.push_exempt(life, wrap(output), ReplyTo::nowhere());
        });
    }

    /// Runs `future` beside the actor, for its effects.
    pub fn detach(&mut self, future: impl Future<Output = ()> + Send + 'static) {
        self.core.header().kind.node.env.spawn(future);
    }
}

impl<A: Actor> std::fmt::Debug for Context<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Context").field(&self.id()).finish()
    }
}
