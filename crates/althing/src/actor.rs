//! What a user implements: `Actor`, and one handler trait per way of receiving a message.
//!
//! `&mut self` handlers never overlap with anything. `&self` handlers (`ReadHandler`) overlap with
//! each other while they wait, on one thread at a time. A write waits for the reads before it, and
//! later reads wait for the write.

use std::future::Future;

use crate::activation::commit::{Commit, Turns};
use crate::activation::context::Context;
use crate::address::actor_id::KindName;
use crate::error::ActorError;
use crate::mail::dispatch::{Dispatch, Write};
use crate::mail::reply::ReplyTo;
use crate::options::ActorOptions;
use crate::rejection::Rejection;
use crate::stop_reason::{StopReason, Terminated};
use crate::topic::published::Published;
use crate::wire::codecs::Codecs;
#[cfg(doc)]
use crate::wire::codecs::Remote;

/// State plus behaviour, run by one node at a time.
///
/// ```
/// use althing::{Actor, ActorError, Context, Handler, Node};
///
/// struct Greeter(String);
/// struct Greet(&'static str);
///
/// impl Actor for Greeter {
///     const NAME: &'static str = "example.greeter";
///
///     async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
///         self.0 = format!("Hello from {}", ctx.key());
///         Ok(())
///     }
/// }
///
/// impl Handler<Greet> for Greeter {
///     type Reply = String;
///
///     async fn handle(&mut self, Greet(name): Greet, _: &mut Context<Self>) -> String {
///         format!("{}, {name}", self.0)
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Node::builder("town").actor(async |_| Ok(Greeter(String::new()))).build();
/// let greeter = node.get::<Greeter>("Reykjavik");
/// assert_eq!(greeter.send(Greet("Ada")).await?, "Hello from Reykjavik, Ada");
/// # Ok(())
/// # }
/// ```
pub trait Actor: Sized + Send + 'static {
    /// Name of the type on the wire and in metrics; explicit, never a Rust path.
    const NAME: &'static str;
    /// Version of the type's messages and state.
    const VERSION: u32 = 1;
    /// How the messages that other nodes may send are registered: `Some(Self::codecs)` for an actor
    /// that is [`Remote`]. `#[actor(.., wire)]` writes it. Without it the type's actors never leave
    /// their node and are reached from there only.
    const CODECS: Option<fn(&mut Codecs<Self>)> = None;

    /// When what its handlers let out leaves. `Held` is for actors whose state is durable: see
    /// [`commit`](Self::commit).
    const TURNS: Turns = Turns::AtOnce;

    /// Name of the type's kind of actors: `NAME`. A generic type has one kind for each of its
    /// types, and each needs a name of its own, such as `NAME` with the parameter's name behind it;
    /// a name belongs to one type on a node.
    fn kind_name() -> KindName {
        KindName::new(Self::NAME)
    }

    /// Mailbox, supervision and passivation of this type.
    fn options() -> ActorOptions {
        ActorOptions::default()
    }

    /// Runs before the first message of each life.
    ///
    /// # Errors
    /// An error stops the actor; those who sent meanwhile get `AskError::NotStarted`.
    fn started(
        &mut self,
        _ctx: &mut Context<Self>,
    ) -> impl Future<Output = Result<(), ActorError>> + Send {
        async { Ok(()) }
    }

    /// Runs after the last message, also before passivation; not after a kill or a panic.
    fn stopping(
        &mut self,
        _ctx: &mut Context<Self>,
        _reason: StopReason,
    ) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Makes durable what the turn that has just ended has changed; called after each turn of an
    /// actor whose turns are held, and after its `terminated` hook, which is one.
    ///
    /// It takes a copy of what has changed and returns at once; the [`Commit`] writes it beside the
    /// turns that follow. What the turn let out (replies, refusals by guards, tells, asks that it
    /// hands on, publishes by `ctx.publish`, tasks) leaves when its commit and those before it are
    /// ready. If one fails, its turn and all after it let nothing out, whoever asked gets
    /// `AskError::NotCommitted`, and the actor has failed.
    fn commit(&mut self, _ctx: &mut Context<Self>) -> Commit {
        Commit::unchanged()
    }

    /// Makes durable what [`commit`](Self::commit) has put off. It is called after the `stopping`
    /// hook and waited for: the next life may begin on another node. Whatever comes of it, the life
    /// ends.
    fn commit_rest(&mut self, _ctx: &mut Context<Self>) -> Commit {
        Commit::unchanged()
    }

    /// Runs when an actor watched with `ctx.watch` has stopped.
    fn terminated(
        &mut self,
        _ctx: &mut Context<Self>,
        _other: Terminated,
    ) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// Handles `M` with exclusive access.
