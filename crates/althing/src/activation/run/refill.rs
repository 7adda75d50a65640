//! Where the next batch comes from: out of the mailbox, with a short wait for senders at work, and
//! senders that wait are called up for the room it leaves.

use std::task::Context;

use super::{Run, Served};
use crate::activation::waits;
use crate::address::place::Header;
use crate::mail::buffers::give_buffer;
use crate::mail::mailbox::Phase;
use crate::shield::wake_all;
use crate::sync::pause;

/// A batch from this length on shows senders at work, for whom it is worth to linger a little.
const LINGER_FROM: u32 = 32;
/// Looks at the queue before a lingering runner leaves.
const LOOKS_MAX: u32 = 4;
/// Spins between two looks: about a microsecond.
const SPINS: u32 = 32;

/// Waits a few microseconds for senders at work: shorter than to leave, be scheduled and begin
/// anew. Once there is a message, more of them may gather.
fn linger(header: &Header) {
    for _ in 0..LOOKS_MAX {
        let was_filled = header.mailbox.is_filled();
        pause(SPINS);
        if was_filled || header.has_attention() {
            return;
        }
    }
}

impl Run {
    /// Gets more messages, or leaves: `None` means there are some.
    pub(super) fn refill(&mut self, cx: &Context<'_>) -> Option<Served> {
        self.flush_tally();
        self.uncalled = 0;
        let header = self.place.header();
        let mut inner = header.mailbox.lock_soon();
        inner.hold(0, header.mailbox.tally());
        inner.absorb();
        if inner.is_empty()
            && self.ran_in_batch >= LINGER_FROM
            && !header.kind.node.env.is_simulated()
            // Senders that wait for room are called up at once instead.
            && !inner.awaited
        {
            drop(inner);
            linger(header);
            inner = header.mailbox.lock_soon();
            inner.absorb();
        }
        let wakers = inner.call_up(header.kind.len_max);
        if !wakers.is_empty() {
            drop(inner);
            wake_all(wakers);
            inner = header.mailbox.lock_soon();
            inner.absorb();
        }
        self.ran_in_batch = 0;
        if inner.has_system() {
            drop(inner);
            return self.look(cx);
        }
        if !inner.is_empty() {
            self.batch.fill(&mut inner, header.mailbox.tally());
            drop(inner);
            header.touch();
            return None;
        }
        if self.reads.is_empty() && !self.has_turns() {
            inner.phase = Phase::Idle;
            let spare = inner.shed();
            drop(inner);
            give_buffer(spare);
            self.batch.recycle();
            header.touch();
            return Some(Served::Idle);
        }
        inner.park(cx.waker());
        let has_new_wait = inner.extras().has_new_wait();
        drop(inner);
        if has_new_wait {
            waits::suspended(&self.place);
        }
        Some(Served::Suspended)
    }

    /// Calls up waiting senders if there is room by now.
    pub(super) fn call_up(&mut self) {
        self.flush_tally();
        self.uncalled = 0;
        let header = self.place.header();
        let mut inner = header.mailbox.lock_soon();
        inner.hold(self.held(), header.mailbox.tally());
        let wakers = inner.call_up(header.kind.len_max);
        drop(inner);
        wake_all(wakers);
    }

    /// Counts what has run.
    pub(super) fn flush_tally(&mut self) {
        self.place.header().mailbox.add_to_tally(std::mem::take(&mut self.untallied));
    }
}
