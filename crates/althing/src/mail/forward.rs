//! A message whose reply goes to somebody else's slot: an actor hands an ask on without waiting for
//! its answer.

use std::sync::Arc;
use std::task::Waker;

use crate::activation::current;
use crate::activation::turn::{self, Effect, Fate};
use crate::actor::Actor;
use crate::address::call::Call;
use crate::address::place::{AnyPlace, AsAnyPlace, wake};
use crate::address::tell::call_attention;
use crate::address::typed::Place;
use crate::error::AskError;
use crate::mail::dispatch::Dispatch;
use crate::mail::envelope::Envelope;
use crate::mail::mailbox::Pushed;
use crate::mail::outbox;
use crate::mail::priority::Priority;
use crate::mail::reply::ReplyTo;
use crate::metrics::Counter;
use crate::remote::ship::{Shipped, local_only, ship_ask};

impl<A: Actor, M: Send + 'static, D: Dispatch<A, M>> Call<'_, A, M, D> {
    /// Sends the message without waiting; its handler's reply goes to `slot`, whose asker gets it
    /// as if it had asked here.
    ///
    /// The asker also hears of everything else that can become of the message: `Overloaded` if the
    /// mailbox is full now, `Stopped`, a panic. Its own deadline goes on; a timeout set on this
    /// call has no effect. If the asker has gone, nothing is sent. From a turn that is held the
    /// message leaves with the turn's commit.
    ///
    /// ```
    /// use althing::{ActorRef, Node, ReplyTo, actor};
    ///
    /// struct Library;
    /// struct Desk(ActorRef<Library>);
    ///
    /// #[actor(name = "example.library")]
    /// impl Library {
    ///     async fn find(&self, title: String) -> Option<u32> {
    ///         (title == "Faust").then_some(7)
    ///     }
    /// }
    ///
    /// #[actor(name = "example.desk")]
    /// impl Desk {
    ///     #[delayed]
    ///     async fn find(&mut self, title: String, reply: ReplyTo<Option<u32>>) {
    ///         self.0.find(title).reply_to(reply); // the desk is free for the next one
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let node = Node::builder("town").build();
    /// let desk = node.spawn(Desk(node.spawn(Library)));
    /// assert_eq!(desk.find("Faust".into()).await?, Some(7));
    /// # Ok(())
    /// # }
    /// ```
    pub fn reply_to(self, slot: ReplyTo<D::Reply>) {
        if slot.is_over() {
            return;
        }
        if turn::is_held() {
            return self.reply_with_the_turn(slot);
        }
        // What was told before it must arrive before it.
        outbox::hand_over();
        let (target, message, priority) = self.into_unsent();
        let place = target.place();
        slot.hand_on(place.as_any_place());
        let header = place.header();
        let mut parts = Some((message, slot));
        let sender = header.sender();
        let envelope = || {
            let (message, slot) = parts.take().expect("an envelope is made once");
            Envelope::new::<A, M, D>(message, slot).sent_from(sender)
        };
        let wake = |what| wake(place, what);
        let pushed = header.mailbox.push_aside(header.kind.len_max, priority, envelope, wake);
        let why = match pushed {
            Pushed::Queued => return call_attention(place, priority),
            Pushed::Closed => AskError::Stopped(target.id()),
            Pushed::Elsewhere => {
                let (message, slot) = parts.take().expect("no envelope was made");
                return ship::<A, M, D>(place, message, slot, priority);
            }
            Pushed::Full => {
                header.kind.metrics.count(Counter::Overloaded);
                AskError::Overloaded(target.id())
            }
        };
        if let Some((_, mut slot)) = parts {
            slot.fail(why);
        }
    }

    /// Sends the message when the turn is durable: its reply is the turn's.
    #[cold]
    fn reply_with_the_turn(self, mut slot: ReplyTo<D::Reply>) {
        let Some(actor) = current::actor() else { return };
        let (target, message, priority) = self.into_unsent();
        let target = target.clone();
        turn::keep(Effect::Reply(Box::new(move |fate| match fate {
            Fate::Committed => {
                Call::<A, M, D>::new(&target, message).priority(priority).reply_to(slot);
            }
            Fate::Aborted => slot.fail(AskError::NotCommitted(actor.header().id())),
        })));
    }
}

/// Forwards to an actor that lives elsewhere.
#[cold]
fn ship<A: Actor, M: Send + 'static, D: Dispatch<A, M>>(
    place: &Arc<Place<A>>,
    message: M,
    slot: ReplyTo<D::Reply>,
    priority: Priority,
) {
    let id = place.header().id();
    let (mut message, mut slot) = (Some(message), Some(slot));
    let why = match ship_ask::<A, M, D>(place, &mut message, &mut slot, priority, Waker::noop()) {
        Shipped::Sent => return,
        Shipped::NoRoom => AskError::Overloaded(id),
        Shipped::LocalOnly | Shipped::TooLong => local_only::<M>(id),
    };
    if let Some(mut slot) = slot {
        slot.fail(why);
    }
}
