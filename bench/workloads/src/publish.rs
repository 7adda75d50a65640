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
use std::time::Instant;

/// Publishes per batch: enough to hide the report, few enough for every bounded mailbox.
const PUBLISHES: u64 = 8;
/// Counters that the reports are spread over.
const SHARDS: usize = 256;

pub(crate) fn run<S: System>(budget: Budget, subscribers: usize) -> Result<Vec<Sample>, String> {
    let system = Arc::new(S::start());
    let board = Board::new(SHARDS.min(subscribers));
    let tallies = board.tallies(subscribers, PUBLISHES).collect();
    let spawner = Arc::clone(&system);
    let group = Arc::new(on_worker(&*system, async move { spawner.group(tallies).await }));
    let mut durations = budget.run(|| {
        board.sum.store(0, Ordering::Relaxed);
        board.handled.expect(subscribers);
        let group = Arc::clone(&group);
        let begun = on_worker(&*system, async move {
            let begun = Instant::now();
            for number in 1..=PUBLISHES {
                S::publish(&group, number).await;
            }
            begun
        });
        let ended = board.handled.wait().map_err(|error| error.to_string())?;
        let sum = board.sum.load(Ordering::Relaxed);
        let expected = subscribers as u64 * (PUBLISHES * (PUBLISHES + 1) / 2);
        if sum == expected {
            Ok(ended.duration_since(begun))
        } else {
            Err(format!("subscribers added up to {sum} instead of {expected}"))
        }
    })?;
    let per_subscriber = median_ns(&mut durations) / (subscribers as u64 * PUBLISHES) as f64;
    let mut sample = Sample::new("per-subscriber", "ns", per_subscriber);
    sample.note = S::PUBLISHES_BY;
    Ok(vec![sample])
}
