//! Moves the log into SQLite: a batch of records and the lsn of the last one, in one transaction.
//!
//! Records and `applied_lsn` are committed together, so a record is applied exactly once however often the
//! process dies. Segments are deleted behind it, after the commit is durable.

use std::sync::Arc;

use rusqlite::Connection;

use super::apply;
use crate::storage::ids::Lsn;
use crate::storage::log::disk::Disk;
use crate::storage::log::segments::Segments;
use crate::storage::log::tail_reader::{TailError, TailReader};

/// Bytes of log applied in one transaction: about 20,000 chat messages. Larger batches gain little and make
/// barriers and control transactions wait longer.
pub(crate) const BATCH_BYTES: usize = 4 << 20;

/// Why a batch was not applied; nothing of it was.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MoveError {
    /// A full disk mostly; trying again may help.
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The log has become unreadable.
    #[error("{0}")]
    Log(#[from] TailError),
}

/// The mover's place in the log.
pub(crate) struct Mover {
    segments: Arc<Segments>,
    disk: Arc<dyn Disk>,
    reader: TailReader,
    applied: Lsn,
}

impl Mover {
    /// Begins where SQLite ends.
    pub(crate) fn new(segments: Arc<Segments>, disk: Arc<dyn Disk>, applied: Lsn) -> Self {
        let reader = TailReader::new(Arc::clone(&segments), applied);
        Self { segments, disk, reader, applied }
    }

    /// Applies one batch of what is durable; returns how far SQLite is now.
    pub(crate) fn step(
        &mut self,
        connection: &mut Connection,
        durable: Lsn,
    ) -> Result<Lsn, MoveError> {
        let result = self.try_step(connection, durable);
        if result.is_err() {
            // The reader is ahead of what was committed.
            self.reader = TailReader::new(Arc::clone(&self.segments), self.applied);
        }
        result
    }

    fn try_step(&mut self, connection: &mut Connection, durable: Lsn) -> Result<Lsn, MoveError> {
        let records = self.reader.read(durable, BATCH_BYTES)?;
        let Some((last, _)) = records.last() else { return Ok(self.applied) };
        let last = *last;
        apply::apply(connection, records, last)?;
        self.applied = last;
        self.segments.remove_applied(last, &*self.disk);
        Ok(last)
    }
}

/// How far SQLite is.
pub(crate) fn applied_lsn(connection: &Connection) -> rusqlite::Result<Lsn> {
    connection
        .query_row("SELECT applied_lsn FROM store", [], |row| Ok(Lsn(apply::from_sql(row.get(0)?))))
}
