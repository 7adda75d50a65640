//! Which actor of a type a thread polls, and which message: what tells the name of a handler that
//! does not come back.
//!
//! One per thread and actor type, written by its thread alone with plain stores: a pair per poll of
//! a task, and one per stretch of messages. Whoever reads may see an actor with the message of the
//! one before, so a reader looks twice. The actor's address is compared and never followed.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::MessageName;

/// What one thread runs of one actor type.
#[derive(Default)]
pub(crate) struct Running {
    actor: AtomicPtr<()>,
    /// A `MessageName`; null where a hook runs, or a handler that had been waiting.
    message: AtomicPtr<()>,
}

/// Gives the thread back to what it ran before.
pub(crate) struct Polled<'a> {
    running: Option<&'a Running>,
    before: (*mut (), *mut ()),
}

impl Running {
    /// The thread polls `actor` until the guard drops; actors of one type may run inside each
    /// other.
    #[inline]
    pub(crate) fn poll<'a>(running: Option<&'a Self>, actor: *const ()) -> Polled<'a> {
        let Some(this) = running else {
            return Polled { running: None, before: (ptr::null_mut(), ptr::null_mut()) };
        };
        let before = (this.actor.load(Ordering::Relaxed), this.message.load(Ordering::Relaxed));
        this.set(actor.cast_mut(), ptr::null_mut());
        Polled { running, before }
    }

    /// The messages that it takes now are of this type.
    #[inline]
    pub(crate) fn take(&self, message: MessageName) {
        self.message.store(message as *mut (), Ordering::Relaxed);
    }

    #[inline]
    fn set(&self, actor: *mut (), message: *mut ()) {
        self.message.store(message, Ordering::Relaxed);
        self.actor.store(actor, Ordering::Release);
    }

    /// The message that `actor` runs here, if it does; `Some(None)` where that is not known.
    pub(super) fn message_of(&self, actor: *const ()) -> Option<Option<&'static str>> {
        if !ptr::eq(self.actor.load(Ordering::Acquire), actor) {
            return None;
        }
        let message = self.message.load(Ordering::Relaxed);
        if message.is_null() {
            return Some(None);
        }
        // SAFETY: `take` alone stores what is not null, and that is a `MessageName`.
        let name = unsafe { std::mem::transmute::<*mut (), MessageName>(message) };
        Some(Some(name()))
    }
}

impl Drop for Polled<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(running) = self.running {
            running.set(self.before.0, self.before.1);
        }
    }
}
