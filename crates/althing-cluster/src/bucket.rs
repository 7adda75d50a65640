//! Which of the 4,096 buckets an actor is in.
//!
//! A bucket is the unit of ownership. The function is part of the protocol: nodes of different
//! versions must agree on it, so it never changes; its values are frozen by a test.

use althing::ActorId;

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
    u16::try_from(mix(fnv(bytes)) >> 52).expect("twelve bits are left")
}

/// FNV-1a (Fowler, Noll, Vo).
pub(crate) fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): each bit of the input changes half of the
/// output's.
pub(crate) fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
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
