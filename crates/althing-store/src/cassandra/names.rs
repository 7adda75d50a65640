//! Names that nobody else gives, and the partitions on which everybody agrees.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use althing::ActorId;
use althing::stable_hash::{fnv1a, mix};

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

/// The partition in which an actor is kept, of so many. Where they are 4,096 or a multiple, each
/// has actors of one bucket of `althing-cluster` only, so one node at a time writes there.
pub(super) fn part(id: &ActorId, parts: i32) -> i32 {
    // 0xff is in no UTF-8 text, so kind and key do not run into each other.
    let key = id.key().map_or("", |key| key);
    let hash = mix(fnv1a(id.kind().as_str().bytes().chain([0xff]).chain(key.bytes())));
    i32::try_from(((hash >> 32) * u64::from(parts.unsigned_abs())) >> 32).expect("below parts")
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
