//! Hashes that are the same in every version and on every machine: what they give may be kept, and
//! nodes may agree upon it. They never change. Nobody is kept from making texts whose hashes meet.

/// FNV-1a (Fowler, Noll, Vo). Its low bits are those of the last bytes alone; [`mix`] spreads them.
#[inline]
pub fn fnv1a(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
/// 2014): each bit of the input changes half of the output's.
#[inline]
pub fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the algorithms' authors.
    #[test]
    fn values_are_those_that_everybody_has() {
        assert_eq!(fnv1a("".bytes()), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a("foobar".bytes()), 0x8594_4171_f739_67e8);
        assert_eq!(mix(0x9e37_79b9_7f4a_7c15), 0xe220_a839_7b1d_cdaf);
    }
}
