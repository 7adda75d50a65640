//! Publish and subscribe: one `Arc` per event, subscribers in chunks, idle ones run in place.
//!
//! Order: events of a topic are delivered in the order of their sequence numbers, because each chunk works off its own queue one
//! event at a time. A subscriber whose mailbox is full misses an event; `previous` lets it see that.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::actor::EventHandler;
use crate::actor_ref::ActorRef;
use crate::fan_out::{Subscriber, Visitor, deliver_to_all};
use crate::node::{Node, NodeShared};
use crate::observe::Step;
use crate::outbox;

/// Subscribers per chunk: one job's work, small enough to spread over the cores.
const CHUNK_LEN: usize = 512;

/// How long a publisher delivers itself before the node's workers get the rest: about what it costs to wake one of them.
const DELIVERS_NS: u64 = 20_000;

/// Name of a topic; cheap to clone.
pub type TopicName = Arc<str>;

/// Position of an event in its topic; rises strictly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub u64);

/// Settings of a topic.
#[derive(Clone, Copy, Debug)]
pub struct TopicOptions {
    /// Events kept for `replay_since`.
    pub replay: usize,
}

impl Default for TopicOptions {
    fn default() -> Self {
        Self { replay: 64 }
    }
}

/// An event as subscribers get it.
#[derive(Debug)]
pub struct Published<T> {
    /// The topic.
    pub topic: TopicName,
    /// Its position.
    pub sequence: Sequence,
    /// The position before it: a subscriber that last saw another one has missed something.
    pub previous: Sequence,
    /// The event itself.
    pub payload: T,
}

/// The replay ring no longer reaches back that far.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[error("events after {after:?} are gone; the oldest kept is {oldest:?}")]
pub struct Gap {
    /// What was asked for.
    pub after: Sequence,
    /// The oldest event still kept.
    pub oldest: Sequence,
}

/// A named stream of events on a node.
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
/// assert_eq!(numbers.publish(7), Sequence(1));
/// numbers.publish(8);
/// assert_eq!(listener.heard().await?, [7, 8]);
/// assert_eq!(numbers.replay_since(Sequence(1))?.len(), 1);
/// drop(subscription); // ends it
/// # Ok(())
/// # }
/// ```
pub struct Topic<T> {
    shared: Arc<Shared<T>>,
}

/// Keeps an actor subscribed until dropped.
#[must_use = "dropping it unsubscribes"]
pub struct Subscription {
    since: Sequence,
    end: Option<Box<dyn FnOnce() + Send + Sync>>,
}

struct Shared<T> {
    name: TopicName,
    node: Arc<NodeShared>,
    state: Mutex<State<T>>,
    options: TopicOptions,
}

struct State<T> {
    last: Sequence,
    ring: VecDeque<Arc<Published<T>>>,
    chunks: Vec<Arc<Chunk<T>>>,
    next_id: u64,
}

struct Chunk<T> {
    subscribers: Mutex<Subscribers<T>>,
    queue: Mutex<Work<T>>,
}

struct Work<T> {
    events: VecDeque<Arc<Published<T>>>,
    running: bool,
}

struct Subscribers<T> {
    listed: Vec<Subscriber<T>>,
    /// Ended while an event was being delivered, when the list was out.
    ended: Vec<u64>,
    /// Subscribers in the list that is out.
    out: usize,
}

