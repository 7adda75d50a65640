//! What a handler can do besides changing its state: time, randomness, timers, children, watching,
//! stopping.
//!
//! `Context<A>` is `RunCore` with the actor's type put back on; it lives in the body of the running
//! handler and is never moved while one runs. It is the only source of time and randomness for an
//! actor, which is what makes simulation possible.

mod relatives;
mod timers;

use std::future::Future;
use std::marker::PhantomData;
use std::time::Duration;

use crate::activation::core::RunCore;
use crate::activation::{guard, turn};
use crate::actor::Actor;
use crate::address::actor_id::{Activation, ActorId};
use crate::error::ActorError;
use crate::node::shared::Node;
use crate::node::timestamp::Timestamp;
use crate::rejection::Rejection;
use crate::remote::cluster::NotMoved;

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

impl<A: Actor> Context<A> {
    /// Puts the type back on.
    pub(crate) fn of(core: *mut RunCore) -> *mut Self {
        core.cast()
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

    /// Wall-clock time, milliseconds since 1970 in UTC; virtual under simulation. It steps forward
    /// with the machine's clock and never goes back while the node runs.
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
        self.core.stop();
    }

    /// Unloads the actor after this handler; its next message brings it back. One that cannot come
    /// back, because it has no name or its type no factory, stops. A handler that stops or fails
    /// its actor, too, does that instead.
    pub fn passivate(&mut self) {
        self.core.passivate();
    }

    /// Has the actor live on the node of that name. It goes on here until the cluster moves it, which
    /// stops it between two messages (`StopReason::Moved`); its next message starts it there. State
    /// that is to come along belongs in a store.
    ///
    /// # Errors
    /// See [`NotMoved`].
    pub fn move_to(&mut self, node: &str) -> Result<(), NotMoved> {
        let id = self.id();
        match &self.core.header().kind.node.cluster {
            Some(cluster) => cluster.move_to(&id, node),
            None => Err(NotMoved::Stays(id)),
        }
    }

    /// Fails the actor after this handler, as a panic would: supervision decides what becomes of
    /// it. Unlike after a panic, the handler's reply is sent. The cause is in `StopReason::Failed`,
    /// for hooks and for those who watch.
    pub fn fail(&mut self, error: impl Into<ActorError>) {
        let error = error.into();
        let earlier = self.core.header().mailbox.lock().extras().failure.replace(error);
        // Dropped outside of the lock: it is foreign.
        drop(earlier);
        self.core.fail();
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

    /// Runs `future` beside the actor, for its effects. It outlives the actor.
    pub fn detach(&mut self, future: impl Future<Output = ()> + Send + 'static) {
        let node = self.core.header().kind.node.clone();
        turn::with_the_turn(move || node.env.spawn(future));
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
