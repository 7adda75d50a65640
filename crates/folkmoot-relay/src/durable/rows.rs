//! Rows of a backend that are in histories on disk and may come again: a relay that was killed
//! between publishing a row and telling the database so gets it a second time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;

/// A row of an outbox, as it is recognised.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RowKey {
    /// Which table, or which log of changes.
    pub(crate) source: Arc<str>,
    /// Its id, or the place of its commit in the log.
    pub(crate) id: u64,
    /// A hash of its content, or its place in the transaction.
    pub(crate) part: u64,
}

/// What of which row is on disk, until the row is known not to come again.
#[derive(Debug, Default)]
pub(crate) struct KnownRows {
    channels: Mutex<HashMap<RowKey, HashSet<Arc<str>>>>,
}

impl KnownRows {
    pub(crate) fn new(rows: Vec<(RowKey, Arc<str>)>) -> Self {
        let known = Self::default();
        for (row, channel) in rows {
            known.insert(&row, &channel);
        }
        known
    }

    /// Whether the row was published into this channel.
    pub(crate) fn has(&self, row: &RowKey, channel: &str) -> bool {
        self.channels.lock().get(row).is_some_and(|channels| channels.contains(channel))
    }

    pub(crate) fn insert(&self, row: &RowKey, channel: &Arc<str>) {
        self.channels.lock().entry(row.clone()).or_default().insert(channel.clone());
    }

    /// Forgets rows that do not come again; returns those that were known.
    pub(crate) fn remove(&self, rows: impl Iterator<Item = RowKey>) -> Vec<RowKey> {
        let mut channels = self.channels.lock();
        rows.filter(|row| channels.remove(row).is_some()).collect()
    }

    /// Forgets all of a source before an id. That one stays: a transaction may be committed just
    /// where the one before it ends.
    pub(crate) fn remove_before(&self, source: &str, id: u64) {
        self.channels.lock().retain(|row, _| *row.source != *source || row.id >= id);
    }
}

/// The same for the same content, in every process: FNV-1a.
pub(crate) fn fingerprint(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.iter());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
