//! How long appends took, from the call to the acknowledgement: counts in buckets that double in
//! four steps, so a quantile is at most a quarter above the true one.
//!
//! Written by the log's thread only, once per record; read by anybody at any time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Steps of one doubling, as bits.
const STEP_BITS: u32 = 2;
const STEPS: usize = 1 << STEP_BITS;
/// The last bucket begins at 2^26 µs, a minute; a disk that needs longer is in it all the same.
const BUCKETS: usize = STEPS * 25 + 1;

/// The live counts.
#[derive(Debug)]
pub(crate) struct AppendTimer {
    counts: [AtomicU64; BUCKETS],
    sum_us: AtomicU64,
}

impl Default for AppendTimer {
    fn default() -> Self {
        Self { counts: [const { AtomicU64::new(0) }; BUCKETS], sum_us: AtomicU64::new(0) }
    }
}

impl AppendTimer {
    pub(crate) fn record(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.counts[bucket_of(us)].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> AppendTimes {
        AppendTimes {
            counts: std::array::from_fn(|bucket| self.counts[bucket].load(Ordering::Relaxed)),
            sum_us: self.sum_us.load(Ordering::Relaxed),
        }
    }
}

/// Append times since the store was opened, or between two readings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendTimes {
    counts: [u64; BUCKETS],
    sum_us: u64,
}

impl Default for AppendTimes {
    fn default() -> Self {
        Self { counts: [0; BUCKETS], sum_us: 0 }
    }
}

impl AppendTimes {
    /// Appends acknowledged.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Their time together.
    #[must_use]
    pub fn sum(&self) -> Duration {
        Duration::from_micros(self.sum_us)
    }

    /// Those of this reading that an earlier one does not have.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            counts: std::array::from_fn(|bucket| {
                self.counts[bucket].saturating_sub(earlier.counts[bucket])
            }),
            sum_us: self.sum_us.saturating_sub(earlier.sum_us),
        }
    }

    /// A time that the share `q` (0 to 1) of the appends stayed below; `None` without appends.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let count = self.count();
        let wanted = ((count as f64 * q.clamp(0.0, 1.0)).ceil() as u64).max(1);
        let mut below = 0;
        let bucket = self.counts.iter().position(|count| {
            below += count;
            below >= wanted
        })?;
        Some(Duration::from_micros(end_of(bucket)))
    }

    /// The ends of every fourth bucket with the number of appends that stayed below them, rising.
    pub fn doublings(&self) -> impl Iterator<Item = (Duration, u64)> {
        let mut below = 0;
        self.counts.iter().enumerate().filter_map(move |(bucket, count)| {
            below += count;
            let is_last_step = bucket % STEPS == STEPS - 1;
            is_last_step.then(|| (Duration::from_micros(end_of(bucket)), below))
        })
    }
}

/// The bucket of a time in µs.
fn bucket_of(us: u64) -> usize {
    if us < STEPS as u64 {
        return us as usize;
    }
    let doubling = us.ilog2();
    let step = (us >> (doubling - STEP_BITS)) as usize & (STEPS - 1);
    ((doubling - STEP_BITS + 1) as usize * STEPS + step).min(BUCKETS - 1)
}

/// Where a bucket ends, in µs; the last one's end is nominal.
fn end_of(bucket: usize) -> u64 {
    if bucket < STEPS {
        return bucket as u64 + 1;
    }
    let (doubling, step) = (bucket / STEPS - 1, bucket % STEPS);
    ((STEPS + step + 1) as u64) << doubling
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_lies_below_the_end_of_its_bucket_and_not_in_the_one_before() {
        for us in (0..5_000).chain((5_000..60_000_000).step_by(9_973)) {
            let bucket = bucket_of(us);
            assert!(us < end_of(bucket), "{us} µs");
            assert!(bucket == 0 || us >= end_of(bucket - 1), "{us} µs");
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn a_quantile_is_at_most_a_quarter_above_the_true_one() {
        let timer = AppendTimer::default();
        for us in 1..=1_000 {
            timer.record(Duration::from_micros(us));
        }
        let times = timer.read();
        assert_eq!((times.count(), times.sum()), (1_000, Duration::from_micros(500_500)));
        for (q, truth) in [(0.5, 500), (0.99, 990)] {
            let found = times.quantile(q).unwrap().as_micros();
            assert!(found > truth && found <= truth + truth / 4 + 1, "{q}: {found} µs");
        }
        assert_eq!(AppendTimes::default().quantile(0.5), None);
    }

    #[test]
    fn a_reading_less_an_earlier_one_is_what_came_between() {
        let timer = AppendTimer::default();
        timer.record(Duration::from_micros(10));
        let earlier = timer.read();
        timer.record(Duration::from_millis(10));
        let between = timer.read().since(&earlier);
        assert_eq!((between.count(), between.sum()), (1, Duration::from_millis(10)));
        assert_eq!(between.doublings().last().map(|(_, below)| below), Some(1));
    }
}
