//! `publish-*`: one publisher, many local subscribers; nanoseconds per subscriber reached.
//!
//! A batch is a few publishes back to back and ends when the last subscriber handled the last one.
//! Each subscriber reports once per batch, not once per message: the report costs an atomic, which
//! would weigh more than the delivery.

use crate::measure::{Budget, Sample, median_ns};
use crate::system::{System, on_worker};
use crate::tally::Board;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Publishes per batch: enough to hide the report, few enough for every bounded mailbox.
const PUBLISHES: u64 = 8;
/// Counters that the reports are spread over.
const SHARDS: usize = 256;

/// A publisher with its subscribers, to be run batch by batch.
pub(crate) struct Audience<S: System> {
    system: Arc<S>,
    board: Arc<Board>,
    group: Arc<S::Group>,
    subscribers: usize,
}

impl<S: System> Audience<S> {
    pub(crate) fn new(system: S, subscribers: usize) -> Self {
        let system = Arc::new(system);
        let board = Board::new(SHARDS.min(subscribers));
        let tallies = board.tallies(subscribers, PUBLISHES).collect();
        let spawner = Arc::clone(&system);
        let group = Arc::new(on_worker(&*system, async move { spawner.group(tallies).await }));
        Self { system, board, group, subscribers }
    }

    /// Deliveries of one batch, all subscribers together.
    pub(crate) fn batch_messages(&self) -> u64 {
        self.subscribers as u64 * PUBLISHES
    }

    /// Publishes one batch, checks that everybody got everything, and returns the time it took.
    pub(crate) fn batch(&self) -> Result<Duration, String> {
        self.board.sum.store(0, Ordering::Relaxed);
        self.board.handled.expect(self.subscribers);
        let group = Arc::clone(&self.group);
        let begun = on_worker(&*self.system, async move {
            let begun = Instant::now();
            for number in 1..=PUBLISHES {
                S::publish(&group, number).await;
            }
            begun
        });
        let ended = self.board.handled.wait().map_err(|error| error.to_string())?;
        let sum = self.board.sum.load(Ordering::Relaxed);
        let expected = self.subscribers as u64 * (PUBLISHES * (PUBLISHES + 1) / 2);
        if sum == expected {
            Ok(ended.duration_since(begun))
        } else {
            Err(format!("subscribers added up to {sum} instead of {expected}"))
        }
    }
}

pub(crate) fn run<S: System>(budget: Budget, subscribers: usize) -> Result<Vec<Sample>, String> {
    let audience = Audience::new(S::start(), subscribers);
    let mut durations = budget.run(|| audience.batch())?;
    let per_subscriber = median_ns(&mut durations) / audience.batch_messages() as f64;
    let mut sample = Sample::new("per-subscriber", "ns", per_subscriber);
    sample.note = S::PUBLISHES_BY;
    Ok(vec![sample])
}
