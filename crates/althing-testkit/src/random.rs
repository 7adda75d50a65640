//! Seeded randomness: SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
//! Generators, 2014).

use althing::stable_hash::mix;

/// A generator with one word of state.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Streams of one seed differ by `stream`: a draw from one does not change another.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        Self(mix(seed ^ mix(stream)))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`, which must not be zero.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("below a usize")
    }
}
