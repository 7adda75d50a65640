//! Counters that are always on, per actor type.

use std::sync::atomic::{AtomicU64, Ordering};

/// Lives and failures of one actor type on one node.
#[derive(Debug, Default)]
pub(crate) struct KindMetrics {
    started: AtomicU64,
    stopped: AtomicU64,
    panicked: AtomicU64,
    restarted: AtomicU64,
}

/// Counters of one actor type at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindSnapshot {
    /// `Actor::NAME`.
    pub name: &'static str,
    /// Lives begun.
    pub started: u64,
    /// Lives ended.
    pub stopped: u64,
    /// Handlers and hooks that panicked.
    pub panicked: u64,
    /// Restarts by supervision.
    pub restarted: u64,
}

impl KindMetrics {
    pub(crate) fn started(&self) {
        self.started.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn stopped(&self) {
        self.stopped.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn panicked(&self) {
        self.panicked.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn restarted(&self) {
        self.restarted.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self, name: &'static str) -> KindSnapshot {
        KindSnapshot {
            name,
            started: self.started.load(Ordering::Relaxed),
            stopped: self.stopped.load(Ordering::Relaxed),
            panicked: self.panicked.load(Ordering::Relaxed),
            restarted: self.restarted.load(Ordering::Relaxed),
        }
    }
}
