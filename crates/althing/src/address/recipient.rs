//! An address that knows the message's type only, for code that does not care who handles it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::actor::{Actor, Receives};
use crate::address::actor_id::ActorId;
use crate::address::actor_ref::ActorRef;
use crate::error::{AskError, SendError};

/// Address of any actor that receives `M` and replies `R`.
///
/// ```
/// use althing::{Actor, Context, Handler, Node, Recipient};
///
/// struct Price(u32);
/// struct Shop;
/// struct Market;
///
/// impl Actor for Shop {
///     const NAME: &'static str = "example.shop";
/// }
///
/// impl Handler<Price> for Shop {
///     type Reply = bool;
///
///     async fn handle(&mut self, Price(price): Price, _: &mut Context<Self>) -> bool {
///         price < 10
///     }
/// }
///
/// impl Actor for Market {
///     const NAME: &'static str = "example.market";
/// }
///
/// impl Handler<Price> for Market {
///     type Reply = bool;
///
///     async fn handle(&mut self, Price(price): Price, _: &mut Context<Self>) -> bool {
///         price < 5
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Node::builder("town").build();
/// let buyers: Vec<Recipient<Price, bool>> =
///     vec![node.spawn(Shop).recipient(), node.spawn(Market).recipient()];
/// assert!(buyers[0].ask(Price(7)).await?);
/// assert!(!buyers[1].ask(Price(7)).await?);
/// # Ok(())
/// # }
/// ```
pub struct Recipient<M, R> {
    target: Arc<dyn Target<M, R>>,
}

type Ask<'a, R> = Pin<Box<dyn Future<Output = Result<R, AskError>> + Send + 'a>>;
type Tell<'a, M> = Pin<Box<dyn Future<Output = Result<(), SendError<M>>> + Send + 'a>>;

trait Target<M, R>: Send + Sync {
    fn id(&self) -> ActorId;
    fn ask(&self, message: M) -> Ask<'_, R>;
    fn tell(&self, message: M) -> Tell<'_, M>;
    fn try_tell(&self, message: M) -> Result<(), SendError<M>>;
}

impl<A: Receives<M>, M: Send + 'static> Target<M, A::Reply> for ActorRef<A> {
    fn id(&self) -> ActorId {
        self.id()
    }

    fn ask(&self, message: M) -> Ask<'_, A::Reply> {
        Box::pin(self.send(message))
    }

    fn tell(&self, message: M) -> Tell<'_, M> {
        Box::pin(self.send(message).tell())
    }

    fn try_tell(&self, message: M) -> Result<(), SendError<M>> {
        self.send(message).try_tell()
    }
}

impl<A: Actor> ActorRef<A> {
    /// An address that knows the message's type only.
    pub fn recipient<M: Send + 'static>(&self) -> Recipient<M, A::Reply>
    where
        A: Receives<M>,
    {
        Recipient::new(self.clone())
    }
}

impl<M: Send + 'static, R: Send + 'static> Recipient<M, R> {
    fn new<A: Receives<M, Reply = R>>(target: ActorRef<A>) -> Self {
        Self { target: Arc::new(target) }
    }

    /// Identity of the actor behind it.
    pub fn id(&self) -> ActorId {
        self.target.id()
    }

    /// Asks with the actor's default deadline.
    ///
    /// # Errors
    /// As awaiting a `Call`.
    pub async fn ask(&self, message: M) -> Result<R, AskError> {
        self.target.ask(message).await
    }

    /// Sends without asking for a reply; waits for room until the actor's default deadline.
    ///
    /// # Errors
    /// As `Call::tell`.
    pub async fn tell(&self, message: M) -> Result<(), SendError<M>> {
        self.target.tell(message).await
    }

    /// Sends without asking for a reply and without waiting.
    ///
    /// # Errors
    /// As `Call::try_tell`.
    pub fn try_tell(&self, message: M) -> Result<(), SendError<M>> {
        self.target.try_tell(message)
    }
}

impl<M, R> Clone for Recipient<M, R> {
    fn clone(&self) -> Self {
        Self { target: self.target.clone() }
    }
}

impl<M: Send + 'static, R: Send + 'static> std::fmt::Debug for Recipient<M, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Recipient").field(&self.id()).finish()
    }
}
