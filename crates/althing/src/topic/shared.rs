//! What all handles of a topic share: its numbering, its ring, its chunks, and how an event goes
//! from a publisher into them.
//!
//! Lock order: the topic's state, then a chunk's book. No user code runs under either: what is
//! dropped (refused payloads, the ring's oldest event, removed subscribers) is taken out first,
//! because a drop may use the topic.

use std::any::type_name;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

use super::TopicOptions;
use super::across::{Across, TooLong};
use super::author::{Author, Refusal, Standing};
use super::buffer::Buffer;
use super::chunk::{CHUNK_LEN, Chunk, Role, Wants};
use super::fan_out::Visitor;
use super::number::Number;
use super::published::{Gap, Published, Sequence, TopicName};
use super::refusal::{Fenced, PublishError};
use super::registry::AnyTopic;
use super::ring::Ring;
use super::share::Share;
use super::subscriber::{Listener, Subscriber};
use super::subscription::Seated;
use super::view::TopicView;
use super::worker::Worker;
use crate::activation::turn;
use crate::epoch::Epoch;
use crate::mail::outbox;
use crate::metrics::step::Step;
use crate::node::shared::NodeShared;
use crate::remote::topics::{Arriving, Departing, Listening, NotTaken, Place};
use crate::shield::{discard, discard_all, shielded};

pub(super) type TopicChunk<T> = Chunk<Subscriber<T>, Arc<Published<T>>>;
type Chunks<T> = Arc<Vec<Arc<TopicChunk<T>>>>;
/// The lock, and an event as it travels, if it does.
type LockedWithBody<'a, T> = (MutexGuard<'a, State<T>>, Option<Vec<u8>>);

/// A topic, as its handles see it.
pub(super) struct Shared<T: Send + Sync + 'static> {
    pub(super) name: TopicName,
    pub(super) node: Arc<NodeShared>,
    state: Mutex<State<T>>,
    /// Events that subscribers did not get, added up over them.
    missed: AtomicU64,
    /// What it needs to be heard on other nodes, if it may be.
    pub(super) across: Option<Across<T>>,
}

pub(super) struct State<T> {
    pub(super) last: Sequence,
    /// The highest epoch that ever claimed the topic.
    pub(super) epoch: Option<Epoch>,
    /// Whether the publisher of that epoch lives.
    pub(super) is_owned: bool,
    /// Whether it is, or was, on another node.
    pub(super) is_owner_elsewhere: bool,
    /// Whether the cluster was told that somebody listens here.
    pub(super) is_listening: bool,
    /// Whether events of other nodes may be missing before the next one.
    pub(super) is_unsure: bool,
    ring: Ring<T>,
    /// Copied when it changes while a publisher goes through it.
    chunks: Chunks<T>,
    next_id: u64,
    is_closed: bool,
}

/// Where a new subscriber found its seat.
pub(super) struct Seat<T: Send + Sync + 'static> {
    pub(super) shared: Arc<Shared<T>>,
    chunk: Arc<TopicChunk<T>>,
    id: u64,
    since: Sequence,
}

/// What a stream begins with.
pub(super) struct Beginning<T> {
    pub(super) gap: Option<Gap>,
    pub(super) kept: Vec<Arc<Published<T>>>,
    pub(super) is_closed: bool,
}

