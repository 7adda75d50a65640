//! Some subscribers of a topic, the events on their way to them, and who brings them there.
//!
//! A chunk is what keeps order: one thread at a time, whoever has its turn, takes the oldest event
//! to all its subscribers before the next. The turn passes from publishers, who have little time,
//! to a worker task, and back whenever the worker is not at it.
//!
//! Invariant: the list of subscribers is always whole. A deliverer reads a snapshot of it, and who
//! changes the list meanwhile changes a copy. So there is nothing to put back after a panic, and a
//! chunk is empty exactly if its list is. Whatever is removed is handed out, to be dropped without
//! the lock: it may be the last reference to an actor or event.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::shield::{discard, discard_all};
use crate::sync::Mutex;

/// Subscribers per chunk: one job's work, small enough to spread over the cores.
pub(super) const CHUNK_LEN: usize = 512;

/// Events that wait in a chunk at most. A publisher that outruns its subscribers by more loses the
/// oldest for them, and they see a gap. Eight full mailboxes: what a worker delivers to idle
/// subscribers while others keep it from its processor for 60 ms.
const QUEUE_LEN_MAX: usize = 8_192;

/// Events from which on publishers help a chunk along, however little time they have.
const QUEUE_LONG: usize = QUEUE_LEN_MAX / 2;

/// Places of a queue that an idle chunk keeps; half a kibibyte.
const QUEUE_KEPT: usize = 64;

/// Something with a number of its own in a chunk, by which the list is in order.
pub(super) trait Listed: Clone {
    fn id(&self) -> u64;
}

/// Some subscribers and the events on their way to them.
pub(super) struct Chunk<S, E> {
    book: Mutex<Book<S, E>>,
}

struct Book<S, E> {
    /// By rising id.
    listed: Arc<Vec<S>>,
    events: VecDeque<E>,
    /// The first event has been brought to the subscribers up to this id.
    reached: u64,
    /// Events that had to go for lack of room since the last turn.
    skipped: u64,
    /// Whether somebody is delivering.
    is_taken: bool,
    /// Whether a worker task exists; it looks at the queue before it ends.
    has_worker: bool,
}

/// A stretch of work: an event, and who is still to get it.
pub(super) struct Delivery<'a, S, E> {
    pub(super) event: &'a E,
    pub(super) subscribers: &'a [S],
    /// Events before it that none of the subscribers will get.
    pub(super) skipped: u64,
}

/// What became of a delivery.
#[derive(Default)]
pub(super) struct Delivered {
    /// How many subscribers have been seen to, from the first on.
    pub(super) seen: usize,
    /// Which of them are gone.
    pub(super) gone: Vec<u64>,
}

/// Whether a deliverer has time for another event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    Left,
    Up,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ended {
    /// There is more to deliver than this turn could, and no worker for it: the caller has to start
    /// one.
    pub(super) wants_worker: bool,
    /// There is more to deliver; for a worker, which then goes on.
    pub(super) is_unfinished: bool,
    /// Nobody is listed any more.
    pub(super) is_empty: bool,
}

/// What a chunk with waiting events needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    /// Nothing: somebody delivers, or is about to.
    Nothing,
    /// A worker.
    Worker,
    /// That its publishers deliver, because no worker gets to it.
    Help,
}

/// On whose behalf a turn is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Publisher,
    Worker,
}

/// The right to deliver; given back however the delivery ends.
struct Turn<'a, S: Listed, E> {
    chunk: &'a Chunk<S, E>,
    role: Role,
    is_over: bool,
}

/// An event in a deliverer's hands, with the list as it was when it was taken.
struct InHand<S, E> {
    event: E,
    listed: Arc<Vec<S>>,
    from: usize,
    skipped: u64,
}

impl<S: Listed, E> Chunk<S, E> {
    pub(super) fn new() -> Self {
        Self {
            book: Mutex::new(Book {
                listed: Arc::new(Vec::new()),
                events: VecDeque::new(),
                reached: 0,
                skipped: 0,
                is_taken: false,
                has_worker: false,
            }),
        }
    }

    /// Lists a subscriber, whose id is above those of all that were listed before.
    pub(super) fn add(&self, subscriber: S) {
        let mut book = self.book.lock();
        let listed = Arc::make_mut(&mut book.listed);
        if listed.is_empty() {
            // By itself a list begins with room for four, and many topics have one listener.
            listed.reserve_exact(1);
        }
        listed.push(subscriber);
    }

    /// Takes a subscriber off the list, if it is still there.
    pub(super) fn remove(&self, id: u64) -> Option<S> {
        self.book.lock().remove(id)
    }

    /// Queues an event; returns the oldest if it has to go for lack of room.
    pub(super) fn push(&self, event: E) -> Option<E> {
        let mut book = self.book.lock();
        let oldest = book.make_room();
        book.events.push_back(event);
        oldest
    }

    /// Subscribers listed.
    pub(super) fn len(&self) -> usize {
        self.book.lock().listed.len()
    }

    /// Events that some subscribers have still to be handed.
    pub(super) fn pending(&self) -> usize {
        let book = self.book.lock();
        book.events.len() + usize::from(book.is_taken)
    }

    /// Whether so much waits that publishers have to help.
    pub(super) fn is_far_behind(&self) -> bool {
        self.book.lock().events.len() > QUEUE_LONG
    }

    /// The subscribers at this moment.
    pub(super) fn listed(&self) -> Arc<Vec<S>> {
        self.book.lock().listed.clone()
    }

