//! Handling times in buckets that double: coarse enough to be cheap, fine enough to tell a
//! microsecond from ten.

use std::time::Duration;

/// Bucket `i` holds times of at most 2^i ns that no smaller bucket holds; the last one, over 9
/// minutes, has no bound.
pub(super) const BUCKETS: usize = 40;

/// How long sampled messages took, from start to end of the handler, waits included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    pub(super) buckets: [u64; BUCKETS],
    pub(super) sum_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: [0; BUCKETS], sum_ns: 0 }
    }
}

/// The bucket of a time.
pub(super) fn bucket_of(elapsed_ns: u64) -> usize {
    let bits = u64::BITS - elapsed_ns.saturating_sub(1).leading_zeros();
    (bits as usize).min(BUCKETS - 1)
}

impl Histogram {
    /// Messages that were timed.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Their time together.
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_ns)
    }

    /// Their mean time; zero if there are none.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.sum_ns.checked_div(self.count()).unwrap_or(0))
    }

    /// A time that the share `q` (0 to 1) of them did not exceed, rounded up to a power of two in
    /// ns.
    pub fn quantile(&self, q: f64) -> Duration {
        let wanted = (self.count() as f64 * q.clamp(0.0, 1.0)).ceil() as u64;
        let last = self.cumulative().find(|(_, below)| *below >= wanted.max(1));
        last.map_or(Duration::ZERO, |(at_most, _)| at_most)
    }

    /// What was taken after `earlier`, an older state of the same histogram.
    pub fn since(&self, earlier: &Self) -> Self {
        let pairs = self.buckets.iter().zip(&earlier.buckets);
        let mut buckets = [0; BUCKETS];
        for (bucket, (now, then)) in buckets.iter_mut().zip(pairs) {
            *bucket = now.saturating_sub(*then);
        }
        Self { buckets, sum_ns: self.sum_ns.saturating_sub(earlier.sum_ns) }
    }

    pub(super) fn record(&mut self, elapsed_ns: u64) {
        self.buckets[bucket_of(elapsed_ns)] += 1;
        self.sum_ns = self.sum_ns.wrapping_add(elapsed_ns);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (sum, n) in self.buckets.iter_mut().zip(&other.buckets) {
            *sum += n;
        }
        self.sum_ns = self.sum_ns.wrapping_add(other.sum_ns);
    }

    /// Upper bounds with the number of times at or below them, rising. The last bucket's bound is
    /// nominal.
    pub fn cumulative(&self) -> impl Iterator<Item = (Duration, u64)> {
        let mut below = 0;
        self.buckets.iter().enumerate().map(move |(i, n)| {
            below += n;
            (Duration::from_nanos(1 << i), below)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_lies_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        for (ns, bucket) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1 << 20, 20)] {
            assert_eq!(bucket_of(ns), bucket, "{ns} ns");
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn what_came_since_an_earlier_state_is_told_alone() {
        let mut histogram = Histogram::default();
        histogram.record(1_000_000);
        let earlier = histogram.clone();
        histogram.record(100);
        let since = histogram.since(&earlier);
        assert_eq!((since.count(), since.sum()), (1, Duration::from_nanos(100)));
        assert_eq!(since.quantile(1.0), Duration::from_nanos(128));
        assert_eq!(earlier.since(&histogram), Histogram::default(), "the order does not matter");
    }

    #[test]
    fn a_quantile_is_never_below_the_true_one() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), Duration::ZERO);
        for ns in [100, 100, 100, 5_000] {
            histogram.record(ns);
        }
        assert_eq!(histogram.quantile(0.5), Duration::from_nanos(128));
        assert_eq!(histogram.quantile(1.0), Duration::from_nanos(8_192));
        assert_eq!(histogram.mean(), Duration::from_nanos(1_325));
    }
}