impl<T: Send + Sync + 'static> Shared<T> {
    pub(super) fn new(
        name: TopicName,
        node: Arc<NodeShared>,
        options: TopicOptions,
        is_closed: bool,
    ) -> Self {
        let state = State {
            last: Sequence(0),
            epoch: None,
            is_owned: false,
            is_owner_elsewhere: false,
            is_listening: false,
            is_unsure: false,
            ring: Ring::new(options.replay),
            chunks: Arc::default(),
            next_id: 0,
            is_closed,
        };
        let across = Across::new(&node, &name, options.replay);
        Self { name, node, state: Mutex::new(state), missed: AtomicU64::new(0), across }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock()
    }

    pub(super) fn last(&self) -> Sequence {
        self.state.lock().last
    }

    pub(super) fn subscribers(&self) -> usize {
        self.chunks().iter().map(|chunk| chunk.len()).sum()
    }

    pub(super) fn pending(&self) -> usize {
        self.chunks().iter().map(|chunk| chunk.pending()).sum()
    }

    fn chunks(&self) -> Chunks<T> {
        self.state.lock().chunks.clone()
    }

    /// What is kept after `after`, and what of it is gone.
    pub(super) fn kept_after(&self, after: Sequence) -> (Option<Gap>, Vec<Arc<Published<T>>>) {
        let state = self.state.lock();
        state.ring.after(after, state.last)
    }

    /// Makes `epoch` the owner.
    pub(super) fn claim(&self, epoch: Epoch) -> Result<(), Fenced> {
        let mut state = self.state.lock();
        if let Some(current) = state.epoch.filter(|current| *current >= epoch) {
            return Err(Fenced { topic: self.name.clone(), epoch, current });
        }
        state.epoch = Some(epoch);
        state.is_owned = true;
        state.is_owner_elsewhere = false;
        // Former owners may have been elsewhere, and what they published may not have come.
        state.is_unsure |= self.across.is_some();
        Ok(())
    }

    /// The owner of `epoch` is no more; a later owner stays.
    pub(super) fn release(&self, epoch: Epoch) {
        let mut state = self.state.lock();
        if state.epoch == Some(epoch) && !state.is_owner_elsewhere {
            state.is_owned = false;
        }
        if let Some(across) = &self.across {
            across.way().released(epoch);
        }
    }

    pub(super) fn publish(
        self: &Arc<Self>,
        author: Author,
        payload: T,
    ) -> Result<Sequence, PublishError<T>> {
        if turn::is_held() {
            return Err(PublishError::InTurn { topic: self.name.clone(), payload });
        }
        // What the publisher told before must arrive before, whoever delivers the event.
        shielded("handing over what a publisher told", outbox::hand_over);
        let (mut state, body) = match self.lock_with_body(&payload) {
            Ok(locked) => locked,
            Err(TooLong { len, len_max }) => {
                let topic = self.name.clone();
                return Err(PublishError::TooLong { topic, len, len_max, payload });
            }
        };
        let number = match state.number(author, &self.name, self.across.is_some()) {
            Ok(number) => number,
            Err(refusal) => {
                // Unlocked first: the caller may drop the payload.
                drop(state);
                return Err(refusal.with(payload));
            }
        };
        let (epoch, sequence) = (state.epoch.unwrap_or_default(), number.sequence);
        if let (Some(across), Some(body)) = (&self.across, body) {
            let is_owners = !matches!(author, Author::Anybody);
            let place = is_owners.then_some(Place { epoch, sequence });
            across.way().publish(Departing { place, body });
        }
        self.node.env.observe_current(Step::Publishes { topic: &self.name, sequence });
        let chunks = self.enqueue(state, epoch, number, payload);
        self.deliver(&chunks);
        discard("the drop of a chunk", chunks);
        Ok(sequence)
    }

    /// The lock, and the event as it travels if somebody listens elsewhere: encoded before the lock
    /// is taken, because that runs foreign code.
    fn lock_with_body(&self, payload: &T) -> Result<LockedWithBody<'_, T>, TooLong> {
        let Some(across) = &self.across else { return Ok((self.state.lock(), None)) };
        loop {
            let body = across.encode(payload)?;
            let state = self.state.lock();
            // Who began to listen in between is to hear it.
            if body.is_some() || !across.is_heard() {
                return Ok((state, body));
            }
        }
    }

    /// Adds an event to what chunks have to deliver, and lets go of the lock.
    fn enqueue(
        &self,
        mut state: MutexGuard<'_, State<T>>,
        epoch: Epoch,
        Number { sequence, previous }: Number,
        payload: T,
    ) -> Chunks<T> {
        let topic = self.name.clone();
        let event = Arc::new(Published { topic, epoch, sequence, previous, payload });
        state.last = sequence;
        let chunks = state.chunks.clone();
        let skipped: Vec<_> = chunks.iter().filter_map(|chunk| chunk.push(event.clone())).collect();
        let oldest = state.ring.push(event);
        drop(state);
        discard_all("the drop of an event", skipped.into_iter().chain(oldest));
        chunks
    }

    /// Has workers deliver an event: the caller reads what another node sends, and no handler may
    /// keep it from that.
    pub(super) fn insert(
        self: &Arc<Self>,
        state: MutexGuard<'_, State<T>>,
        epoch: Epoch,
        number: Number,
        payload: T,
    ) {
        let chunks = self.enqueue(state, epoch, number, payload);
        for chunk in chunks.iter() {
            match chunk.claim_worker() {
                Wants::Nothing => {}
                Wants::Worker => self.start_worker(chunk),
                Wants::Help => {
                    let mut helper = Visitor::new(false, Share::of_helper(&self.node));
                    self.deliver_chunk(chunk, &mut helper);
                }
            }
        }
        discard("the drop of a chunk", chunks);
    }

    /// Publishes when the turn at hand lets go of what it lets out.
    pub(super) fn publish_with_the_turn(self: &Arc<Self>, author: Author, payload: T) {
        let shared = self.clone();
        turn::with_the_turn(move || {
            if let Err(error) = shared.publish(author, payload) {
                tracing::error!(%error, "an event of a turn was not published");
            }
        });
    }

    /// Delivers here for a moment, if handlers may run here or there is only one chunk; what is
    /// left is for workers.
    fn deliver(self: &Arc<Self>, chunks: &[Arc<TopicChunk<T>>]) {
        let node = &*self.node;
        let is_in_task = node.env.is_in_task();
        let mut visitor = (is_in_task || chunks.len() == 1)
            .then(|| Visitor::new(is_in_task, Share::of_publisher(node)));
        for chunk in chunks {
            if let Some(visitor) = visitor.as_mut().filter(|visitor| visitor.has_time()) {
                self.deliver_chunk(chunk, visitor);
                if visitor.has_time() || !chunk.is_far_behind() {
                    continue;
                }
            }
            match chunk.claim_worker() {
                Wants::Nothing => {}
                Wants::Worker => self.start_worker(chunk),
                Wants::Help => {
                    // Whatever keeps the worker away: this publisher takes off as much as it adds.
                    let mut helper = Visitor::new(is_in_task, Share::of_helper(node));
                    self.deliver_chunk(chunk, &mut helper);
                }
            }
        }
    }

    fn deliver_chunk(self: &Arc<Self>, chunk: &Arc<TopicChunk<T>>, visitor: &mut Visitor<'_>) {
        shielded("the delivery of events", || {
            let ended = chunk.deliver(Role::Publisher, |delivery| visitor.bring(&delivery));
            self.count_missed(visitor.take_missed());
            if ended.wants_worker {
                self.start_worker(chunk);
            }
            if ended.is_empty {
                self.forget_if_empty(chunk);
            }
        });
    }

    /// Counts events that subscribers did not get.
    pub(super) fn count_missed(&self, events: u64) {
        if events > 0 {
            self.missed.fetch_add(events, Ordering::Relaxed);
        }
    }

    fn start_worker(self: &Arc<Self>, chunk: &Arc<TopicChunk<T>>) {
        self.node.env.spawn(Worker::new(self.clone(), chunk.clone()));
    }

    /// Takes a chunk out of which the last subscriber has gone.
    pub(super) fn forget_if_empty(&self, chunk: &Arc<TopicChunk<T>>) {
        let mut state = self.state.lock();
        state.forget_if_empty(chunk);
        self.stop_listening_if_empty(&mut state);
    }

    /// Lists the subscriber that `make` makes of its id and the topic's last event.
    pub(super) fn subscribe(
        self: &Arc<Self>,
        make: impl FnOnce(u64, Sequence) -> Subscriber<T>,
    ) -> Seat<T> {
        self.subscribe_locked(&mut self.state.lock(), make)
    }

    /// Lists a stream of what comes after `after`, and tells what of it has come already.
    pub(super) fn subscribe_stream(
        self: &Arc<Self>,
        after: Sequence,
        buffer: Arc<Buffer<T>>,
    ) -> (Seat<T>, Beginning<T>) {
        let mut state = self.state.lock();
        let (gap, kept) = state.ring.after(after, state.last);
        let is_closed = state.is_closed;
        let make = |id, since| Subscriber::stream(id, since, buffer);
        let seat = self.subscribe_locked(&mut state, make);
        (seat, Beginning { gap, kept, is_closed })
    }

    fn subscribe_locked(
        self: &Arc<Self>,
        state: &mut State<T>,
        make: impl FnOnce(u64, Sequence) -> Subscriber<T>,
    ) -> Seat<T> {
        state.next_id += 1;
        let (id, since) = (state.next_id, state.last);
        let chunk = state.chunk_with_room();
        chunk.add(make(id, since));
        self.begin_to_listen(state);
        Seat { shared: self.clone(), chunk, id, since }
    }
}

