//! Moves changes to the store: in rounds, at once for those who leave memory, and from the log
//! after a crash.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Instant;

use crate::block::Block;
use crate::error::ReadStatesError;
use crate::log::Record;
use crate::states::Shared;
use crate::store::{Row, RowStore, StoreError};
use crate::storing::{BATCH_ROWS, store_due, store_refused};

/// Rows that are read at once while the log is read.
const LOADS_AT_ONCE: usize = 128;
/// Rounds begin so often that a change waits at most twice that.
const ROUNDS_PER_WAIT: u32 = 2;
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Before a store that failed is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Stores what is due until the last handle is dropped. Nothing here keeps one alive while it waits:
/// who drops the last may open the same log again.
pub(crate) async fn run(shared: Weak<Shared>, hurry: Arc<Notify>, store_after: Duration) {
    let mut next = Instant::now() + store_after / ROUNDS_PER_WAIT;
    loop {
        // Wakes now and then to see whether anybody still has a handle.
        let until = next.min(Instant::now() + LOOK_EVERY);
        let is_hurried = tokio::time::timeout_at(until, hurry.notified()).await.is_ok();
        let Some(strong) = shared.upgrade() else { return };
        // Until the next round nothing that is changed is durable.
        let is_refusing = strong.log.as_ref().is_some_and(|log| !log.is_whole());
        let is_round = is_refusing || Instant::now() >= next;
        if is_round {
            next = Instant::now() + store_after / ROUNDS_PER_WAIT;
        } else if !is_hurried {
            continue;
        }
        // In a task of its own: a store that panics ends that one and not this.
        let working = tokio::spawn(work(strong.clone(), is_round));
        let panicked = |error: JoinError| StoreError::new("store rows", error.to_string()).into();
        let done = working.await.unwrap_or_else(|error| Err(panicked(error)));
        if strong.is_taken_over.load(Relaxed) {
            tracing::error!(
                "another process has taken the read states over: this one ends its work"
            );
            return;
        }
        drop(strong);
        if let Err(error) = done {
            tracing::warn!(%error, "read states were not stored");
            tokio::time::sleep(RETRY_AFTER).await;
        }
    }
}

/// A round, or what is in a hurry.
async fn work(shared: Arc<Shared>, is_round: bool) -> Result<(), ReadStatesError> {
    if is_round {
        return round(&shared).await;
    }
    let _storing = shared.storing.lock().await;
    store_due(&shared, 0).await
}

/// Stores everything that was changed before the call; the log forgets it then.
pub(crate) async fn round(shared: &Arc<Shared>) -> Result<(), ReadStatesError> {
    let _storing = shared.storing.lock().await;
    // A disk that takes no new file keeps nothing from the store.
    let rotated = shared.log.as_ref().map(|log| (log, log.rotate()));
    let before_ms = shared.clock.now_ms() + 1;
    let mut first_error = None;
    for shard in &shared.shards {
        loop {
            let absent = shard.lock().due_deltas(before_ms, BATCH_ROWS);
            if absent.is_empty() {
                break;
            }
            for user in absent {
                // What it lacks is merged, and due with the others below.
                if let Err(error) = shared.load(user).await {
                    first_error.get_or_insert(error);
                }
            }
            if first_error.is_some() {
                break;
            }
        }
    }
    let refused_before = shared.shards.iter().map(|shard| shard.lock().refused_len()).collect();
    let stored = store_due(shared, before_ms).await;
    // Behind all others, and each once.
    store_refused(shared, refused_before).await.and(stored)?;
    if let Some(error) = first_error {
        return Err(error);
    }
    if let Some((log, segment)) = rotated {
        log.stored(segment?)?;
    }
    Ok(())
}

/// Rows of users of whom the log has something, those of some read at once: a store on another machine
/// has millions of them to read after a crash.
struct Loads<'a> {
    store: &'a dyn RowStore,
    users: std::vec::IntoIter<u64>,
    under_way: VecDeque<JoinHandle<Result<Option<Row>, StoreError>>>,
}

impl Loads<'_> {
    /// The row of the next user.
    async fn next(&mut self) -> Result<Row, StoreError> {
        let more = LOADS_AT_ONCE - self.under_way.len();
        let loads = self.users.by_ref().take(more).map(|user| tokio::spawn(self.store.load(user)));
        self.under_way.extend(loads);
        let Some(next) = self.under_way.pop_front() else { return Ok(Row::default()) };
        let panicked = |error: JoinError| StoreError::new("load a row", error.to_string());
        Ok(next.await.map_err(panicked)??.unwrap_or_default())
    }
}

/// Brings the store up to what the log has, and empties the log.
pub(crate) async fn replay(
    shared: &Arc<Shared>,
    records: Vec<Record>,
) -> Result<(), ReadStatesError> {
    let mut by_user: BTreeMap<u64, Vec<Record>> = BTreeMap::new();
    for record in records {
        by_user.entry(record.user).or_default().push(record);
    }
    let users = by_user.keys().copied().collect::<Vec<_>>().into_iter();
    let mut loads = Loads { store: &*shared.store, users, under_way: VecDeque::new() };
    let mut rows = Vec::new();
    for (user, records) in by_user {
        let stored = loads.next().await?;
        let mut block = Block::new(&stored.entries, stored.version);
        let mut version = stored.version;
        let newer = records.into_iter().filter(|record| {
            let is_newer = record.version > version;
            version = version.max(record.version);
            is_newer
        });
        block.catch_up(user, newer.map(|record| (record.room, record.change)));
        block.set_version(version);
        if block.version() > stored.version {
            let entries = block.entries().collect();
            rows.push(Row { user, version: block.version(), entries });
        }
        if rows.len() == BATCH_ROWS {
            shared.store.save(std::mem::take(&mut rows)).await?;
        }
    }
    shared.store.save(rows).await?;
    if let Some(log) = &shared.log {
        log.stored(log.rotate()?)?;
    }
    Ok(())
}
