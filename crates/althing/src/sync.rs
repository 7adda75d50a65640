//! The primitives that loom replaces when the models are checked (`make loom`).

#[cfg(althing_loom)]
pub(crate) use loom::{
    hint::spin_loop,
    sync::atomic::{AtomicU32, Ordering},
    thread::yield_now,
};
#[cfg(not(althing_loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::atomic::{AtomicU32, Ordering},
    thread::yield_now,
};
