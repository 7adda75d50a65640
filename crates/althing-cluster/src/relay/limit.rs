//! How long an event may be for the nodes that listen to its topic; read by publishers without the
//! lock under which it is set.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Nobody listens elsewhere, and nothing has been published since the topic is known.
const UNUSED: usize = 0;

/// Nobody listens elsewhere, and something was published.
const SILENT: usize = 1;

/// Values from here on are limits, of as many bytes as they are above this.
const HEARD: usize = 2;

/// The longest event that all nodes read that listen to a topic.
#[derive(Debug, Default)]
pub(crate) struct Limit(AtomicUsize);

impl Limit {
    /// Of an event that is about to be published; `None` if no other node listens. That is
    /// remembered: who begins to listen later learns that there was something.
    pub(crate) fn of_next_event(&self) -> Option<usize> {
        let mut value = self.0.load(Ordering::Acquire);
        if value == UNUSED {
            // If somebody begins to listen at this moment, the event goes there.
            let silent =
                self.0.compare_exchange(UNUSED, SILENT, Ordering::AcqRel, Ordering::Acquire);
            value = silent.err().unwrap_or(SILENT);
        }
        value.checked_sub(HEARD)
    }

    /// Whether something was published that nobody elsewhere heard.
    pub(super) fn has_kept_silent(&self) -> bool {
        self.0.load(Ordering::Acquire) == SILENT
    }

    /// Whoever listens reads so much; nobody listens if it is `None`.
    pub(super) fn set(&self, len_max: Option<usize>) {
        // Who has listened has made somebody publish, perhaps.
        let value = len_max.map_or(SILENT, |len_max| len_max.saturating_add(HEARD));
        self.0.store(value, Ordering::Release);
    }
}
