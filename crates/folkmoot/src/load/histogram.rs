//! How long things took: counts in buckets that grow with the time, so that a percentile is right
//! to one part in 64, from nanoseconds to hours. Any number of tasks note at once, without a lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Buckets for each doubling of the time.
const STEPS: u64 = 64;
/// Doublings above the first `STEPS` nanoseconds: up to 2^46 ns, some 19 hours.
const DOUBLINGS: u64 = 40;

#[derive(Debug)]
pub(super) struct Histogram {
    counts: Vec<AtomicU64>,
    max_ns: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        let buckets = STEPS + DOUBLINGS * STEPS;
        let counts = (0..buckets).map(|_| AtomicU64::new(0)).collect();
        Self { counts, max_ns: AtomicU64::new(0) }
    }
}

impl Histogram {
    pub(super) fn note(&self, took: Duration) {
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = bucket(took_ns).min(self.counts.len() - 1);
        // Relaxed: counts are read when all who note have been waited for.
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.max_ns.fetch_max(took_ns, Ordering::Relaxed);
    }

    /// The time that `percent` of all took at most; `None` if nothing was noted.
    pub(super) fn percentile(&self, percent: f64) -> Option<Duration> {
        let counts: Vec<u64> =
            self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let all: u64 = counts.iter().sum();
        let wanted = ((all as f64 * percent / 100.0).ceil() as u64).max(1);
        let mut seen = 0;
        let found = counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        })?;
        let max = self.max_ns.load(Ordering::Relaxed);
        Some(Duration::from_nanos(end_of(found as u64).min(max)))
    }
}

/// Linear up to `STEPS`, then `STEPS` buckets for each doubling.
fn bucket(took_ns: u64) -> usize {
    if took_ns < STEPS {
        return took_ns as usize;
    }
    let doubling = u64::from(took_ns.ilog2() - STEPS.ilog2());
    (STEPS * doubling + (took_ns >> doubling)) as usize
}

/// The longest time that a bucket counts.
fn end_of(bucket: u64) -> u64 {
    if bucket < 2 * STEPS {
        return bucket;
    }
    let doubling = bucket / STEPS - 1;
    let step = bucket % STEPS + STEPS;
    ((step + 1) << doubling) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_counted_in_a_bucket_that_ends_at_most_a_64th_above_it() {
        for doubling in 0..45 {
            for took_ns in [1_u64 << doubling, (3 << doubling) / 2, (2 << doubling) - 1] {
                let end = end_of(bucket(took_ns) as u64);
                assert!(end >= took_ns, "{took_ns} counts as {end}");
                assert!(end - took_ns <= took_ns / STEPS, "{took_ns} counts as {end}");
            }
        }
    }

    #[test]
    fn percentiles_are_those_of_what_was_noted() {
        let histogram = Histogram::default();
        assert_eq!(histogram.percentile(50.0), None);
        for micros in 1..=1_000 {
            histogram.note(Duration::from_micros(micros));
        }
        for (percent, micros) in [(50.0, 500.0), (99.0, 990.0), (100.0, 1_000.0)] {
            let found = histogram.percentile(percent).unwrap().as_nanos() as f64 / 1_000.0;
            assert!((found / micros - 1.0).abs() < 0.02, "{percent} %: {found} µs");
        }
    }
}
