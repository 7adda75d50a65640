//! A count of arrivals that remembers when the last one came.
//!
//! The last arrival stamps the time itself, so the time the waiting thread needs to wake up is
//! never part of a measurement. Arrivals may be spread over shards: one contended counter costs 12
//! ns on four cores, which would drown a fan-out of 4 ns per subscriber.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest wait for one batch; a system that is slower has lost messages or hangs.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// One counter per cache line, two lines apart because the prefetcher fetches pairs.
#[repr(align(128))]
#[derive(Default)]
struct Shard(AtomicU64);

/// Counts arrivals down and tells when the last one came.
pub struct Countdown {
    shards: Box<[Shard]>,
    open_shards: AtomicU64,
    ended: Mutex<Option<Instant>>,
    wake: Condvar,
}

/// A batch that did not finish in time.
#[derive(Debug)]
pub struct Unfinished {
    /// Arrivals that were expected and did not come.
    pub missing: u64,
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} arrivals missing after {} s", self.missing, WAIT_MAX.as_secs())
    }
}

impl std::error::Error for Unfinished {}

impl Countdown {
    /// Creates a countdown with one shard.
    #[must_use]
    pub fn new() -> Self {
        Self::sharded(1)
    }

    /// Creates a countdown whose arrivals are spread over `shards` counters.
    #[must_use]
    pub fn sharded(shards: usize) -> Self {
        Self {
            shards: (0..shards).map(|_| Shard::default()).collect(),
            open_shards: AtomicU64::new(0),
            ended: Mutex::new(None),
            wake: Condvar::new(),
        }
    }

    /// Shard of member `index` of `members`: neighbours share one, as a fan-out runs them together.
    #[must_use]
    pub fn shard_of(&self, index: usize, members: usize) -> usize {
        index * self.shards.len() / members.max(1)
    }

    /// Expects one arrival from each of `members`, placed as [`Countdown::shard_of`] says.
    pub fn expect(&self, members: usize) {
        *self.ended() = None;
        let mut per_shard = vec![0_u64; self.shards.len()];
        for index in 0..members {
            per_shard[self.shard_of(index, members)] += 1;
        }
        let open = per_shard.iter().filter(|count| **count > 0).count();
        self.open_shards.store(open as u64, Ordering::Relaxed);
        for (shard, count) in self.shards.iter().zip(per_shard) {
            shard.0.store(count, Ordering::Release);
        }
    }

    /// Counts one arrival in `shard`; the last one of all stamps the end.
    #[inline]
    pub fn arrive(&self, shard: usize) {
        if self.shards[shard].0.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.shard_done();
        }
    }

    #[cold]
    fn shard_done(&self) {
        if self.open_shards.fetch_sub(1, Ordering::AcqRel) == 1 {
            let now = Instant::now();
            *self.ended() = Some(now);
            self.wake.notify_all();
        }
    }

    /// Blocks until the last arrival and returns its time.
    ///
    /// # Errors
    /// [`Unfinished`] when arrivals are missing after two minutes.
    pub fn wait(&self) -> Result<Instant, Unfinished> {
        let (ended, _) = self
            .wake
            .wait_timeout_while(self.ended(), WAIT_MAX, |ended| ended.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        ended.ok_or_else(|| Unfinished {
            missing: self.shards.iter().map(|shard| shard.0.load(Ordering::Acquire)).sum(),
        })
    }

    fn ended(&self) -> MutexGuard<'_, Option<Instant>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Countdown {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_arrival_of_the_last_shard_ends_the_wait() {
        let countdown = Countdown::sharded(4);
        countdown.expect(10);
        for index in 0..9 {
            countdown.arrive(countdown.shard_of(index, 10));
        }
        assert!(countdown.ended().is_none());
        countdown.arrive(countdown.shard_of(9, 10));
        assert!(countdown.wait().is_ok());
    }

    #[test]
    fn fewer_members_than_shards_still_end() {
        let countdown = Countdown::sharded(64);
        countdown.expect(1);
        countdown.arrive(countdown.shard_of(0, 1));
        assert!(countdown.wait().is_ok());
    }
}
