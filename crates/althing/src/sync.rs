//! The primitives that loom replaces when the models are checked (`make loom`).

#[cfg(althing_loom)]
pub(crate) use loom::{
    sync::atomic::{AtomicU32, Ordering},
    thread::yield_now,
};
#[cfg(not(althing_loom))]
pub(crate) use std::{
    sync::atomic::{AtomicU32, Ordering},
    thread::yield_now,
};

/// Spins; one of them takes 10 to 40 ns.
#[cfg(not(althing_loom))]
pub(crate) fn pause(spins: u32) {
    (0..spins).for_each(|_| std::hint::spin_loop());
}

/// To a model, waiting is letting another thread go on.
#[cfg(althing_loom)]
pub(crate) fn pause(_spins: u32) {
    loom::hint::spin_loop();
}
