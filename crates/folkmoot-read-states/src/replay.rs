//! After a crash: what the log has beyond the rows of the store is merged into them and stored, some of it at a time,
//! so that a log of hours takes no more memory than one of seconds.
//!
//! Versions tell which records a row contains already, so a replay that ends half-way is begun anew by the next one.
//! A row that the store refuses holds up nothing: it stays in memory, and in the log, as while the process runs.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::task::{JoinError, JoinHandle};

use crate::block::Block;
use crate::error::ReadStatesError;
use crate::log::{Earlier, LogError, Record};
use crate::shard::row;
use crate::states::Shared;
use crate::store::{Row, RowStore, StoreError};
use crate::storing::{BATCH_ROWS, store_due};

/// Records in memory: some 20 MiB with what they are sorted by.
const RECORDS_AT_ONCE: usize = 262_144;
/// Rows that are read at once: a store on another machine has millions of them to read.
pub(crate) const LOADS_AT_ONCE: usize = 128;

/// Brings the store up to what the log has, and empties the log.
///
/// # Errors
/// The log or a row cannot be read; the store takes nothing, or refuses more rows than may wait.
pub(crate) async fn replay(
    shared: &Arc<Shared>,
    mut earlier: Earlier,
) -> Result<(), ReadStatesError> {
    loop {
        let (rest, records) = blocking(move || {
            let mut records = earlier.next(RECORDS_AT_ONCE)?;
            // Those of one user stay in their order.
            records.sort_by_key(|record| record.user);
            Ok((earlier, records))
        })
        .await?;
        earlier = rest;
        if records.is_empty() {
            break;
        }
        catch_up(shared, &records).await?;
    }
    let is_refused = shared.shards.iter().any(|shard| shard.lock().refused_len() > 0);
    if let Some(log) = shared.log.as_ref().filter(|_| !is_refused) {
        log.stored(log.rotate()?)?;
    }
    Ok(())
}

/// Works on the log where it may block.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LogError> + Send + 'static,
) -> Result<T, LogError> {
    let failed = |error: JoinError| LogError { doing: "open", why: error.to_string() };
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}

async fn catch_up(shared: &Arc<Shared>, records: &[Record]) -> Result<(), ReadStatesError> {
    let of_users: Vec<_> = records.chunk_by(|one, next| one.user == next.user).collect();
    let users: Vec<_> = of_users.iter().map(|records| records[0].user).collect();
    let mut loads =
        Loads { store: &*shared.store, users: users.into_iter(), under_way: VecDeque::new() };
    for batch in of_users.chunks(BATCH_ROWS) {
        let mut blocks = Vec::new();
        for records in batch {
            let (user, row) = (records[0].user, loads.next().await?);
            if shared.shard(user).lock().catch_up(user, records) {
                continue;
            }
            let mut block = Block::new(&row.entries, row.version);
            merge(&mut block, user, records);
            if block.version() > row.version {
                blocks.push((user, block));
            }
        }
        store(shared, blocks).await?;
    }
    Ok(())
}

/// Applies those records that a user's block does not contain yet.
pub(crate) fn merge(block: &mut Block, user: u64, records: &[Record]) {
    let mut version = block.version();
    let newer = records.iter().filter(|record| {
        let is_newer = record.version > version;
        version = version.max(record.version);
        is_newer
    });
    block.catch_up(user, newer.map(|record| (record.room, record.change)));
    block.set_version(version);
}

/// Stores users, but for those whose rows are refused: they stay in memory.
async fn store(shared: &Arc<Shared>, blocks: Vec<(u64, Block)>) -> Result<(), ReadStatesError> {
    let rows = blocks.iter().map(|(user, block)| row(*user, block)).collect();
    if shared.store.save(rows).await.is_ok() {
        return Ok(());
    }
    for (user, block) in blocks {
        shared.shard(user).lock().leave(user, block);
    }
    store_all_due(shared).await
}

/// Stores what is due, but for rows that are refused.
async fn store_all_due(shared: &Arc<Shared>) -> Result<(), ReadStatesError> {
    let _storing = shared.storing.lock().await;
    let due = || shared.shards.iter().map(|shard| shard.lock().leaving_due_len()).sum::<usize>();
    let mut left = due();
    while left > 0 {
        let stored = store_due(shared, 0).await;
        let before = std::mem::replace(&mut left, due());
        let is_too_much = shared.shards.iter().any(|shard| shard.lock().is_full_of_leaving());
        // Each time some rows are stored or told to be refused: else the store is away.
        if left == before || is_too_much {
            return stored;
        }
    }
    Ok(())
}

/// Rows of users, in their order.
struct Loads<'a> {
    store: &'a dyn RowStore,
    users: std::vec::IntoIter<u64>,
    under_way: VecDeque<JoinHandle<Result<Option<Row>, StoreError>>>,
}

impl Loads<'_> {
    async fn next(&mut self) -> Result<Row, StoreError> {
        let more = LOADS_AT_ONCE - self.under_way.len();
        let loads = self.users.by_ref().take(more).map(|user| tokio::spawn(self.store.load(user)));
        self.under_way.extend(loads);
        let Some(next) = self.under_way.pop_front() else { return Ok(Row::default()) };
        let panicked = |error: JoinError| StoreError::new("load a row", error.to_string());
        Ok(next.await.map_err(panicked)??.unwrap_or_default())
    }
}
