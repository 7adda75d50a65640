//! One sender's place in the line of a mailbox.

use std::task::Waker;

use super::{Left, WaitingSenders};
use crate::mail::mailbox::Mailbox;
use crate::shield::wake_all;

/// A sender's place in the line; dropping it leaves the line.
pub(crate) struct Line<'a> {
    mailbox: &'a Mailbox,
    place: Option<u64>,
}

impl<'a> Line<'a> {
    pub(crate) fn new(mailbox: &'a Mailbox) -> Self {
        Self { mailbox, place: None }
    }

    /// Joins the line for room, or renews the waker; returns whether there is room already.
    pub(crate) fn wait_for_room(&mut self, waker: &Waker, len_max: u32) -> bool {
        // Wakers are foreign: cloned and dropped outside the lock.
        let waker = waker.clone();
        let mut inner = self.mailbox.lock();
        if inner.refusal().is_some() || !self.mailbox.is_full(&mut inner, len_max) {
            return true;
        }
        let (place, old) = inner.extras().room.wait(self.place, waker);
        self.place = Some(place);
        inner.awaited = true;
        drop(inner);
        drop(old);
        false
    }

    /// Says that the room was used: there is no call to pass on. A sender that was not called up,
    /// because it looked by itself, leaves nothing behind that could be called up in others' stead.
    pub(crate) fn end(&mut self) {
        if let Some(place) = self.place.take() {
            let own = self.leave_by(|line| line.withdraw(place));
            drop(own.flatten());
        }
    }

    /// Has the line changed by who leaves it; there is none any more if nobody waits.
    fn leave_by<T>(&self, leave: impl FnOnce(&mut WaitingSenders) -> T) -> Option<T> {
        let mut inner = self.mailbox.lock();
        let line = &mut inner.extras.as_mut()?.room;
        let left = leave(line);
        let is_empty = line.is_empty();
        inner.awaited = !is_empty;
        Some(left)
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let Some(place) = self.place.take() else { return };
        match self.leave_by(|line| line.leave(place)) {
            Some(Left::Called(next)) => wake_all(next),
            Some(Left::Waiting(own)) => drop(own),
            None => {}
        }
    }
}
