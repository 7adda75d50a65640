//! The lock of a mailbox and the claim on its actor, in one word.
//!
//! Layout: `word` is 0 when the mailbox is quiet (unlocked, started, nothing waits, nobody runs
//! it), else a set of bits: `LOCKED` while a guard exists, `CLAIMED` while someone who found it
//! quiet runs the actor in place, `BUSY` for every other state, and `FILLED` and `AWAITED` beside
//! it for what a runner wants to see without locking. Whoever sets `LOCKED` owns `value`; whoever
//! sets `CLAIMED`, or finds `running` set in the value, owns the actor's state.
//!
//! Why one word: running an idle actor in place costs one compare-and-set to claim and one to
//! leave, where a mutex and a flag cost four. A guard that meets `CLAIMED` tells the value so
//! (`Value::claimed`), and the leaver then fails its compare-and-set and goes the slow way. Acquire
//! on every entry and release on every exit order the accesses to both. Critical sections are a few
//! dozen instructions, so waiting spins and then yields; there is no queue of waiters to keep. An
//! asker that meets only `CLAIMED` waits for a few microseconds, in which the other runs dozens of
//! handlers: to queue there would turn both into senders of a runner.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

use crate::sync::{AtomicU32, Ordering, pause, yield_now};

const LOCKED: u32 = 1;
const CLAIMED: u32 = 2;
const BUSY: u32 = 4;
/// Beside `BUSY`: something waits for the runner.
const FILLED: u32 = 8;
/// Beside `BUSY`: somebody waits for the runner to get on.
const AWAITED: u32 = 16;

/// Spins before the second look: about the length of a critical section.
const SPINS_MIN: u32 = 8;
/// Spins between two looks at most: a few microseconds.
const SPINS_MAX: u32 = 128;

/// Spins before an asker looks again whether the asker in front of it has gone: long enough for
/// some dozen short handlers, so that whoever runs the actor has its memory in its own cache for a
/// while. Two who look after every handler take the cache line from each other at each step.
const CLAIM_SPINS: u32 = 64;
/// How often an asker waits, each time twice as long: some five to ten microseconds in all, about
/// what it costs to queue and to be woken by the reply.
const CLAIM_WAITS: u32 = 3;
/// Looks at the end of each wait, because between two handlers the actor is free for moments only.
const CLAIM_LOOKS: u32 = 4;

/// What a claim lock protects.
pub(crate) trait Value {
    /// Someone runs the actor in place.
    fn claimed(&mut self);
    /// Whether an asker may run the actor in place.
    fn is_quiet(&self) -> bool;
    /// Whether something waits for the runner.
    fn is_filled(&self) -> bool;
    /// Whether somebody waits for the runner to get on.
    fn is_awaited(&self) -> bool;
}

/// A value behind a lock, with a claim beside it. In this order: who claims a quiet actor has no
/// use for the value.
#[repr(C)]
pub(crate) struct ClaimLock<V> {
    word: AtomicU32,
    /// Messages run so far, wrapping; written by whoever has the actor's claim, read by anyone.
    /// Here, because it is padding.
    tally: AtomicU32,
    value: UnsafeCell<V>,
}

// SAFETY: `value` is reached only through a guard, of which there is one at a time.
unsafe impl<V: Send> Sync for ClaimLock<V> {}

