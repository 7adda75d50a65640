//! Which of the 4,096 buckets an actor is in.
//!
//! A bucket is the unit of ownership. The function is part of the protocol: nodes of different
//! versions must agree on it, so it never changes; its values are frozen by a test.

use althing::ActorId;
use althing::stable_hash::{fnv1a, mix};

/// Number of buckets.
pub(crate) const BUCKETS: u16 = 4_096;

/// The bucket of a named actor; `None` for an anonymous one, which lives where it was started.
pub(crate) fn bucket_of(id: &ActorId) -> Option<u16> {
    let key = id.key()?;
    Some(bucket_of_name(id.kind().as_str(), key))
}

fn bucket_of_name(kind: &str, key: &str) -> u16 {
    // 0xff is in no UTF-8 text, so kind and key do not run into each other.
    let bytes = kind.bytes().chain([0xff]).chain(key.bytes());
    u16::try_from(mix(fnv1a(bytes)) >> 52).expect("twelve bits are left")
}

#[cfg(test)]
mod tests {
    use super::{BUCKETS, bucket_of_name};

    #[test]
    fn buckets_of_names_are_frozen() {
        let buckets = ["42", "", "é", "lobby"].map(|key| bucket_of_name("test.room", key));
        assert_eq!(buckets, [3_102, 1_974, 3_414, 3_224]);
    }

    #[test]
    fn actors_spread_evenly_over_the_buckets() {
        let mut counts = vec![0_u32; usize::from(BUCKETS)];
        for n in 0..409_600 {
            counts[usize::from(bucket_of_name("test.room", &n.to_string()))] += 1;
        }
        assert!(counts.iter().all(|count| (40..180).contains(count)), "100 are expected in each");
    }
}
