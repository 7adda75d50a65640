//! Which activation this thread is polling, and who waits for what it does: for cycles.
//!
//! A thread-local holds the serial of the actor being polled and the ask it works on. It is set around each poll and
//! restored after it, so that it is right for handlers that run in place inside others.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;

use crate::actor_id::ActorId;
use crate::outbox;

/// A chain of actors that wait for each other.
#[derive(Debug)]
pub(crate) struct AskPath {
    pub(crate) waiting: ActorId,
    pub(crate) parent: Option<Arc<AskPath>>,
}

#[derive(Clone, Copy)]
struct Current {
    /// The actor's header; null outside actors.
    actor: *const crate::cell::Header,
    path: *const Arc<AskPath>,
    depth: u32,
}

const NOBODY: Current = Current { actor: ptr::null(), path: ptr::null(), depth: 0 };

thread_local! {
    static CURRENT: Cell<Current> = const { Cell::new(NOBODY) };
}

/// Restores what was current before.
pub(crate) struct Guard(Current);

impl Drop for Guard {
    fn drop(&mut self) {
        CURRENT.set(self.0);
        if self.0.depth == 0 {
            outbox::hand_over();
        }
    }
}

/// Marks `actor` as the one being polled until the guard drops. The guard must not outlive `actor`.
pub(crate) fn polling(actor: &crate::cell::Header) -> Guard {
    let before = CURRENT.get();
    CURRENT.set(Current { actor, path: ptr::null(), depth: before.depth + 1 });
    Guard(before)
}

/// Marks the ask that the current actor works on until the guard drops. The guard must not outlive `path`.
pub(crate) fn waiting_for(path: &Arc<AskPath>) -> Guard {
    let before = CURRENT.get();
    CURRENT.set(Current { path, ..before });
    Guard(before)
}

/// How many activations are being polled inside each other on this thread.
pub(crate) fn depth() -> u32 {
    CURRENT.get().depth
}

/// Whether this thread is polling the actor with that serial right now.
pub(crate) fn is(serial: u64) -> bool {
    let actor = CURRENT.get().actor;
    // SAFETY: `actor` is null or outlives the guard that set it, which has not dropped yet.
    !actor.is_null() && unsafe { &*actor }.serial() == serial
}

/// The path of an ask made here: the current actor, then those who wait for it. `None` outside actors.
pub(crate) fn path() -> Option<Arc<AskPath>> {
    let current = CURRENT.get();
    if current.actor.is_null() {
        return None;
    }
    // SAFETY: `actor` outlives the guard that set it, which has not dropped yet.
    let waiting = unsafe { &*current.actor }.id();
    let parent = if current.path.is_null() {
        None
    } else {
        // SAFETY: `path` outlives the guard that set it, which has not dropped yet.
        Some(unsafe { &*current.path }.clone())
    };
    Some(Arc::new(AskPath { waiting, parent }))
}

impl AskPath {
    /// The cycle that an ask of `target` would close: from `target` around to it again.
    pub(crate) fn cycle(&self, target: &ActorId) -> Option<Vec<ActorId>> {
        let mut chain = vec![target.clone()];
        let mut link = Some(self);
        while let Some(path) = link {
            chain.push(path.waiting.clone());
            if path.waiting.serial == target.serial {
                chain.reverse();
                return Some(chain);
            }
            link = path.parent.as_deref();
        }
        None
    }
}
