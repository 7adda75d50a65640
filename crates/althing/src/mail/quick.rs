//! Which messages an actor type is known to answer promptly, so that an asker may run their handler
//! on its own task.
//!
//! A handler that blocks its thread or never returns takes whoever runs it along, and no deadline
//! helps. So the first ask with a message type goes through the mailbox, and only a prompt answer
//! opens the way to handlers run in place. What is kept are hints: two message types may displace
//! each other, which costs the next ask a task switch.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::metrics::MessageName;

/// Message types remembered per actor type: more than nearly all have.
const PLACES: usize = 32;
/// An answer up to this time is prompt; longer than a scheduler's usual delays, shorter than what
/// an asker would notice.
const PROMPT_NS_MAX: u64 = 10_000_000;

/// The messages known to be answered promptly, by the address of the function that names their
/// type.
pub(crate) struct Quick {
    known: [AtomicUsize; PLACES],
}

impl Quick {
    pub(crate) const fn new() -> Self {
        Self { known: [const { AtomicUsize::new(0) }; PLACES] }
    }

    #[inline]
    pub(crate) fn knows(&self, message: MessageName) -> bool {
        self.place(message).load(Ordering::Relaxed) == message as usize
    }

    /// Takes note of how long an answer took.
    pub(crate) fn learn(&self, message: MessageName, took_ns: u64) {
        if took_ns <= PROMPT_NS_MAX {
            self.place(message).store(message as usize, Ordering::Relaxed);
        }
    }

    /// Has the next ask with that message go through the mailbox again.
    pub(crate) fn forget(&self, message: MessageName) {
        let _ = self.place(message).compare_exchange(
            message as usize,
            0,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }

    #[inline]
    fn place(&self, message: MessageName) -> &AtomicUsize {
        // Functions are aligned to 16 bytes.
        &self.known[(message as usize >> 4) % PLACES]
    }
}
