//! The lanes beside the queue: messages that run before all others, or after them.
//!
//! Lanes are rare, so that their messages lie in the extras; `aside` counts them, because they take
//! room like all others.

use super::{Inner, Mailbox, Pushed, Wake};
use crate::mail::envelope::Envelope;
use crate::mail::priority::Priority;

impl Mailbox {
    /// As `push`, into the lane of a priority.
    pub(crate) fn push_aside(
        &self,
        len_max: u32,
        priority: Priority,
        make: impl FnOnce() -> Envelope,
        wake: impl FnOnce(Wake),
    ) -> Pushed {
        if priority == Priority::Normal {
            return self.push(len_max, make, wake);
        }
        let mut inner = match self.admit(self.lock(), len_max) {
            Ok(inner) => inner,
            Err(refused) => return refused,
        };
        inner.queue_by(priority, make());
        let what = inner.claim();
        drop(inner);
        wake(what);
        Pushed::Queued
    }
}

impl Inner {
    /// Queues a message by its priority.
    pub(super) fn queue_by(&mut self, priority: Priority, envelope: Envelope) {
        let lane = match priority {
            Priority::Normal => return self.queue_push(envelope),
            Priority::High => &mut self.extras().high,
            Priority::Low => &mut self.extras().low,
        };
        lane.push_back(envelope);
        self.aside += 1;
    }

    /// Takes the next message of high priority.
    pub(crate) fn take_high(&mut self) -> Option<Envelope> {
        let envelope = self.extras.as_mut()?.high.pop_front()?;
        self.aside -= 1;
        Some(envelope)
    }

    /// Takes the next message of low priority.
    pub(super) fn take_low(&mut self) -> Option<Envelope> {
        let envelope = self.extras.as_mut()?.low.pop_front()?;
        self.aside -= 1;
        Some(envelope)
    }
}
