//! Metrics that are always on: per actor type, what was handled, what failed, and how long handlers
//! took.
//!
//! Each actor type has one shard per thread, found by the thread's slot: no lookup by label, no
//! shared cache line. A message costs one addition; one of `SAMPLE_EVERY` is also timed, from its
//! start to the end of its handler, waits included. The clock is the node's, so that times are
//! virtual where time is. Shards belong to the type, not to the thread: a thread that ends loses
//! nothing.

pub(crate) mod blocked;
pub(crate) mod doing;
pub(crate) mod inspection;
pub(crate) mod listing;
pub(crate) mod long_running;
pub(crate) mod observe;
pub(crate) mod step;
pub(crate) mod topics;
pub(crate) mod trace;
pub(crate) mod tree;

mod histogram;
mod prometheus;
mod running;
mod shard;
mod slot;
mod snapshot;

use std::sync::OnceLock;

pub use histogram::Histogram;
use running::{Polled, Running};
pub(crate) use shard::{Counter, Shard};
pub(crate) use snapshot::short_name;
pub use snapshot::{KindSnapshot, MessageSnapshot, Snapshot};

use snapshot::Totals;

/// Yields the name of a message's type.
pub(crate) type MessageName = fn() -> &'static str;

/// Whether a node counts; off only to measure what counting costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metrics {
    /// Everything is counted.
    #[default]
    On,
    /// Nothing is counted; snapshots are zero.
    Off,
}

/// Whether a node wraps handled messages in spans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tracing {
    /// No spans.
    #[default]
    Off,
    /// A span per message, whose parent is the sender's.
    On,
}

impl Tracing {
    #[inline]
    pub(crate) fn is_on(self) -> bool {
        self == Self::On
    }
}

/// A message whose handling time is taken.
#[derive(Clone, Copy)]
pub(crate) struct Timed {
    pub(crate) started_ns: u64,
    pub(crate) message: MessageName,
}

/// The counters of one actor type on one node.
pub(crate) struct KindMetrics {
    metrics: Metrics,
    /// By slot; the last one is shared by all threads without a slot of their own.
    shards: Box<[OnceLock<Box<Shard>>]>,
}

impl KindMetrics {
    pub(crate) fn new(metrics: Metrics) -> Self {
        let places = match metrics {
            Metrics::On => slot::SHARED + 1,
            Metrics::Off => 0,
        };
        Self { metrics, shards: (0..places).map(|_| OnceLock::new()).collect() }
    }

    /// This thread's shard, for use on this thread only; `None` when metrics are off.
    #[inline]
    pub(crate) fn shard(&self) -> Option<&Shard> {
        let slot = slot::current();
        let place = self.shards.get(slot)?;
        Some(place.get_or_init(|| Box::new(Shard::new(slot == slot::SHARED))))
    }

    /// Counts one more of what seldom happens.
    pub(crate) fn count(&self, what: Counter) {
        if let Some(shard) = self.shard() {
            shard.count(what);
        }
    }

    /// Counts several of what seldom happens.
    pub(crate) fn count_many(&self, what: Counter, times: u64) {
        if let Some(shard) = self.shard() {
            shard.count_many(what, times);
        }
    }

    /// Marks `actor` as what this thread polls until the guard drops.
    #[inline]
    pub(crate) fn polling(&self, actor: *const ()) -> Polled<'_> {
        Running::poll(self.shard().and_then(Shard::running), actor)
    }

    /// What a thread runs for `actor`; `None` if none does, or it is not known.
    pub(crate) fn message_of(&self, actor: *const ()) -> Option<Option<&'static str>> {
        let shards = self.shards.iter().filter_map(OnceLock::get);
        shards.filter_map(|shard| shard.running()).find_map(|running| running.message_of(actor))
    }

    /// Adds up all shards.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for shard in self.shards.iter().filter_map(OnceLock::get) {
            totals.add(shard);
        }
        totals
    }
}

impl std::fmt::Debug for KindMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("KindMetrics").field(&self.metrics).finish()
    }
}

#[cfg(test)]
mod tests;