impl<T: Send + Sync + 'static> Seated for Seat<T> {
    fn since(&self) -> Sequence {
        self.since
    }

    fn leave(self: Box<Self>) {
        (*self).leave();
    }
}

impl<T: Send + Sync + 'static> Seat<T> {
    /// Ends the subscription.
    pub(super) fn leave(self) {
        let mut state = self.shared.state.lock();
        let removed = self.chunk.remove(self.id);
        state.forget_if_empty(&self.chunk);
        self.shared.stop_listening_if_empty(&mut state);
        drop(state);
        discard("the drop of a subscriber", removed);
    }
}

impl<T> State<T> {
    fn number(
        &mut self,
        author: Author,
        topic: &TopicName,
        is_across: bool,
    ) -> Result<Number, Refusal> {
        let Self { last, epoch, is_owned, is_unsure, .. } = *self;
        let standing = Standing { last, epoch, is_owned, is_unsure, is_across };
        let number = author.number(standing, topic)?;
        self.is_unsure = false;
        Ok(number)
    }
}

impl<T: Send + Sync + 'static> State<T> {
    pub(super) fn has_nobody(&self) -> bool {
        self.chunks.is_empty()
    }

    fn chunk_with_room(&mut self) -> Arc<TopicChunk<T>> {
        if let Some(chunk) = self.chunks.iter().rev().find(|chunk| chunk.len() < CHUNK_LEN) {
            return chunk.clone();
        }
        let chunk = Arc::new(Chunk::new());
        Arc::make_mut(&mut self.chunks).push(chunk.clone());
        chunk
    }

    /// The caller holds the chunk, so that it is not dropped here.
    fn forget_if_empty(&mut self, chunk: &Arc<TopicChunk<T>>) {
        if chunk.len() == 0 {
            Arc::make_mut(&mut self.chunks).retain(|other| !Arc::ptr_eq(other, chunk));
        }
    }
}

