//! Names that nobody else gives, and hashes that everybody has.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use althing::ActorId;

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

/// The partition in which an actor is kept, of so many. Where they are 4,096 or a multiple, each
/// has actors of one bucket of `althing-cluster` only, so one node at a time writes there.
pub(super) fn part(id: &ActorId, parts: i32) -> i32 {
    // 0xff is in no UTF-8 text, so kind and key do not run into each other.
    let key = id.key().map_or("", |key| key);
    let hash = mix(stable_hash(id.kind().as_str().bytes().chain([0xff]).chain(key.bytes())));
    i32::try_from(((hash >> 32) * u64::from(parts.unsigned_abs())) >> 32).expect("below parts")
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014).
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_of_actors_are_frozen_and_are_the_buckets_of_a_cluster() {
        let part = |key: &str, parts| part(&ActorId::named("test.room", key), parts);
        // As in `althing_cluster::bucket`.
        assert_eq!(
            ["42", "", "é", "lobby"].map(|key| part(key, 4_096)),
            [3_102, 1_974, 3_414, 3_224]
        );
        assert!(
            (0..999).all(|n| part(&n.to_string(), 1 << 20) >> 8 == part(&n.to_string(), 4_096))
        );
        assert_eq!(part("42", 1), 0);
    }
}
