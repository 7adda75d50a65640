//! One sender's place in the line of a mailbox.

use std::task::Waker;

use super::Left;
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

    /// Says that the room was used: there is no call to pass on.
    pub(crate) fn end(&mut self) {
        self.place = None;
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let Some(place) = self.place.take() else { return };
        let mut inner = self.mailbox.lock();
        let Some(extras) = &mut inner.extras else { return };
        let left = extras.room.leave(place);
        let is_empty = extras.room.is_empty();
        inner.awaited = !is_empty;
        drop(inner);
        match left {
            Left::Called(next @ Some(_)) => wake_all(next),
            Left::Waiting(own) | Left::Called(own) => drop(own),
        }
    }
}
