//! The state of a benchmark actor: add the number, and notice the last message of a batch.
//!
//! Each Rust system wraps this one struct in its own actor type, so the handler is the same code
//! everywhere. The running sum is checked by the workload: a handler that is optimised away, or a
//! message that is lost or doubled, fails the run.

use crate::countdown::Countdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What one benchmark actor keeps: its sum, and how many messages are left of the batch.
pub struct Tally {
    sum: u64,
    left: u64,
    batch: u64,
    shard: usize,
    board: Arc<Board>,
}

/// Where the actors of one run report to.
pub(crate) struct Board {
    /// One arrival per actor when its batch is complete.
    pub(crate) handled: Countdown,
    /// One arrival per actor when its start hook ran.
    pub(crate) started: Countdown,
    /// One arrival per actor when its state is dropped.
    pub(crate) stopped: Countdown,
    /// Sum over all actors of what they added in complete batches.
    pub(crate) sum: AtomicU64,
}

impl Board {
    pub(crate) fn new(shards: usize) -> Arc<Self> {
        Arc::new(Self {
            handled: Countdown::sharded(shards),
            started: Countdown::sharded(shards),
            stopped: Countdown::sharded(shards),
            sum: AtomicU64::new(0),
        })
    }

    /// Tallies of `members` actors, each of which completes a batch after `batch` messages.
    ///
    /// Made one by one: a buffer of a million would show up in the memory workload.
    pub(crate) fn tallies(
        self: &Arc<Self>,
        members: usize,
        batch: u64,
    ) -> impl ExactSizeIterator<Item = Tally> + Send + use<> {
        self.started.expect(members);
        self.stopped.expect(members);
        let board = Arc::clone(self);
        (0..members).map(move |index| Tally {
            sum: 0,
            left: batch,
            batch,
            shard: board.handled.shard_of(index, members),
            board: Arc::clone(&board),
        })
    }
}

impl Tally {
    /// Handles one message: adds `number` and returns the sum so far in this batch.
    #[inline]
    pub fn add(&mut self, number: u64) -> u64 {
        self.sum = self.sum.wrapping_add(number);
        self.left -= 1;
        if self.left == 0 { self.finish_batch() } else { self.sum }
    }

    /// To be called by the start hook.
    pub fn started(&self) {
        self.board.started.arrive(self.shard);
    }

    #[cold]
    fn finish_batch(&mut self) -> u64 {
        let sum = std::mem::take(&mut self.sum);
        self.left = self.batch;
        self.board.sum.fetch_add(sum, Ordering::Relaxed);
        self.board.handled.arrive(self.shard);
        sum
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.board.stopped.arrive(self.shard);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_batches_are_reported_with_their_sum() {
        let board = Board::new(1);
        board.handled.expect(1);
        let mut tally = board.tallies(1, 3).next().unwrap();
        tally.add(1);
        tally.add(2);
        assert_eq!(board.sum.load(Ordering::Relaxed), 0);
        assert_eq!(tally.add(4), 7);
        assert_eq!(board.sum.load(Ordering::Relaxed), 7);
        assert!(board.handled.wait().is_ok());
    }
}
