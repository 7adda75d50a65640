//! `tell-allocs`: heap allocations per message in steady state.
//!
//! The allocator of every Rust binary here is mimalloc behind this counter. Counting is off, at the
//! price of one shared read, except inside [`allocations_during`]: an always-on counter would be a
//! contended line that slows down exactly those systems that allocate.

use crate::measure::{Budget, Sample};
use crate::system::System;
use crate::tell::{Field, From};
use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static COUNTING: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// mimalloc that can count its allocations.
pub struct CountingAllocator;

#[inline]
fn note() {
    if COUNTING.load(Ordering::Relaxed) {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: every call is passed on unchanged to mimalloc, which upholds the contract; counting
// touches two atomics and never allocates.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller's promises are passed on unchanged.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller's promises are passed on unchanged.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note();
        // SAFETY: the caller's promises are passed on unchanged.
        unsafe { MiMalloc.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on unchanged.
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }
}

/// Runs `work` and returns its output with the number of allocations of all threads meanwhile.
pub fn allocations_during<T>(work: impl FnOnce() -> T) -> (T, u64) {
    ALLOCATIONS.store(0, Ordering::Relaxed);
    COUNTING.store(true, Ordering::SeqCst);
    let output = work();
    COUNTING.store(false, Ordering::SeqCst);
    (output, ALLOCATIONS.load(Ordering::Relaxed))
}

pub(crate) fn run<S: System>(budget: Budget) -> Result<Vec<Sample>, String> {
    let field = Field::new(S::start(), budget.messages, 1)?;
    let warm_up = Budget { seconds: 0.0, ..budget };
    warm_up.run(|| field.batch(From::Threads))?;
    let (outcome, allocations) = allocations_during(|| field.batch(From::Threads));
    outcome?;
    if allocations == 0 {
        // Eight sender threads are started inside the counted part, and a thread allocates.
        return Err("the counting allocator is not installed".to_owned());
    }
    let per_message = allocations as f64 / field.batch_messages() as f64;
    Ok(vec![Sample::new("allocs", "allocs/msg", per_message)])
}
