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

#[cfg(not(althing_loom))]
pub(crate) use parking_lot::Mutex;

/// Loom's mutex with the face of the other one: loom knows no poison.
#[cfg(althing_loom)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

#[cfg(althing_loom)]
impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
        self.0.lock().expect("a model that panics ends")
    }
}

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
