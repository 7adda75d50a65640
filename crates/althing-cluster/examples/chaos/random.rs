//! Numbers from a seed: SplitMix64 (Steele, Lea, Flood, 2014).

pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below that one, which is no zero.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(crate) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    /// A number between the two, small ones as often as those ten times as large.
    pub(crate) fn log_between(&mut self, from: f64, to: f64) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "53 bits are enough")]
        let share = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        from * (to / from).powf(share)
    }
}
