//! The lock of a mailbox and the claim on its actor, in one word.
//!
//! Layout: `word` is 0 when the mailbox is quiet (unlocked, started, nothing waits, nobody runs it), else a set of bits:
//! `LOCKED` while a guard exists, `CLAIMED` while someone who found it quiet runs the actor in place, `BUSY` for every other
//! state. Whoever sets `LOCKED` owns `value`; whoever sets `CLAIMED`, or finds `running` set in the value, owns the actor's state.
//!
//! Why one word: running an idle actor in place costs one compare-and-set to claim and one to leave, where a mutex and a flag
//! cost four. A guard that meets `CLAIMED` tells the value so (`Value::claimed`), and the leaver then fails its compare-and-set and goes the slow
//! way. Acquire on every entry and release on every exit order the accesses to both. Critical sections are a few dozen
//! instructions, so waiting spins and then yields; there is no queue of waiters to keep.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

use crate::sync::{AtomicU32, Ordering, spin_loop, yield_now};

const LOCKED: u32 = 1;
const CLAIMED: u32 = 2;
const BUSY: u32 = 4;

/// Rounds of spinning before the thread yields: about the length of a critical section or two.
const SPINS_MAX: u32 = 64;

/// What a claim lock protects.
pub(crate) trait Value {
    /// Someone runs the actor in place.
    fn claimed(&mut self);
    /// Whether an asker may run the actor in place.
    fn is_quiet(&self) -> bool;
}

/// A value behind a lock, with a claim beside it.
pub(crate) struct ClaimLock<V> {
    word: AtomicU32,
    value: UnsafeCell<V>,
}

// SAFETY: `value` is reached only through a guard, of which there is one at a time.
unsafe impl<V: Send> Sync for ClaimLock<V> {}

impl<V: Value> ClaimLock<V> {
    pub(crate) fn new(value: V) -> Self {
        let word = if value.is_quiet() { 0 } else { BUSY };
        Self { word: AtomicU32::new(word), value: UnsafeCell::new(value) }
    }

    /// Locks the value.
    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, V> {
        let word = self.word.load(Ordering::Relaxed);
        if word & LOCKED != 0 || !self.try_lock(word) {
            return self.lock_contended();
        }
        self.locked(word)
    }

    #[inline]
    fn try_lock(&self, word: u32) -> bool {
        self.word
            .compare_exchange_weak(word, word | LOCKED, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[inline]
    fn locked(&self, word: u32) -> Guard<'_, V> {
        let guard = Guard { lock: self };
        if word & CLAIMED != 0 {
            // SAFETY: `LOCKED` is ours.
            unsafe { &mut *self.value.get() }.claimed();
        }
        guard
    }

    #[cold]
    fn lock_contended(&self) -> Guard<'_, V> {
        let mut spins = 0;
        loop {
            let word = self.word.load(Ordering::Relaxed);
            if word & LOCKED == 0 && self.try_lock(word) {
                return self.locked(word);
            }
            spins += 1;
            if spins < SPINS_MAX {
                spin_loop();
            } else {
                spins = 0;
                // The holder may have lost its processor.
                yield_now();
            }
        }
    }

    /// Claims the actor if the mailbox is quiet.
    #[inline]
    pub(crate) fn try_claim(&self) -> bool {
        self.word.load(Ordering::Relaxed) == 0
            && self.word.compare_exchange(0, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Gives back what `try_claim` took. `false`: something has come meanwhile, and the claim is still the caller's.
    #[inline]
    pub(crate) fn try_leave(&self) -> bool {
        self.word.compare_exchange(CLAIMED, 0, Ordering::Release, Ordering::Relaxed).is_ok()
    }
}

/// Access to the value.
pub(crate) struct Guard<'a, V: Value> {
    lock: &'a ClaimLock<V>,
}

impl<V: Value> Deref for Guard<'_, V> {
    type Target = V;

    fn deref(&self) -> &V {
        // SAFETY: this guard holds `LOCKED`.
        unsafe { &*self.lock.value.get() }
    }
}

impl<V: Value> DerefMut for Guard<'_, V> {
    fn deref_mut(&mut self) -> &mut V {
        // SAFETY: this guard holds `LOCKED`.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<V: Value> Drop for Guard<'_, V> {
    #[inline]
    fn drop(&mut self) {
        let word = if self.is_quiet() { 0 } else { BUSY };
        self.lock.word.store(word, Ordering::Release);
    }
}
