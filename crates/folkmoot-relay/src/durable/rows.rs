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

/// The channels that each row was published into.
#[derive(Debug, Default)]
pub(super) struct Rows {
    channels: HashMap<RowKey, HashSet<Arc<str>>>,
}

impl Rows {
    pub(super) fn insert(&mut self, row: &RowKey, channel: &Arc<str>) {
        if let Some(channels) = self.channels.get_mut(row) {
            channels.insert(channel.clone());
            return;
        }
        self.channels.insert(row.clone(), HashSet::from([channel.clone()]));
    }

    /// Whether it was known.
    pub(super) fn remove(&mut self, row: &RowKey) -> bool {
        self.channels.remove(row).is_some()
    }

    /// Forgets all of a source before an id. That one stays: a transaction may be committed just
    /// where the one before it ends.
    pub(super) fn remove_before(&mut self, source: &str, id: u64) {
        self.channels.retain(|row, _| *row.source != *source || row.id >= id);
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&RowKey, &Arc<str>)> {
        let all = self.channels.iter();
        all.flat_map(|(row, channels)| channels.iter().map(move |channel| (row, channel)))
    }
}

/// What of which row is on disk, until the row is known not to come again.
#[derive(Debug, Default)]
pub(crate) struct KnownRows {
    rows: Mutex<Rows>,
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
        let rows = self.rows.lock();
        rows.channels.get(row).is_some_and(|channels| channels.contains(channel))
    }

    pub(crate) fn insert(&self, row: &RowKey, channel: &Arc<str>) {
        self.rows.lock().insert(row, channel);
    }

    /// Forgets rows that do not come again; returns those that were known.
    pub(crate) fn remove(&self, rows: impl Iterator<Item = RowKey>) -> Vec<RowKey> {
        let mut known = self.rows.lock();
        rows.filter(|row| known.remove(row)).collect()
    }

    /// Forgets all of a source before an id, but for that one.
    pub(crate) fn remove_before(&self, source: &str, id: u64) {
        self.rows.lock().remove_before(source, id);
    }
}

/// The same for the same content, in every process: FNV-1a.
pub(crate) fn fingerprint(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.iter());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
