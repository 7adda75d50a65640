//! What one thread has counted for one actor type. It alone writes; anyone may read at any time.
//!
//! Invariant: a shard is written by one thread at a time, except the shared one, which knows that
//! it is. So a plain load and store count exactly, and relaxed order suffices: the numbers order
//! nothing else.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::MessageName;
use super::histogram::{BUCKETS, Histogram, bucket_of};
use super::running::Running;

/// One of this many messages of a type on a thread is timed, the first included. Two readings of
/// the clock and taking the time down cost 80 to 200 ns together. One in 128 cost 4 % of tells in
/// batches and of events (`metrics-cost`); without timing nothing could be told from zero.
pub(crate) const SAMPLE_EVERY: u64 = 512;
/// The same for events brought to idle subscribers, one after the other at 5 ns each: there one in
/// 512 was still 3 %. A multiple of `SAMPLE_EVERY`, so that where a run of them stops there is one
/// to be timed.
const SAMPLE_EVENTS_EVERY: u64 = 2_048;
const COUNTERS: usize = 10;

/// What is counted besides handled messages.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Counter {
    Started,
    Stopped,
    Panicked,
    Rejected,
    Restarted,
    Missed,
    TimedOut,
    Overloaded,
    Refused,
    Lost,
}

/// The counters of one thread. Aligned to two cache lines, because processors fetch them in pairs.
#[repr(align(128))]
pub(crate) struct Shard {
    handled: AtomicU64,
    is_shared: bool,
    counters: [AtomicU64; COUNTERS],
    buckets: [AtomicU64; BUCKETS],
    sum_ns: AtomicU64,
    pub(super) running: Running,
    /// A handful of entries; touched for timed messages only.
    messages: Mutex<Vec<MessageTimes>>,
}

/// Times of one message type.
#[derive(Clone, Debug)]
pub(crate) struct MessageTimes {
    pub(super) name: &'static str,
    pub(super) handling: Histogram,
    pub(super) max_ns: u64,
}

impl Shard {
    pub(super) fn new(is_shared: bool) -> Self {
        Self {
            handled: AtomicU64::new(0),
            is_shared,
            counters: [const { AtomicU64::new(0) }; COUNTERS],
            buckets: [const { AtomicU64::new(0) }; BUCKETS],
            sum_ns: AtomicU64::new(0),
            running: Running::default(),
            messages: Mutex::default(),
        }
    }

    /// Counts a message that is about to run; returns whether to time it.
    #[inline]
    pub(crate) fn handle(&self) -> bool {
        self.add(&self.handled, 1).is_multiple_of(SAMPLE_EVERY)
    }

    /// How many messages may run before one that is to be timed.
    #[inline]
    pub(crate) fn until_sample(&self) -> u32 {
        self.until_multiple_of::<SAMPLE_EVERY>()
    }

    /// How many events may run before one that is to be timed.
    #[inline]
    pub(crate) fn until_event_sample(&self) -> u32 {
        self.until_multiple_of::<SAMPLE_EVENTS_EVERY>()
    }

    #[inline]
    fn until_multiple_of<const EVERY: u64>(&self) -> u32 {
        let since = self.handled.load(Ordering::Relaxed) % EVERY;
        ((EVERY - since) % EVERY) as u32
    }

    /// Counts messages that are about to run.
    #[inline]
    pub(crate) fn handle_all(&self, messages: u32) {
        self.add(&self.handled, messages.into());
    }

    /// Takes back what was counted and has not been run: it will come again.
    #[inline]
    pub(crate) fn unhandle(&self, messages: u32) {
        self.add(&self.handled, 0_u64.wrapping_sub(messages.into()));
    }

    /// What this thread runs; `None` if other threads write here too.
    #[inline]
    pub(crate) fn running(&self) -> Option<&Running> {
        (!self.is_shared).then_some(&self.running)
    }

    pub(crate) fn count(&self, what: Counter) {
        self.count_many(what, 1);
    }

    pub(crate) fn count_many(&self, what: Counter, times: u64) {
        self.add(&self.counters[what as usize], times);
    }

    /// Takes the time of a message down.
    #[cold]
    pub(crate) fn record(&self, message: MessageName, elapsed_ns: u64) {
        self.add(&self.buckets[bucket_of(elapsed_ns)], 1);
        self.add(&self.sum_ns, elapsed_ns);
        let mut handling = Histogram::default();
        handling.record(elapsed_ns);
        let one = MessageTimes { name: message(), handling, max_ns: elapsed_ns };
        merge(&mut self.messages.lock(), &one);
    }

    pub(super) fn handled(&self) -> u64 {
        self.handled.load(Ordering::Relaxed)
    }

    pub(super) fn counted(&self, what: Counter) -> u64 {
        self.counters[what as usize].load(Ordering::Relaxed)
    }

    pub(super) fn buckets(&self) -> impl Iterator<Item = u64> {
        self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed))
    }

    pub(super) fn sum_ns(&self) -> u64 {
        self.sum_ns.load(Ordering::Relaxed)
    }

    pub(super) fn merge_messages(&self, into: &mut Vec<MessageTimes>) {
        for one in self.messages.lock().iter() {
            merge(into, one);
        }
    }

    /// Adds and returns what was there before; wraps.
    #[inline]
    fn add(&self, place: &AtomicU64, n: u64) -> u64 {
        if self.is_shared {
            return place.fetch_add(n, Ordering::Relaxed);
        }
        let before = place.load(Ordering::Relaxed);
        place.store(before.wrapping_add(n), Ordering::Relaxed);
        before
    }
}

/// Adds the times of one message type to the list.
fn merge(list: &mut Vec<MessageTimes>, one: &MessageTimes) {
    // The address almost always tells; one name may stand in several places of the program.
    let is_same =
        |known: &MessageTimes| std::ptr::eq(known.name, one.name) || known.name == one.name;
    match list.iter_mut().find(|known| is_same(known)) {
        Some(known) => {
            known.handling.merge(&one.handling);
            known.max_ns = known.max_ns.max(one.max_ns);
        }
        None => list.push(one.clone()),
    }
}