pub trait Handler<M: Send + 'static>: Actor {
    /// What an ask gets.
    type Reply: Send + 'static;

    /// Decides before the handler whether `message` may run.
    fn admit(&mut self, _message: &M, _ctx: &mut Context<Self>) -> Admission {
        Admission::Run
    }

    /// Handles one message.
    fn handle(
        &mut self,
        message: M,
        ctx: &mut Context<Self>,
    ) -> impl Future<Output = Self::Reply> + Send;
}

/// Handles `M` with shared access; reads that wait overlap.
pub trait ReadHandler<M: Send + 'static>: Actor {
    /// What an ask gets.
    type Reply: Send + 'static;

    /// Decides before the handler whether `message` may run.
    fn admit(&self, _message: &M, _ctx: &Context<Self>) -> Admission {
        Admission::Run
    }

    /// Handles one message.
    fn read(&self, message: M, ctx: &Context<Self>) -> impl Future<Output = Self::Reply> + Send;
}

/// Handles `M` with exclusive access and replies later, from anywhere.
pub trait DelayedHandler<M: Send + 'static>: Actor {
    /// What an ask gets.
    type Reply: Send + 'static;

    /// Decides before the handler whether `message` may run.
    fn admit(&mut self, _message: &M, _ctx: &mut Context<Self>) -> Admission {
        Admission::Run
    }

    /// Handles one message; `reply` may be kept, moved to a task or into another message.
    fn handle(
        &mut self,
        message: M,
        reply: ReplyTo<Self::Reply>,
        ctx: &mut Context<Self>,
    ) -> impl Future<Output = ()> + Send;
}

/// Says that an actor takes `M`, whichever of the three handlers it has for it; what addresses,
/// recipients, timers, pipes and groups ask for.
///
/// `#[actor]` writes it. By hand, a [`Handler`] has it already, and a [`ReadHandler`] or
/// [`DelayedHandler`] needs one more line:
///
/// ```
/// use althing::{Actor, Context, Node, Read, ReadHandler, Receives};
///
/// struct Thermometer(f32);
/// struct Reading;
///
/// impl Actor for Thermometer {
///     const NAME: &'static str = "example.thermometer";
/// }
///
/// impl ReadHandler<Reading> for Thermometer {
///     type Reply = f32;
///
///     async fn read(&self, _: Reading, _: &Context<Self>) -> f32 {
///         self.0
///     }
/// }
///
/// impl Receives<Reading> for Thermometer {
///     type Reply = f32;
///     type Way = Read;
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let thermometer = Node::builder("kitchen").build().spawn(Thermometer(21.5));
/// assert_eq!(thermometer.send(Reading).await?, 21.5);
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not receive `{M}`",
    note = "a method of its `#[actor]` block makes it do so; by hand, implement `Handler<{M}>`, or `ReadHandler<{M}>` or \
            `DelayedHandler<{M}>` together with `Receives<{M}>`"
)]
pub trait Receives<M: Send + 'static>: Actor {
    /// What an ask gets.
    type Reply: Send + 'static;
    /// Which handler takes it: [`Write`], [`Read`](crate::Read) or [`Delayed`](crate::Delayed).
    type Way: Dispatch<Self, M, Reply = Self::Reply>;
}

impl<A: Handler<M>, M: Send + 'static> Receives<M> for A {
    type Reply = <A as Handler<M>>::Reply;
    type Way = Write;
}

/// Receives the events of topics of `T` by reference.
pub trait EventHandler<T: Send + Sync + 'static>: Actor {
    /// Handles one event, in the topic's order.
    fn event(
        &mut self,
        event: &Published<T>,
        ctx: &mut Context<Self>,
    ) -> impl Future<Output = ()> + Send;
}

/// A guard's verdict on a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The handler runs.
    Run,
    /// The message waits until `ctx.unstash_all()`.
    Stash,
    /// The message does not run; an ask gets `AskError::Rejected` with this reason.
    Reject(Rejection),
}