impl<V: Value> ClaimLock<V> {
    pub(crate) fn new(value: V) -> Self {
        let word = if value.is_quiet() { 0 } else { BUSY };
        Self { word: AtomicU32::new(word), tally: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }

    /// The value of a lock that nobody else knows.
    pub(crate) fn get_mut(&mut self) -> &mut V {
        self.value.get_mut()
    }

    /// Locks the value.
    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, V> {
        let word = self.word.load(Ordering::Relaxed);
        if word & LOCKED != 0 || !self.try_lock(word) {
            return self.lock_contended(SPINS_MAX);
        }
        self.locked(word)
    }

    /// Locks the value for a runner, on whom all others wait: it looks more often.
    #[inline]
    pub(crate) fn lock_soon(&self) -> Guard<'_, V> {
        let word = self.word.load(Ordering::Relaxed);
        if word & LOCKED != 0 || !self.try_lock(word) {
            return self.lock_contended(SPINS_MIN);
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

    /// Waits longer after each failure, so that the present holder gets on with more than one
    /// critical section at the full speed of its cache.
    #[cold]
    fn lock_contended(&self, spins_max: u32) -> Guard<'_, V> {
        let (mut spins, mut spun) = (SPINS_MIN, 0);
        loop {
            pause(spins);
            let word = self.word.load(Ordering::Relaxed);
            if word & LOCKED == 0 && self.try_lock(word) {
                return self.locked(word);
            }
            spun += spins;
            if spins < spins_max {
                spins *= 2;
            } else if spun > SPINS_MAX {
                // The holder may have lost its processor.
                yield_now();
            }
        }
    }

    /// Counts messages that the holder of the claim runs.
    #[inline]
    pub(crate) fn add_to_tally(&self, messages: u32) {
        let before = self.tally.load(Ordering::Relaxed);
        self.tally.store(before.wrapping_add(messages), Ordering::Relaxed);
    }

    /// Messages run so far, wrapping.
    pub(crate) fn tally(&self) -> u32 {
        self.tally.load(Ordering::Relaxed)
    }

    /// Whether the mailbox is unlocked, started, empty and not run by anyone, at this moment.
    pub(crate) fn is_quiet(&self) -> bool {
        self.word.load(Ordering::Relaxed) == 0
    }

    /// Whether something waits for the runner, at this moment.
    #[inline]
    pub(crate) fn is_filled(&self) -> bool {
        self.word.load(Ordering::Relaxed) & FILLED != 0
    }

    /// Whether somebody waits for the runner to get on, at this moment.
    #[inline]
    pub(crate) fn is_awaited(&self) -> bool {
        self.word.load(Ordering::Relaxed) & AWAITED != 0
    }

    /// Claims the actor if the mailbox is quiet.
    #[inline]
    pub(crate) fn try_claim(&self) -> bool {
        self.word.load(Ordering::Relaxed) == 0
            && self.word.compare_exchange(0, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// As `try_claim`, and waits a little for somebody who runs the actor in place. `false`: it
    /// takes longer, or there is more to do than one handler, and the message has to queue.
    #[inline]
    pub(crate) fn claim_soon(&self) -> bool {
        self.try_claim() || self.claim_contended()
    }

    #[cold]
    fn claim_contended(&self) -> bool {
        let mut spins = CLAIM_SPINS;
        for _ in 0..CLAIM_WAITS {
            if self.word.load(Ordering::Relaxed) & BUSY != 0 {
                return false;
            }
            pause(spins);
            for _ in 0..CLAIM_LOOKS {
                if self.try_claim() {
                    return true;
                }
                pause(1);
            }
            spins *= 2;
        }
        false
    }

    /// Gives back what `try_claim` took. `false`: something has come meanwhile, and the claim is
    /// still the caller's.
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
        let word = if self.is_quiet() {
            0
        } else {
            let filled = if self.is_filled() { FILLED } else { 0 };
            let awaited = if self.is_awaited() { AWAITED } else { 0 };
            BUSY | filled | awaited
        };
        self.lock.word.store(word, Ordering::Release);
    }
}

#[cfg(all(test, althing_loom))]
mod model {
    //! Every interleaving of two threads around one lock: `make loom`.

    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    use super::{ClaimLock, Value};

    /// A mailbox in small: messages that wait, and whether somebody runs the actor.
    #[derive(Default)]
    struct Mailbox {
        waiting: u32,
        running: bool,
    }

    impl Value for Mailbox {
        fn claimed(&mut self) {
            self.running = true;
        }

        fn is_quiet(&self) -> bool {
            !self.running && self.waiting == 0
        }

        fn is_filled(&self) -> bool {
            self.waiting > 0
        }

        fn is_awaited(&self) -> bool {
            false
        }
    }

    struct Actor {
        lock: ClaimLock<Mailbox>,
        /// The state: loom fails the model if two threads touch it at once.
        handled: UnsafeCell<u32>,
    }

    impl Actor {
        fn handle(&self, messages: u32) {
            // SAFETY: the claim is held; that is what the model checks.
            self.handled.with_mut(|handled| unsafe { *handled += messages });
        }

        /// Runs what waits until nothing does; the claim is ours.
        fn run(&self) {
            loop {
                let mut mailbox = self.lock.lock();
                let waiting = std::mem::take(&mut mailbox.waiting);
                if waiting == 0 {
                    mailbox.running = false;
                    return;
                }
                drop(mailbox);
                self.handle(waiting);
            }
        }

        fn tell(&self) {
            let mut mailbox = self.lock.lock();
            mailbox.waiting += 1;
            let schedules = !std::mem::replace(&mut mailbox.running, true);
            drop(mailbox);
            if schedules {
                self.run();
            }
        }

        fn ask(&self) {
            if !self.lock.claim_soon() {
                return self.tell();
            }
            self.handle(1);
            if !self.lock.try_leave() {
                self.run();
            }
        }
    }

    fn check(first: fn(&Actor), second: fn(&Actor)) {
        loom::model(move || {
            let actor = Arc::new(Actor {
                lock: ClaimLock::new(Mailbox::default()),
                handled: UnsafeCell::new(0),
            });
            let other = actor.clone();
            let thread = thread::spawn(move || second(&other));
            first(&actor);
            thread.join().expect("the model's thread ends");
            // SAFETY: everybody else has ended.
            assert_eq!(actor.handled.with(|handled| unsafe { *handled }), 2);
            assert!(actor.lock.lock().is_quiet());
        });
    }

    #[test]
    fn two_tells_run_once_each_and_never_at_once() {
        check(Actor::tell, Actor::tell);
    }

    #[test]
    fn an_ask_in_place_and_a_tell_run_once_each_and_never_at_once() {
        check(Actor::ask, Actor::tell);
    }

    #[test]
    fn two_asks_in_place_run_once_each_and_never_at_once() {
        check(Actor::ask, Actor::ask);
    }
}
