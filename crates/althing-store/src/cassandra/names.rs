//! Names that nobody else gives, and a hash that everybody has.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// Gives names of 16 bytes: the store's own number, drawn when it connected, and a serial one.
#[derive(Debug)]
pub(super) struct Names {
    store: u64,
    last: AtomicU64,
}

impl Names {
    pub(super) fn new() -> Self {
        // Its keys come from the system's randomness.
        Self { store: RandomState::new().hash_one("store"), last: AtomicU64::new(0) }
    }

    pub(super) fn next(&self) -> Vec<u8> {
        let serial = self.last.fetch_add(1, Ordering::Relaxed);
        [self.store.to_be_bytes(), serial.to_be_bytes()].concat()
    }
}

/// FNV-1a: the same in every version of this library, because what it gives is kept.
pub(super) fn stable_hash(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
