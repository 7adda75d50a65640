//! Times in buckets, so that a run of minutes takes no memory and a bucket costs one addition.

/// Buckets of each power of two: a quantile is at most 3 % too high.
const PER_OCTAVE: usize = 32;
const LEN: usize = PER_OCTAVE * 36;

/// How many operations took how long, in nanoseconds; more than 30 s count as 30 s.
#[derive(Clone)]
pub(super) struct Histogram {
    counts: Box<[u32; LEN]>,
    longest: u64,
}

impl Histogram {
    pub(super) fn new() -> Self {
        Self { counts: Box::new([0; LEN]), longest: 0 }
    }

    #[inline]
    pub(super) fn add(&mut self, ns: u64) {
        self.counts[bucket(ns)] += 1;
        self.longest = self.longest.max(ns);
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts.iter()) {
            *count += more;
        }
        self.longest = self.longest.max(other.longest);
    }

    pub(super) fn longest(&self) -> u64 {
        self.longest
    }

    /// The time within which `share` (0 to 1) of the operations were done.
    pub(super) fn quantile(&self, share: f64) -> u64 {
        let all: u64 = self.counts.iter().map(|count| u64::from(*count)).sum();
        let mut left = (all as f64 * share) as u64;
        for (bucket, count) in self.counts.iter().enumerate() {
            if left < u64::from(*count) {
                return end_of(bucket).min(self.longest);
            }
            left -= u64::from(*count);
        }
        self.longest
    }
}

/// Below 32 each number has its own; from there on the five bits below the highest one decide.
fn bucket(ns: u64) -> usize {
    let octave = ns.max(1).ilog2().saturating_sub(PER_OCTAVE.ilog2());
    let bucket = octave as usize * PER_OCTAVE + (ns >> octave) as usize;
    bucket.min(LEN - 1)
}

/// The greatest time of a bucket.
fn end_of(bucket: usize) -> u64 {
    let octave = (bucket / PER_OCTAVE).saturating_sub(1);
    let first = (bucket - octave * PER_OCTAVE) as u64;
    ((first + 1) << octave) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_what_its_end_says() {
        for ns in (0..5_000).chain([65_535, 65_536, 1 << 30, 20_000_000_000]) {
            let end = end_of(bucket(ns));
            assert!(ns <= end && end as f64 <= ns as f64 * 1.032, "{ns} ends at {end}");
            assert_eq!(bucket(end), bucket(ns));
            assert_eq!(bucket(end + 1), bucket(ns) + 1);
        }
    }

    #[test]
    fn a_quantile_is_that_of_the_times() {
        let mut times = Histogram::new();
        let mut first = Histogram::new();
        (0..900).for_each(|_| first.add(100));
        (0..99).for_each(|_| times.add(5_000));
        times.add(1_000_000);
        times.add_all(&first);
        let near = |share, ns: f64| (times.quantile(share) as f64 / ns - 1.0).abs() < 0.032;
        assert!(near(0.5, 100.0) && near(0.95, 5_000.0), "{}", times.quantile(0.95));
        assert_eq!((times.quantile(0.9995), times.longest()), (1_000_000, 1_000_000));
    }
}
