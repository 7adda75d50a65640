//! Rows on their way to the store: in batches, and in ever smaller parts of a batch that fails, so that
//! a row that the store refuses holds up no other one.
//!
//! Not every store says whether it is away or refuses a row. After some failures in a row those of
//! another shard are tried, and what was refused by itself is out of the way in the next round. One that
//! does nothing but fail for long counts as away, and nothing more is tried until then.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use crate::error::ReadStatesError;
use crate::shard::Shard;
use crate::states::Shared;
use crate::store::{Retry, Row, StoreError};

/// Rows in one write.
pub(crate) const BATCH_ROWS: usize = 1_000;
/// Rows that are taken, or marked as stored, before others get the shard's lock: some ten
/// microseconds.
const SLICE_ROWS: usize = 32;
/// Parts of a batch that failed: a thousand rows come down to one in two steps.
const PARTS: usize = 32;
/// Failures in a row after which a shard waits for the next round: the whole batch, a part of it, and
/// some rows beside each other that are refused.
const FAILURES_MAX: u32 = 8;
/// A store that was asked for so long and has taken nothing is away; for one answer it has ten seconds
/// or more.
pub(crate) const FAILING_MAX: Duration = Duration::from_secs(2);

/// Stores those who leave, and those changed before a moment. The caller holds `storing`.
pub(crate) async fn store_due(shared: &Arc<Shared>, before_ms: u64) -> Result<(), ReadStatesError> {
    let mut storing = Storing::new(shared);
    for shard in &shared.shards {
        loop {
            let rows = take_batch(shard, before_ms);
            if rows.is_empty() {
                break;
            }
            if let Err(error) = storing.batch(shard, rows).await {
                storing.leave_shard(error)?;
                break;
            }
        }
    }
    storing.end()
}

/// Stores those of whom the rows were refused before, so many of each shard at most. The caller holds
/// `storing`.
pub(crate) async fn store_refused(
    shared: &Arc<Shared>,
    counts: Vec<usize>,
) -> Result<(), ReadStatesError> {
    let mut storing = Storing::new(shared);
    for (shard, count) in shared.shards.iter().zip(counts) {
        let mut left = count;
        while left > 0 {
            let rows = shard.lock().take_refused(left.min(PARTS));
            left -= left.min(PARTS);
            if let Err(error) = storing.batch(shard, rows).await {
                storing.leave_shard(error)?;
                break;
            }
        }
    }
    storing.end()
}

struct Storing<'a> {
    shared: &'a Shared,
    /// Since something was stored, or another shard began.
    failures: u32,
    /// How long the store was asked since it has taken something.
    failing: Duration,
    is_away: bool,
    first_error: Option<StoreError>,
}

impl<'a> Storing<'a> {
    fn new(shared: &'a Shared) -> Self {
        Self { shared, failures: 0, failing: Duration::ZERO, is_away: false, first_error: None }
    }

    /// Stores a batch, or those of its rows that are not refused.
    async fn batch(&mut self, shard: &Mutex<Shard>, rows: Vec<Row>) -> Result<(), StoreError> {
        let whole = Taken::of(shard, &rows);
        let mut parts = vec![(whole, Some(rows))];
        while let Some((mut taken, rows)) = parts.pop() {
            let rows = rows.unwrap_or_else(|| taken.again());
            let begun = Instant::now();
            let Err(error) = self.shared.store.save(rows).await else {
                (self.failures, self.failing) = (0, Duration::ZERO);
                taken.stored(self.shared.clock.now_ms());
                continue;
            };
            if self.gives_up(&error, begun.elapsed()) {
                return Err(error);
            }
            if let [(user, _)] = *taken.rows {
                tracing::warn!(user, %error, "the read states of a user were refused");
                taken.refused();
                self.first_error.get_or_insert(error);
            } else {
                parts.extend(taken.split().into_iter().map(|part| (part, None)));
            }
        }
        Ok(())
    }

    /// Whether no other part of a batch is tried after this failure.
    fn gives_up(&mut self, error: &StoreError, took: Duration) -> bool {
        self.failures += 1;
        self.failing += took;
        let is_taken_over = error.retry == Retry::TakenOver;
        if is_taken_over {
            self.shared.is_taken_over.store(true, Relaxed);
        }
        self.is_away = is_taken_over || self.failing >= FAILING_MAX;
        self.is_away || self.failures >= FAILURES_MAX
    }

    /// Goes on with the next shard, unless the store is away.
    fn leave_shard(&mut self, error: StoreError) -> Result<(), ReadStatesError> {
        if self.is_away {
            return Err(error.into());
        }
        self.failures = 0;
        self.first_error.get_or_insert(error);
        Ok(())
    }

    fn end(self) -> Result<(), ReadStatesError> {
        self.first_error.map_or(Ok(()), |error| Err(error.into()))
    }
}

/// Rows on their way to the store, by user and version: due again unless it has them, also when it
/// panics.
struct Taken<'a> {
    shard: &'a Mutex<Shard>,
    rows: Vec<(u64, u64)>,
}

impl<'a> Taken<'a> {
    fn of(shard: &'a Mutex<Shard>, rows: &[Row]) -> Self {
        Self { shard, rows: rows.iter().map(|row| (row.user, row.version)).collect() }
    }

    /// The rows as they are by now.
    fn again(&mut self) -> Vec<Row> {
        let mut shard = self.shard.lock();
        let rows: Vec<Row> = self.rows.iter().filter_map(|(user, _)| shard.take(*user)).collect();
        self.rows = rows.iter().map(|row| (row.user, row.version)).collect();
        rows
    }

    fn split(mut self) -> Vec<Self> {
        let rows = std::mem::take(&mut self.rows);
        let parts = rows.chunks(rows.len().div_ceil(PARTS).max(1));
        parts.map(|rows| Self { shard: self.shard, rows: rows.to_vec() }).collect()
    }

    fn stored(mut self, now_ms: u64) {
        let rows = std::mem::take(&mut self.rows);
        each(self.shard, &rows, |shard, user, version| shard.stored(user, version, now_ms));
    }

    fn refused(mut self) {
        let rows = std::mem::take(&mut self.rows);
        each(self.shard, &rows, |shard, user, _| shard.refused(user));
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        each(self.shard, &self.rows, |shard, user, _| shard.not_stored(user));
    }
}

/// Marks rows, some at a time.
fn each(shard: &Mutex<Shard>, rows: &[(u64, u64)], mark: impl Fn(&mut Shard, u64, u64)) {
    for slice in rows.chunks(SLICE_ROWS) {
        let mut shard = shard.lock();
        for &(user, version) in slice {
            mark(&mut shard, user, version);
        }
        MutexGuard::unlock_fair(shard);
    }
}

/// Rows that are due, for one write.
fn take_batch(shard: &Mutex<Shard>, before_ms: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    while rows.len() < BATCH_ROWS {
        let mut shard = shard.lock();
        let slice = shard.take_due(before_ms, SLICE_ROWS.min(BATCH_ROWS - rows.len()));
        // To whoever waits: without this the next slice would begin before they wake.
        MutexGuard::unlock_fair(shard);
        if slice.is_empty() {
            break;
        }
        rows.extend(slice);
    }
    rows
}
