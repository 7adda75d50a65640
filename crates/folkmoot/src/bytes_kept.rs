//! For tests: how many bytes a thread has allocated and not given back.
//!
//! Counted per thread, so that tests beside it do not disturb, and only of the thread that asks:
//! what is to be counted has to run on it from beginning to end.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    // Without a destructor and without lazy initialisation, so that the allocator may touch it at
    // any time.
    static KEPT: Cell<isize> = const { Cell::new(0) };
}

struct CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn note(bytes: isize) {
    // Not there any more while a thread ends; nobody asks then.
    let _ = KEPT.try_with(|kept| kept.set(kept.get().wrapping_add(bytes)));
}

// SAFETY: every call is passed on unchanged to the system's allocator, which upholds the contract;
// counting touches a cell of the thread and never allocates.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size().cast_signed());
        // SAFETY: the caller's promises are passed on unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note(-layout.size().cast_signed());
        // SAFETY: the caller's promises are passed on unchanged.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Runs `work` and returns its output with the bytes that this thread has more than before.
pub(crate) fn bytes_kept<T>(work: impl FnOnce() -> T) -> (T, isize) {
    let before = KEPT.with(Cell::get);
    let output = work();
    (output, KEPT.with(Cell::get) - before)
}

#[test]
fn what_is_kept_is_counted_and_what_is_given_back_is_not() {
    let (kept, bytes) = bytes_kept(|| {
        drop(vec![0_u8; 10_000]);
        vec![0_u8; 1_000]
    });
    assert_eq!((kept.len(), bytes), (1_000, 1_000));
}
