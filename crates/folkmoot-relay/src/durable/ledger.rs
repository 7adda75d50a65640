//! What is on disk beside the channels: which rows of a backend are published, and how far its logs
//! of changes were read.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::{Disk, DiskError, Found, KnownRows, Restored, RowKey};

#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) disk: Disk,
    pub(crate) rows: Arc<KnownRows>,
    /// As it was at the start.
    progress: HashMap<Arc<str>, u64>,
}

impl Ledger {
    /// Opens the directory, if one is named; returns the channels that are in it.
    pub(crate) async fn open(
        directory: Option<PathBuf>,
    ) -> Result<(Option<Self>, HashMap<Arc<str>, Restored>), DiskError> {
        let Some(directory) = directory else { return Ok((None, HashMap::new())) };
        let opened = tokio::task::spawn_blocking(move || Disk::open(&directory)).await;
        let (disk, found) = opened.expect("reading does not panic")?;
        let Found { channels, rows, progress } = found;
        Ok((Some(Self { disk, rows: Arc::new(KnownRows::new(rows)), progress }), channels))
    }

    /// How far a log of changes had been read when the relay started.
    pub(crate) fn progress(&self, source: &str) -> u64 {
        self.progress.get(source).copied().unwrap_or(0)
    }

    /// These rows do not come again.
    pub(crate) fn confirm(&self, rows: impl Iterator<Item = RowKey>) {
        let known = self.rows.remove(rows);
        if !known.is_empty() {
            self.disk.confirm(known);
        }
    }

    /// A log of changes was read up to here, and nothing of it comes again.
    pub(crate) fn advance(&self, source: &Arc<str>, to: u64) {
        self.rows.remove_before(source, to);
        self.disk.advance(source.clone(), to);
    }
}