impl<T: Send + Sync + 'static> Topic<T> {
    pub(crate) fn new(name: TopicName, node: Arc<NodeShared>, options: TopicOptions) -> Self {
        let state =
            State { last: Sequence(0), ring: VecDeque::new(), chunks: Vec::new(), next_id: 0 };
        Self { shared: Arc::new(Shared { name, node, state: Mutex::new(state), options }) }
    }

    /// Name of the topic.
    pub fn name(&self) -> &TopicName {
        &self.shared.name
    }

    /// The node it lives on.
    pub fn node(&self) -> Node {
        Node::from_shared(self.shared.node.clone())
    }

    /// Position of the last event.
    pub fn last(&self) -> Sequence {
        self.shared.state.lock().last
    }

    /// Subscribers at this moment.
    pub fn subscribers(&self) -> usize {
        let chunks = self.shared.state.lock().chunks.clone();
        chunks.iter().map(|chunk| chunk.subscribers.lock().len()).sum()
    }

    /// Events that some subscribers have still to be handed.
    pub fn pending(&self) -> usize {
        let chunks = self.shared.state.lock().chunks.clone();
        chunks.iter().map(|chunk| chunk.queue.lock().pending()).sum()
    }

    /// Publishes with the next sequence number; never waits.
    pub fn publish(&self, payload: T) -> Sequence {
        let mut state = self.shared.state.lock();
        let sequence = Sequence(state.last.0 + 1);
        self.publish_locked(&mut state, sequence, payload);
        let chunks = state.chunks.clone();
        drop(state);
        self.work(&chunks);
        sequence
    }

    /// Publishes with the publisher's own number, which must be above the last; never waits.
    ///
    /// # Errors
    /// Hands the payload back if `sequence` is not above the last.
    pub fn publish_at(&self, sequence: Sequence, payload: T) -> Result<(), T> {
        let mut state = self.shared.state.lock();
        if sequence <= state.last {
            return Err(payload);
        }
        self.publish_locked(&mut state, sequence, payload);
        let chunks = state.chunks.clone();
        drop(state);
        self.work(&chunks);
        Ok(())
    }

    fn publish_locked(&self, state: &mut State<T>, sequence: Sequence, payload: T) {
        let event = Arc::new(Published {
            topic: self.shared.name.clone(),
            sequence,
            previous: state.last,
            payload,
        });
        state.last = sequence;
        let topic = &self.shared.name;
        self.shared.node.env.observe_current(Step::Publishes { topic, sequence });
        for chunk in &state.chunks {
            chunk.queue.lock().events.push_back(event.clone());
        }
        if self.shared.options.replay > 0 {
            if state.ring.len() == self.shared.options.replay {
                state.ring.pop_front();
            }
            state.ring.push_back(event);
        }
    }

    /// Works off the chunks: here for a moment, if handlers may run here or there is only one; what is left on the node's workers.
    fn work(&self, chunks: &[Arc<Chunk<T>>]) {
        // What the publisher told before must arrive before.
        outbox::hand_over();
        let node = &self.shared.node;
        let is_in_task = node.env.is_in_task();
        let begun_ns = node.clock_ns();
        let mut left = chunks.iter();
        if is_in_task || chunks.len() == 1 {
            for chunk in left.by_ref() {
                chunk.run(is_in_task);
                if node.clock_ns() - begun_ns > DELIVERS_NS {
                    break;
                }
            }
        }
        for chunk in left {
            if !chunk.queue.lock().running {
                let chunk = chunk.clone();
                node.env.spawn(async move { chunk.run(true) });
            }
        }
    }

    /// Subscribes an actor to every event after the subscription's position, which `Subscription::since` tells.
    pub fn subscribe<A: EventHandler<T>>(&self, actor: &ActorRef<A>) -> Subscription {
        let mut state = self.shared.state.lock();
        state.next_id += 1;
        let id = state.next_id;
        let chunk = state.chunk_with_room();
        let since = state.last;
        let subscriber = Subscriber::new::<A>(id, since, actor.cell());
        chunk.subscribers.lock().listed.push(subscriber);
        drop(state);
        let shared = Arc::downgrade(&self.shared);
        let chunk = Arc::downgrade(&chunk);
        let end = Box::new(move || unsubscribe(&shared, &chunk, id));
        Subscription { since, end: Some(end) }
    }

    /// The events after `after` that are still kept.
    ///
    /// # Errors
    /// `Gap` if some of them are gone.
    pub fn replay_since(&self, after: Sequence) -> Result<Vec<Arc<Published<T>>>, Gap> {
        let state = self.shared.state.lock();
        let kept: Vec<_> =
            state.ring.iter().filter(|event| event.sequence > after).cloned().collect();
        match kept.first() {
            Some(first) if first.previous > after => Err(Gap { after, oldest: first.sequence }),
            None if state.last > after => Err(Gap { after, oldest: state.last }),
            _ => Ok(kept),
        }
    }
}

