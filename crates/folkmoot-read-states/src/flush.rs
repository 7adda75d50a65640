//! Moves changes to the store: in rounds, and at once for those who leave memory.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use crate::error::ReadStatesError;
use crate::replay::LOADS_AT_ONCE;
use crate::states::Shared;
use crate::store::StoreError;
use crate::storing::{FAILING_MAX, store_due, store_refused};

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
    let loaded = load_absent(shared, before_ms).await;
    let refused_before = shared.shards.iter().map(|shard| shard.lock().refused_len()).collect();
    let stored = store_due(shared, before_ms).await;
    // Behind all others, and each once.
    let stored = store_refused(shared, refused_before).await.and(stored);
    if let (Err(error), Some((log, _))) = (&stored, &rotated) {
        log.says_what_it_keeps(error);
    }
    stored.and(loaded)?;
    if let Some((log, segment)) = rotated {
        log.stored(segment?)?;
    }
    Ok(())
}

/// Brings users into memory who were changed before a moment and were not there: what they lack is merged, and due
/// with the others. A store that fails for long is away, and nobody more is asked for.
async fn load_absent(shared: &Arc<Shared>, before_ms: u64) -> Result<(), ReadStatesError> {
    let (mut failing, mut first_error) = (Duration::ZERO, None);
    for shard in &shared.shards {
        loop {
            let absent = shard.lock().due_deltas(before_ms);
            let mut is_done = absent.is_empty();
            for users in absent.chunks(LOADS_AT_ONCE) {
                let begun = Instant::now();
                let Loaded { count, error } = load(shared, users).await;
                failing = if count > 0 { Duration::ZERO } else { failing + begun.elapsed() };
                is_done |= error.is_some();
                first_error = first_error.or(error);
                if failing >= FAILING_MAX {
                    return first_error.map_or(Ok(()), Err);
                }
            }
            if is_done {
                break;
            }
        }
    }
    first_error.map_or(Ok(()), Err)
}

/// How many of some users are there now, and why one is not.
struct Loaded {
    count: usize,
    error: Option<ReadStatesError>,
}

async fn load(shared: &Arc<Shared>, users: &[u64]) -> Loaded {
    let mut loads = JoinSet::new();
    for user in users.iter().copied() {
        let shared = shared.clone();
        loads.spawn(async move { shared.load(user).await });
    }
    let mut loaded = Loaded { count: 0, error: None };
    while let Some(ended) = loads.join_next().await {
        let panicked = |error: JoinError| StoreError::new("load a row", error.to_string()).into();
        match ended.unwrap_or_else(|error| Err(panicked(error))) {
            Ok(()) => loaded.count += 1,
            Err(error) => _ = loaded.error.get_or_insert(error),
        }
    }
    loaded
}