    /// What a publisher who has no time has to do about what waits. Who is told `Worker` has
    /// promised to start one.
    pub(super) fn claim_worker(&self) -> Wants {
        let mut book = self.book.lock();
        if book.is_taken || book.events.is_empty() {
            Wants::Nothing
        } else if book.events.len() > QUEUE_LONG {
            Wants::Help
        } else if book.has_worker {
            Wants::Nothing
        } else {
            book.has_worker = true;
            Wants::Worker
        }
    }

    /// Says that the worker is no more, whatever it left.
    pub(super) fn lose_worker(&self) {
        self.book.lock().has_worker = false;
    }

    /// Delivers one event after the other for as long as there is time, unless somebody else is at
    /// it.
    pub(super) fn deliver(
        &self,
        role: Role,
        mut bring: impl FnMut(Delivery<'_, S, E>) -> (Delivered, Time),
    ) -> Ended {
        let Some((mut turn, mut in_hand)) = self.take_turn(role) else { return Ended::default() };
        loop {
            let subscribers = &in_hand.listed[in_hand.from..];
            let delivery =
                Delivery { event: &in_hand.event, subscribers, skipped: in_hand.skipped };
            let (Delivered { seen, gone }, time) = bring(delivery);
            let is_whole = seen == subscribers.len();
            let InHand { event, listed, from, .. } = in_hand;
            let reached = listed[..from + seen].last().map_or(0, Listed::id);
            // Before the lock is taken: both may be the last reference, and what is dropped then
            // may use the topic.
            discard("the drop of a subscriber", listed);
            let rest = if is_whole {
                discard("the drop of an event", event);
                None
            } else {
                Some((event, reached))
            };
            match turn.go_on(rest, &gone, time) {
                Ok(next) => in_hand = next,
                Err(ended) => return ended,
            }
        }
    }

    fn take_turn(&self, role: Role) -> Option<(Turn<'_, S, E>, InHand<S, E>)> {
        let mut book = self.book.lock();
        if book.is_taken {
            book.has_worker &= role != Role::Worker;
            return None;
        }
        let Some(in_hand) = book.take() else {
            book.has_worker &= role != Role::Worker;
            return None;
        };
        book.is_taken = true;
        Some((Turn { chunk: self, role, is_over: false }, in_hand))
    }
}

impl<S, E> Drop for Chunk<S, E> {
    fn drop(&mut self) {
        let left = std::mem::take(&mut self.book.lock().events);
        discard_all("the drop of an event", left);
    }
}

impl<S: Listed, E> Turn<'_, S, E> {
    /// Puts back an event that has not reached all, strikes off who is gone, and takes the next
    /// event if there is time.
    fn go_on(
        &mut self,
        rest: Option<(E, u64)>,
        gone: &[u64],
        time: Time,
    ) -> Result<InHand<S, E>, Ended> {
        let mut book = self.chunk.book.lock();
        let removed: Vec<_> = gone.iter().filter_map(|&id| book.remove(id)).collect();
        if let Some((event, reached)) = rest {
            book.events.push_front(event);
            book.reached = reached;
        }
        let next = match time {
            Time::Left => book.take(),
            Time::Up => None,
        };
        let outcome = next.ok_or_else(|| {
            self.is_over = true;
            book.end_turn(self.role)
        });
        drop(book);
        discard("the drop of a subscriber", removed);
        outcome
    }
}

impl<S: Listed, E> Drop for Turn<'_, S, E> {
    fn drop(&mut self) {
        if !self.is_over {
            // A panic passed: what waits is left to the next publisher.
            let mut book = self.chunk.book.lock();
            book.is_taken = false;
            book.has_worker &= self.role != Role::Worker;
        }
    }
}

impl<S: Listed, E> Book<S, E> {
    fn remove(&mut self, id: u64) -> Option<S> {
        let place = self.listed.binary_search_by_key(&id, Listed::id).ok()?;
        Some(Arc::make_mut(&mut self.listed).remove(place))
    }

    fn make_room(&mut self) -> Option<E> {
        if self.events.len() < QUEUE_LEN_MAX {
            return None;
        }
        self.skipped += 1;
        self.reached = 0;
        self.events.pop_front()
    }

    fn take(&mut self) -> Option<InHand<S, E>> {
        let event = self.events.pop_front()?;
        let reached = std::mem::take(&mut self.reached);
        let from = match reached {
            0 => 0,
            reached => self.listed.partition_point(|subscriber| subscriber.id() <= reached),
        };
        let skipped = if from == 0 { std::mem::take(&mut self.skipped) } else { 0 };
        Some(InHand { event, listed: self.listed.clone(), from, skipped })
    }

    fn end_turn(&mut self, role: Role) -> Ended {
        self.is_taken = false;
        let is_unfinished = !self.events.is_empty();
        if !is_unfinished && self.events.capacity() > QUEUE_KEPT {
            self.events = VecDeque::new();
        }
        let wants_worker = is_unfinished && !self.has_worker;
        self.has_worker = match role {
            // One that was started before will come, even if it finds nothing to do.
            Role::Publisher => self.has_worker || wants_worker,
            Role::Worker => is_unfinished,
        };
        Ended { wants_worker, is_unfinished, is_empty: self.listed.is_empty() }
    }
}

#[cfg(all(test, althing_loom))]
mod model;
#[cfg(all(test, not(althing_loom)))]
mod tests;
