//! Which bucket an actor is in: one of 4,096, or one of the 256 of a pool.
//!
//! A bucket is the unit of ownership. Kinds that ask for the same labels share a pool, the buckets of
//! which only nodes with these labels own. The function is part of the protocol: nodes of different
//! versions must agree on it, so it never changes; its values are frozen by a test.

use althing::ActorId;
use althing::stable_hash::{fnv1a, mix};

use crate::label;

/// Number of buckets of kinds that ask for no labels.
pub(crate) const BUCKETS: u32 = 4_096;

/// Number of buckets of a pool: it has fewer nodes.
pub(crate) const POOL_BUCKETS: u32 = 256;

/// The bucket of a named actor; `None` for an anonymous one, which lives where it was started.
pub(crate) fn bucket_of(id: &ActorId) -> Option<u32> {
    let key = id.key()?;
    Some(bucket_of_name(id.kind().as_str(), key))
}

fn bucket_of_name(kind: &str, key: &str) -> u32 {
    // 0xff is in no UTF-8 text, so kind and key do not run into each other.
    let bytes = kind.bytes().chain([0xff]).chain(key.bytes());
    let hash = mix(fnv1a(bytes));
    match label::asked_by(kind) {
        None => u32::try_from(hash >> 52).expect("twelve bits are left"),
        Some(asked) => {
            let place = u32::try_from(hash >> 56).expect("eight bits are left");
            buckets_of(pool_of(asked)).start() + place
        }
    }
}

/// The pool of a set of labels, with its highest of 24 bits set.
pub(crate) fn pool_of(asked: &str) -> u32 {
    let hash = mix(fnv1a(asked.bytes()));
    1 << 23 | u32::try_from(hash >> 41).expect("23 bits are left")
}

/// Whether any labels may lead to it.
pub(crate) fn is_pool(number: u32) -> bool {
    number >> 23 == 1
}

/// The pool in which a bucket is; `None` of one that asks for nothing.
pub(crate) fn pool_in(bucket: u32) -> Option<u32> {
    (bucket >> 31 == 1).then_some(bucket / POOL_BUCKETS)
}

/// Whether any actor can be in it: what comes from elsewhere may name any number.
pub(crate) fn is_bucket(number: u32) -> bool {
    number < BUCKETS || pool_in(number).is_some()
}

/// The buckets of a pool. Its last one may have the highest number that there is.
pub(crate) fn buckets_of(pool: u32) -> std::ops::RangeInclusive<u32> {
    let first = pool * POOL_BUCKETS;
    first..=first + (POOL_BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::{BUCKETS, bucket_of_name, buckets_of, is_bucket, pool_in, pool_of};

    #[test]
    fn buckets_of_names_are_frozen() {
        let buckets = ["42", "", "é", "lobby"].map(|key| bucket_of_name("test.room", key));
        assert_eq!(buckets, [3_102, 1_974, 3_414, 3_224]);
    }

    #[test]
    fn kinds_that_ask_for_the_same_labels_share_the_buckets_of_a_pool() {
        let pool = pool_of("disk=ssd");
        let all = buckets_of(pool);
        for n in 0..2_000 {
            let (one, other) = (format!("{n}"), format!("other-{n}"));
            let one = bucket_of_name("test.index@disk=ssd", &one);
            let other = bucket_of_name("test.search@disk=ssd", &other);
            assert!(all.contains(&one) && all.contains(&other) && pool_in(one) == Some(pool));
        }
        assert_ne!(pool, pool_of("disk=hdd"));
        assert!(is_bucket(u32::MAX) && is_bucket(4_095) && !is_bucket(4_096));
        assert_eq!(bucket_of_name("test.index@disk=ssd", "42"), 2_964_108_573);
    }

    #[test]
    fn actors_spread_evenly_over_the_buckets() {
        let mut counts = vec![0_u32; BUCKETS as usize];
        for n in 0..409_600 {
            counts[bucket_of_name("test.room", &n.to_string()) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (40..180).contains(count)), "100 are expected in each");
    }
}
