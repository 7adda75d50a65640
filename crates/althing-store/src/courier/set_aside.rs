//! Letters that are longer than the node of their actor reads. They stay in the store and hold up
//! nobody, and are looked at again whenever the store is read: one that fits by then is sent, behind
//! what has gone ahead of it.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use althing::remote::Letter;

use crate::delivery::Mark;

/// Letters that are remembered, so that each is told once; beyond, some are told again.
const KNOWN_MAX: usize = 10_000;

pub(super) struct SetAside {
    known: HashSet<Mark>,
    total: Arc<AtomicU64>,
}

impl SetAside {
    /// Counts into `total`.
    pub(super) fn new(total: Arc<AtomicU64>) -> Self {
        Self { known: HashSet::new(), total }
    }

    /// A letter cannot be sent now.
    pub(super) fn add(&mut self, mark: &Mark, letter: &Letter, len_max: usize) {
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        if !self.known.insert(mark.clone()) {
            return;
        }
        self.total.fetch_add(1, Ordering::Relaxed);
        let (Mark { owner, name, .. }, to, len) = (mark, &letter.to, letter.body.len());
        tracing::error!(%owner, name, %to, len, len_max, "a letter that is too long is set aside");
    }

    /// A letter is sent.
    pub(super) fn sent(&mut self, mark: &Mark) {
        if !self.known.is_empty() {
            self.known.remove(mark);
        }
    }
}
