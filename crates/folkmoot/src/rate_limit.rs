//! Token buckets: how many messages or log-in attempts one user or address may make.
//!
//! `TokenBucket` is a value without a clock; `RateLimits` keeps one bucket per key. A bucket that
//! has refilled is forgotten, so the table holds only who was active within the last refill time.

use std::collections::HashMap;
use std::hash::Hash;

use parking_lot::Mutex;

/// Buckets kept before those that have refilled are swept out; 64 bytes each, so about 1 MiB.
const SWEEP_LEN: usize = 16_384;

/// A steady rate with room for a burst. A rate of 0 allows everything.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rate {
    per_second: f64,
    burst: f64,
}

impl Rate {
    pub(crate) fn per_second(per_second: u32, burst: u32) -> Self {
        Self { per_second: f64::from(per_second), burst: f64::from(burst) }
    }

    /// So many a minute, all of them at once if need be.
    pub(crate) fn per_minute(per_minute: u32) -> Self {
        Self { per_second: f64::from(per_minute) / 60.0, burst: f64::from(per_minute) }
    }

    fn is_unlimited(self) -> bool {
        self.per_second == 0.0
    }
}

/// One bucket: `tokens` were left at `at_ms`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenBucket {
    tokens: f64,
    at_ms: u64,
}

impl TokenBucket {
    pub(crate) fn full(rate: Rate, now_ms: u64) -> Self {
        Self { tokens: rate.burst, at_ms: now_ms }
    }

    /// Takes one token, or says after how many milliseconds there will be one.
    pub(crate) fn take(&mut self, rate: Rate, now_ms: u64) -> Result<(), u64> {
        self.refill(rate, now_ms);
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        let missing = 1.0 - self.tokens;
        Err((missing * 1000.0 / rate.per_second).ceil() as u64)
    }

    fn refill(&mut self, rate: Rate, now_ms: u64) {
        // A clock that steps back gives no tokens and takes none.
        let elapsed_ms = now_ms.saturating_sub(self.at_ms);
        let refilled = self.tokens + elapsed_ms as f64 * rate.per_second / 1000.0;
        self.tokens = refilled.min(rate.burst);
        self.at_ms = self.at_ms.max(now_ms);
    }

    fn is_full(&mut self, rate: Rate, now_ms: u64) -> bool {
        self.refill(rate, now_ms);
        self.tokens >= rate.burst
    }
}

/// One bucket per key, all with the same rate.
#[derive(Debug)]
pub(crate) struct RateLimits<K> {
    rate: Rate,
    buckets: Mutex<HashMap<K, TokenBucket>>,
}

impl<K: Hash + Eq> RateLimits<K> {
    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, buckets: Mutex::new(HashMap::new()) }
    }

    /// Takes one token of `key`, or says after how many milliseconds to try again.
    pub(crate) fn take(&self, key: K, now_ms: u64) -> Result<(), u64> {
        let rate = self.rate;
        if rate.is_unlimited() {
            return Ok(());
        }
        let mut buckets = self.buckets.lock();
        if buckets.len() >= SWEEP_LEN {
            buckets.retain(|_, bucket| !bucket.is_full(rate, now_ms));
        }
        buckets.entry(key).or_insert_with(|| TokenBucket::full(rate, now_ms)).take(rate, now_ms)
    }

    /// Puts one token of `key` back.
    pub(crate) fn give_back(&self, key: &K, now_ms: u64) {
        if let Some(bucket) = self.buckets.lock().get_mut(key) {
            bucket.refill(self.rate, now_ms);
            bucket.tokens = (bucket.tokens + 1.0).min(self.rate.burst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: Rate = Rate { per_second: 10.0, burst: 30.0 };

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let mut bucket = TokenBucket::full(TEN, 0);
        for _ in 0..30 {
            assert_eq!(bucket.take(TEN, 0), Ok(()));
        }
        assert_eq!(bucket.take(TEN, 0), Err(100));
        assert_eq!(bucket.take(TEN, 100), Ok(()));
        assert_eq!(bucket.take(TEN, 100), Err(100));
    }

    #[test]
    fn a_clock_that_steps_back_neither_gives_nor_takes() {
        let mut bucket = TokenBucket::full(TEN, 1_000);
        for _ in 0..30 {
            assert_eq!(bucket.take(TEN, 1_000), Ok(()));
        }
        assert!(bucket.take(TEN, 0).is_err());
        assert!(bucket.take(TEN, 1_000).is_err());
    }

    #[test]
    fn what_is_given_back_can_be_taken_again_and_no_more() {
        let limits = RateLimits::new(Rate::per_second(1, 1));
        assert_eq!(limits.take("a", 0), Ok(()));
        limits.give_back(&"a", 0);
        limits.give_back(&"a", 0);
        limits.give_back(&"never taken", 0);
        assert_eq!(limits.take("a", 0), Ok(()));
        assert!(limits.take("a", 0).is_err());
    }

    #[test]
    fn keys_do_not_share_tokens_and_zero_means_no_limit() {
        let limits = RateLimits::new(Rate::per_second(1, 1));
        assert_eq!(limits.take("a", 0), Ok(()));
        assert!(limits.take("a", 0).is_err());
        assert_eq!(limits.take("b", 0), Ok(()));
        let open = RateLimits::new(Rate::per_second(0, 0));
        for _ in 0..100 {
            assert_eq!(open.take("a", 0), Ok(()));
        }
    }

    #[test]
    fn refilled_buckets_are_forgotten() {
        let limits = RateLimits::new(TEN);
        for key in 0..SWEEP_LEN {
            assert_eq!(limits.take(key, 0), Ok(()));
        }
        assert_eq!(limits.take(SWEEP_LEN, 10_000), Ok(()));
        assert_eq!(limits.buckets.lock().len(), 1);
    }
}
