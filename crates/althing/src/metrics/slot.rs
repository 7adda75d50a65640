//! Small numbers for threads, so that a shard is found by index. A thread keeps its slot until it
//! ends; then another gets it.
//!
//! Slots number the threads of the process, as thread ids do, and carry nothing of any node. The
//! mutex that hands a slot from one thread to the next also orders what the first wrote before what
//! the second does.

use std::cell::Cell;

use parking_lot::Mutex;

/// The slot that all threads beyond this number share; it costs them an atomic addition per
/// message.
pub(super) const SHARED: usize = 128;
/// No slot taken yet.
const UNKNOWN: usize = usize::MAX;

struct Slots {
    returned: Vec<usize>,
    next: usize,
}

static SLOTS: Mutex<Slots> = Mutex::new(Slots { returned: Vec::new(), next: 0 });

/// Gives a slot back when its thread ends.
struct Lease(usize);

impl Drop for Lease {
    fn drop(&mut self) {
        // Destructors that run after this one must not write to a slot that is another's by then.
        SLOT.set(SHARED);
        if self.0 != SHARED {
            SLOTS.lock().returned.push(self.0);
        }
    }
}

thread_local! {
    static SLOT: Cell<usize> = const { Cell::new(UNKNOWN) };
    static LEASE: Lease = Lease(SLOT.get());
}

/// The calling thread's slot.
#[inline]
pub(super) fn current() -> usize {
    let slot = SLOT.get();
    if slot == UNKNOWN { take() } else { slot }
}

#[cold]
fn take() -> usize {
    let mut slots = SLOTS.lock();
    let slot = match slots.returned.pop() {
        Some(slot) => slot,
        None if slots.next < SHARED => {
            slots.next += 1;
            slots.next - 1
        }
        None => SHARED,
    };
    drop(slots);
    SLOT.set(slot);
    LEASE.with(|_| ());
    slot
}
