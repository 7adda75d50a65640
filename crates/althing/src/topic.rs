//! Publish and subscribe: a topic's public handle. What happens behind it is in the files of this
//! folder.
//!
//! The way of an event: [`Topic::publish`] or a [`Publisher`] numbers it and queues one `Arc` of it
//! in each chunk of subscribers (`shared`); whoever has a chunk's turn (`chunk`) brings it to the
//! subscribers (`fan_out`), a publisher for a moment (`share`), a task for the rest (`worker`).
//! Order comes from the chunks: each works off its queue one event after the other.
//!
//! Invariant: nothing but the handles keeps a topic. The node knows it weakly (`registry`).

use std::sync::Arc;

use crate::activation::context::Context;
use crate::actor::{Actor, EventHandler};
use crate::address::actor_ref::ActorRef;
use crate::epoch::Epoch;
use crate::node::shared::Node;

mod across;
mod author;
mod buffer;
mod chunk;
mod event;
mod fan_out;
pub(crate) mod kinds;
mod number;
pub(crate) mod published;
mod publisher;
mod refusal;
pub(crate) mod registry;
mod ring;
mod share;
mod shared;
mod stream;
mod subscriber;
mod subscription;
pub(crate) mod view;
mod worker;

pub use kinds::EventTwice;
pub use published::{Gap, Published, Sequence, TopicName};
pub use publisher::Publisher;
pub use refusal::{Fenced, PublishError};
pub use stream::EventStream;
pub use subscription::Subscription;
pub use view::TopicView;

use across::Across;
use author::Author;
use shared::Shared;
use subscriber::Subscriber;

/// Settings of a topic.
#[derive(Clone, Copy, Debug)]
pub struct TopicOptions {
    /// Events kept for `replay_since` and for streams that begin in the past.
    pub replay: usize,
}

impl Default for TopicOptions {
    fn default() -> Self {
        Self { replay: 64 }
    }
}

/// A named stream of events on a node; cheap to clone.
///
/// # Order
/// Every subscriber gets the events in the order of their numbers, and never one twice. An event
/// never overtakes what its publisher told a subscriber before. Between two subscribers there is no
/// order.
///
/// # Delivery
/// Publishing never waits. An idle subscriber may handle the event on the publisher's thread; a
/// busy one finds it in its mailbox. The publisher delivers for 20 µs, and a task of the node
/// delivers the rest; when that task does not get to it, publishers deliver as much as they add. A
/// subscriber misses an event
///
/// - if its mailbox is full: the others do not wait for it;
/// - if publishers are faster than it can be delivered for so long that 8,192 events wait: then the
///   oldest go.
///
/// It sees that by [`Published::previous`], which is then not the last number it knows, and the
/// node's metrics count it. An event whose handler panicked does not come again.
///
/// A handler may publish to its own topic, subscribe and unsubscribe there; what it publishes comes
/// after the event at hand.
///
/// # The end of a subscription
/// A [`Subscription`] ends when it is dropped and when its actor stops, whatever the reason. A
/// named actor that is started again later has to subscribe again; no event starts it. Passivation
/// is no stop: a passivated actor stays subscribed, and the next event wakes it, unless the
/// subscription was in its state, which passivation drops.
///
/// # Memory
/// A topic lives as long as somebody holds a `Topic`, a [`Publisher`], a [`Subscription`] or an
/// [`EventStream`] of it. Then it goes, with the events that it keeps for replay and its numbering:
/// the next topic of that name begins at one. Who wants replay without subscribers keeps a `Topic`.
/// An event lives until it has been delivered and has left the replay ring.
///
/// ```
/// use althing::{Node, Published, Sequence, TopicOptions, actor};
///
/// #[derive(Default)]
/// struct Listener(Vec<u32>);
///
/// #[actor(name = "example.listener")]
/// impl Listener {
///     #[event]
///     async fn on_number(&mut self, event: &Published<u32>) {
///         self.0.push(event.payload);
///     }
///
///     async fn heard(&self) -> Vec<u32> {
///         self.0.clone()
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Node::builder("radio").build();
/// let numbers = node.topic::<u32>("numbers", TopicOptions { replay: 8 });
/// let listener = node.spawn(Listener::default());
/// let subscription = numbers.subscribe(&listener);
/// assert_eq!(numbers.publish(7)?, Sequence(1));
/// numbers.publish(8)?;
/// assert_eq!(listener.heard().await?, [7, 8]);
/// assert_eq!(numbers.replay_since(Sequence(1))?.len(), 1);
/// drop(subscription); // ends it
/// # Ok(())
/// # }
/// ```
pub struct Topic<T: Send + Sync + 'static> {
    shared: Arc<Shared<T>>,
}

impl Node {
    /// The topic of that name and type, made if nobody holds one; `options` count only then.
    pub fn topic<T: Send + Sync + 'static>(
        &self,
        name: impl AsRef<str>,
        options: TopicOptions,
    ) -> Topic<T> {
        let name = TopicName::from(name.as_ref());
        let make = |is_closed| {
            Arc::new(Shared::<T>::new(name.clone(), self.shared().clone(), options, is_closed))
        };
        Topic::from_shared(self.shared().holdings().topics.get_or_make::<T, _>(&name, make))
    }
}