impl<T: Send + Sync + 'static> AnyTopic for Shared<T> {
    fn view(&self) -> TopicView {
        let state = self.state.lock();
        let (last, epoch, kept) = (state.last, state.epoch, state.ring.len());
        let (is_owned, chunks) = (state.is_owned, state.chunks.clone());
        drop(state);
        let subscribers = chunks.iter().map(|chunk| chunk.len()).sum();
        let pending = chunks.iter().map(|chunk| chunk.pending()).sum();
        discard("the drop of a chunk", chunks);
        TopicView {
            name: self.name.clone(),
            event: type_name::<T>(),
            subscribers,
            last,
            kept,
            pending,
            missed: self.missed.load(Ordering::Relaxed),
            epoch,
            is_owned,
        }
    }

    fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        let chunks = state.chunks.clone();
        drop(state);
        for chunk in chunks.iter() {
            let listed = chunk.listed();
            for subscriber in listed.iter() {
                if let Listener::Stream(buffer) = &subscriber.listener {
                    buffer.close();
                }
            }
            discard("the drop of a subscriber", listed);
        }
        discard("the drop of a chunk", chunks);
    }

    fn take(self: Arc<Self>, event: Arriving<'_>) -> Result<(), NotTaken> {
        self.take_arriving(event)
    }

    fn doubt(&self) {
        self.state.lock().is_unsure = true;
    }

    fn release_elsewhere(&self, epoch: Epoch) {
        let mut state = self.state.lock();
        if state.epoch == Some(epoch) && state.is_owner_elsewhere {
            state.is_owned = false;
        }
    }
}

impl<T: Send + Sync + 'static> Drop for Shared<T> {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        let (kept, chunks) = (state.ring.take(), std::mem::take(&mut state.chunks));
        if std::mem::take(&mut state.is_listening)
            && let Some(across) = &self.across
        {
            across.way().listen(Listening::Ends);
        }
        discard_all("the drop of an event", kept);
        discard("the drop of a chunk", chunks);
        let seat: *const Self = self;
        self.node.holdings().topics.forget::<T>(&self.name, seat.cast());
    }
}