impl<T> State<T> {
    fn chunk_with_room(&mut self) -> Arc<Chunk<T>> {
        if let Some(chunk) =
            self.chunks.iter().rev().find(|chunk| chunk.subscribers.lock().len() < CHUNK_LEN)
        {
            return chunk.clone();
        }
        let chunk = Arc::new(Chunk {
            subscribers: Mutex::new(Subscribers { listed: Vec::new(), ended: Vec::new(), out: 0 }),
            queue: Mutex::new(Work { events: VecDeque::new(), running: false }),
        });
        self.chunks.push(chunk.clone());
        chunk
    }
}

impl<T> Work<T> {
    fn pending(&self) -> usize {
        self.events.len() + usize::from(self.running)
    }
}

impl<T: Send + Sync + 'static> Chunk<T> {
    /// Delivers what waits, one event after the other; returns at once if somebody else is at it.
    fn run(&self, is_in_task: bool) {
        let mut visitor = Visitor::new(is_in_task);
        {
            let mut queue = self.queue.lock();
            if queue.running {
                return;
            }
            queue.running = true;
        }
        loop {
            let event = {
                let mut queue = self.queue.lock();
                let Some(event) = queue.events.pop_front() else {
                    queue.running = false;
                    return;
                };
                event
            };
            self.deliver(&event, &mut visitor);
        }
    }

    fn deliver(&self, event: &Arc<Published<T>>, visitor: &mut Visitor) {
        // Taken out, so that a handler run in place may subscribe and unsubscribe.
        let mut listed = self.subscribers.lock().take_out();
        let gone = deliver_to_all(visitor, &listed, event);
        if !gone.is_empty() {
            listed.retain(|subscriber| !gone.contains(&subscriber.id));
        }
        self.subscribers.lock().put_back(listed);
    }
}

impl<T> Subscribers<T> {
    fn len(&self) -> usize {
        self.listed.len() + self.out - self.ended.len()
    }

    fn take_out(&mut self) -> Vec<Subscriber<T>> {
        self.out = self.listed.len();
        std::mem::take(&mut self.listed)
    }

    fn put_back(&mut self, mut listed: Vec<Subscriber<T>>) {
        if !self.ended.is_empty() {
            let ended = std::mem::take(&mut self.ended);
            listed.retain(|subscriber| !ended.contains(&subscriber.id));
        }
        self.out = 0;
        listed.append(&mut self.listed);
        self.listed = listed;
    }

    fn remove(&mut self, id: u64) {
        let before = self.listed.len();
        self.listed.retain(|subscriber| subscriber.id != id);
        if self.listed.len() == before && self.out > 0 {
            self.ended.push(id);
        }
    }
}

fn unsubscribe<T>(shared: &Weak<Shared<T>>, chunk: &Weak<Chunk<T>>, id: u64) {
    let (Some(shared), Some(chunk)) = (shared.upgrade(), chunk.upgrade()) else { return };
    let mut state = shared.state.lock();
    let mut subscribers = chunk.subscribers.lock();
    subscribers.remove(id);
    let is_empty = subscribers.len() == 0;
    drop(subscribers);
    if is_empty && chunk.queue.lock().events.is_empty() {
        state.chunks.retain(|other| !Arc::ptr_eq(other, &chunk));
    }
}

impl Subscription {
    /// The topic's last event at the moment of subscribing; every later one is delivered.
    pub fn since(&self) -> Sequence {
        self.since
    }

    /// Ends the subscription.
    pub fn cancel(self) {
        drop(self);
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            end();
        }
    }
}

impl<T> Clone for Topic<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<T> std::fmt::Debug for Topic<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Topic").field(&self.shared.name).finish()
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Subscription")
    }
}
