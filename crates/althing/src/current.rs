//! Which actor this thread is polling, and how deep handlers run inside each other.
//!
//! A thread-local is set around each poll and restored after it, so that it is right for handlers that run in place inside others.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;

use crate::cell::AnyCell;
use crate::outbox;

#[derive(Clone, Copy)]
struct Current {
    /// The actor's reference; null outside actors.
    actor: *const Arc<dyn AnyCell>,
    depth: u32,
}

thread_local! {
    static CURRENT: Cell<Current> = const { Cell::new(Current { actor: ptr::null(), depth: 0 }) };
}

/// Restores what was current before.
pub(crate) struct Guard(Current);

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        CURRENT.with(|current| current.set(self.0));
        if self.0.depth == 0 {
            outbox::hand_over();
        }
    }
}

/// Marks `actor` as the one being polled until the guard drops. The guard must not outlive `actor`.
#[inline]
pub(crate) fn polling(actor: &Arc<dyn AnyCell>) -> Guard {
    CURRENT.with(|current| {
        let before = current.get();
        current.set(Current { actor, depth: before.depth + 1 });
        Guard(before)
    })
}

/// Marks another actor as the one being polled, under the same guard.
#[inline]
pub(crate) fn turn_to(actor: &Arc<dyn AnyCell>) {
    CURRENT.with(|current| current.set(Current { actor, ..current.get() }));
}

/// How many activations are being polled inside each other on this thread.
#[inline]
pub(crate) fn depth() -> u32 {
    CURRENT.get().depth
}

/// The actor being polled on this thread.
pub(crate) fn actor() -> Option<Arc<dyn AnyCell>> {
    let actor = CURRENT.get().actor;
    // SAFETY: `actor` is null or outlives the guard that set it, which has not dropped yet.
    unsafe { actor.as_ref() }.cloned()
}

/// Whether this thread is polling the actor with that serial right now.
pub(crate) fn is(serial: u64) -> bool {
    let actor = CURRENT.get().actor;
    // SAFETY: as above.
    unsafe { actor.as_ref() }.is_some_and(|actor| actor.header().serial() == serial)
}
