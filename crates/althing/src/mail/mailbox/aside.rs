//! The lanes beside the queue: messages that run before all others, or after them.
//!
//! Lanes are rare, so that their messages lie in the extras; `beside` counts them, because they take
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
    /// Whether messages of other than normal priority wait.
    pub(super) fn has_aside(&self) -> bool {
        let extras = self.extras.as_ref();
        extras.is_some_and(|extras| !extras.high.is_empty() || !extras.low.is_empty())
    }

    /// Takes all messages of other than normal priority, in the order in which they would run.
    pub(super) fn take_aside(&mut self) -> Vec<Envelope> {
        let Some(extras) = self.extras.as_mut() else { return Vec::new() };
        let aside: Vec<_> = extras.high.drain(..).chain(extras.low.drain(..)).collect();
        self.beside -= aside.len() as u32;
        aside
    }

    /// Queues a message by its priority.
    pub(super) fn queue_by(&mut self, priority: Priority, envelope: Envelope) {
        let lane = match priority {
            Priority::Normal => return self.queue_push(envelope),
            Priority::High => &mut self.extras().high,
            Priority::Low => &mut self.extras().low,
        };
        lane.push_back(envelope);
        self.beside += 1;
    }

    /// Takes the next message of high priority.
    pub(crate) fn take_high(&mut self) -> Option<Envelope> {
        let envelope = self.extras.as_mut()?.high.pop_front()?;
        self.beside -= 1;
        Some(envelope)
    }

    /// Takes the next message of low priority.
    pub(super) fn take_low(&mut self) -> Option<Envelope> {
        let envelope = self.extras.as_mut()?.low.pop_front()?;
        self.beside -= 1;
        Some(envelope)
    }
}
