//! A stream whose items come to an actor as messages, one at a time, for as long as the actor's
//! life goes on.
//!
//! The stream is polled in a task of its own. The next item is asked for only when the handler of
//! the last one has ended, so that a fast stream waits for a slow actor instead of filling its
//! mailbox.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Poll, ready};

use futures_core::Stream;

use crate::activation::context::Context;
use crate::activation::pledge::Pledge;
use crate::activation::stopped::Stopped;
use crate::actor::{Actor, Receives};
use crate::address::actor_ref::ActorRef;
use crate::address::place::AsAnyPlace;
use crate::mail::mailbox::Life;
use crate::mail::reply::{Receiver, channel};

impl<A: Actor> Context<A> {
    /// Sends the items of `stream` to the actor itself, each as the message that `wrap` makes of
    /// it, in their order.
    ///
    /// The stream is polled for an item only after the handler of the one before has ended: at most
    /// one of them waits in the mailbox, exempt from its bound. The stream is dropped when it ends,
    /// and at the end of this life: when the actor stops or restarts. Until then the actor is not
    /// unloaded for being idle. To hear of the stream's end, chain a last item to it.
    ///
    /// ```
    /// use althing::{Context, Node, actor};
    /// use futures_util::stream;
    ///
    /// #[derive(Default)]
    /// struct Sum(u64);
    ///
    /// #[actor(name = "example.sum")]
    /// impl Sum {
    ///     async fn add_up(&mut self, ctx: &mut Context<Self>) {
    ///         ctx.attach(stream::iter(1..=3), |n| sum_messages::Add { n });
    ///     }
    ///
    ///     async fn add(&mut self, n: u64) {
    ///         self.0 += n;
    ///     }
    ///
    ///     async fn total(&self) -> u64 {
    ///         self.0
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let sum = Node::builder("school").build().spawn(Sum::default());
    /// sum.add_up().await?;
    /// while sum.total().await? < 6 {
    ///     tokio::task::yield_now().await;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn attach<S, M, W>(&mut self, stream: S, wrap: W)
    where
        A: Receives<M>,
        M: Send + 'static,
        S: Stream + Send + 'static,
        W: FnMut(S::Item) -> M + Send + 'static,
    {
        let me = self.address();
        let ended = me.stopped();
        let pledge = Pledge::of(me.place().as_any_place());
        self.detach(async move {
            pass_on(me, pledge.life(), ended, stream, wrap).await;
            drop(pledge);
        });
    }
}

async fn pass_on<A, S, M, W>(
    me: ActorRef<A>,
    life: Life,
    mut ended: Stopped,
    stream: S,
    mut wrap: W,
) where
    A: Receives<M>,
    M: Send + 'static,
    S: Stream,
    W: FnMut(S::Item) -> M,
{
    let mut stream = pin!(stream);
    let mut running: Option<Receiver<A::Reply>> = None;
    poll_fn(|cx| {
        loop {
            // In this order: what ends the life meanwhile wakes us.
            if Pin::new(&mut ended).poll(cx).is_ready() || me.life() != life {
                return Poll::Ready(());
            }
            if let Some(handler) = &running {
                ready!(handler.poll(cx.waker())).ok();
            }
            let Some(item) = ready!(stream.as_mut().poll_next(cx)) else { return Poll::Ready(()) };
            let (reply, receiver) = channel();
            if !me.push_result(life, wrap(item), reply) {
                return Poll::Ready(());
            }
            running = Some(receiver);
        }
    })
    .await;
}