impl<A: Actor> Context<A> {
    /// Publishes with the next number, when this turn lets go of what it lets out: at once, unless
    /// turns are held. The owner of a topic names its [`Publisher`] instead of the topic. Why it
    /// could not be published by then is logged.
    pub fn publish<T: Send + Sync + 'static>(&mut self, outlet: &impl Outlet<T>, payload: T) {
        outlet.publish_with_the_turn(payload);
    }
}

/// Where a turn publishes: a [`Topic`] that nobody owns, or the [`Publisher`] that owns one.
pub trait Outlet<T: Send + Sync + 'static>: sealed::Sealed<T> {}

impl<T: Send + Sync + 'static> Outlet<T> for Topic<T> {}
impl<T: Send + Sync + 'static> Outlet<T> for Publisher<T> {}

mod sealed {
    pub trait Sealed<T> {
        fn publish_with_the_turn(&self, payload: T);
    }
}

impl<T: Send + Sync + 'static> sealed::Sealed<T> for Topic<T> {
    fn publish_with_the_turn(&self, payload: T) {
        self.shared.publish_with_the_turn(Author::Anybody, payload);
    }
}

impl<T: Send + Sync + 'static> Topic<T> {
    fn from_shared(shared: Arc<Shared<T>>) -> Self {
        Self { shared }
    }

    /// Name of the topic.
    pub fn name(&self) -> &TopicName {
        &self.shared.name
    }

    /// The registered name of its events, if other nodes may hear them: `NodeBuilder::event`.
    pub fn event(&self) -> Option<&'static str> {
        self.shared.across.as_ref().map(Across::event)
    }

    /// The node it lives on.
    pub fn node(&self) -> Node {
        Node::from_shared(self.shared.node.clone())
    }

    /// Position of the last event.
    pub fn last(&self) -> Sequence {
        self.shared.last()
    }

    /// Subscribed actors and streams at this moment.
    pub fn subscribers(&self) -> usize {
        self.shared.subscribers()
    }

    /// Events that some subscribers have still to be handed.
    pub fn pending(&self) -> usize {
        self.shared.pending()
    }

    /// Publishes with the next number; never waits. Anybody may, as long as the topic has no
    /// [`Publisher`].
    ///
    /// # Errors
    /// `Owned` while it has one, `NotAbove` after the last number that there is, [`u64::MAX`]; both
    /// hand the payload back.
    pub fn publish(&self, payload: T) -> Result<Sequence, PublishError<T>> {
        self.shared.publish(Author::Anybody, payload)
    }

    /// Makes the caller the only one who publishes, until the publisher is dropped or a higher
    /// epoch takes over.
    ///
    /// # Errors
    /// `Fenced` unless `epoch` is above all that ever claimed the topic.
    pub fn publisher(&self, epoch: Epoch) -> Result<Publisher<T>, Fenced> {
        Publisher::claim(&self.shared, epoch)
    }

    /// Subscribes an actor to every event after the subscription's position, which
    /// `Subscription::since` tells.
    pub fn subscribe<A: EventHandler<T>>(&self, actor: &ActorRef<A>) -> Subscription {
        let place = actor.place();
        let seat = self.shared.subscribe(|id, since| Subscriber::actor::<A>(id, since, place));
        Subscription::new(seat)
    }

    /// Reads the topic without an actor: the events after `after` that are still kept, then those
    /// that come, in order.
    ///
    /// Each comes once. Where some are gone, because the topic no longer keeps them or because the
    /// reader is more than 1,024 events behind, a [`Gap`] stands in their place, and the stream
    /// goes on with the oldest one kept. It ends when the node shuts down. Dropping it
    /// unsubscribes.
    ///
    /// ```
    /// use althing::{Node, Sequence, TopicOptions};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let node = Node::builder("radio").build();
    /// let numbers = node.topic::<u32>("numbers", TopicOptions { replay: 2 });
    /// for n in 1..=4 {
    ///     numbers.publish(n)?;
    /// }
    /// let mut stream = numbers.stream(Sequence(1));
    /// let gap = stream.next().await.unwrap().unwrap_err();
    /// assert_eq!((gap.after, gap.until), (Sequence(1), Sequence(2)));
    /// assert_eq!(stream.next().await.unwrap()?.payload, 3);
    /// assert_eq!(stream.next().await.unwrap()?.payload, 4);
    /// numbers.publish(5)?;
    /// assert_eq!(stream.next().await.unwrap()?.payload, 5);
    /// # Ok(())
    /// # }
    /// ```
    pub fn stream(&self, after: Sequence) -> EventStream<T> {
        EventStream::new(&self.shared, after)
    }

    /// The events after `after` that are still kept.
    ///
    /// # Errors
    /// `Gap` if some of them are gone; `replay_since(gap.until)` gives the others.
    pub fn replay_since(&self, after: Sequence) -> Result<Vec<Arc<Published<T>>>, Gap> {
        match self.shared.kept_after(after) {
            (None, kept) => Ok(kept),
            (Some(gap), _) => Err(gap),
        }
    }

    /// All events that are still kept, oldest first.
    pub fn kept(&self) -> Vec<Arc<Published<T>>> {
        self.shared.kept_after(Sequence(0)).1
    }
}

impl<T: Send + Sync + 'static> Clone for Topic<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<T: Send + Sync + 'static> std::fmt::Debug for Topic<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Topic").field(&self.shared.name).finish()
    }
}
