//! Moves the log into SQLite: a batch of records and the lsn of the last one, in one transaction.
//!
//! Records and `applied_lsn` are committed together, so a record is applied exactly once however
//! often the process dies. Segments are deleted behind it, after the commit is durable. On a full
//! disk it makes what room it can: SQLite's own WAL goes into the database file, and batches become
//! smaller.

use std::sync::Arc;

use super::apply;
use crate::storage::directory::DataDirectory;
use crate::storage::error::OpenError;
use crate::storage::ids::Lsn;
use crate::storage::log::disk::Disk;
use crate::storage::log::segments::Segments;
use crate::storage::log::tail_reader::{TailError, TailReader};
use crate::storage::sql::{self, Connection, SqlError};

/// Bytes of log applied in one transaction: about 20,000 chat messages. Larger batches gain little
/// and make barriers and control transactions wait longer.
pub(crate) const BATCH_BYTES: usize = 4 << 20;
/// The batch that a full disk is tried with; batches double from there while they succeed.
const BATCH_BYTES_MIN: usize = 64 << 10;

/// Why a batch was not applied; nothing of it was.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MoveError {
    /// A full disk mostly; trying again may help.
    #[error("{0}")]
    Database(#[from] SqlError),
    /// The log has become unreadable.
    #[error("{0}")]
    Log(#[from] TailError),
    /// Our own bug.
    #[error("moving the log panicked")]
    Panicked,
}

impl MoveError {
    fn is_disk_full(&self) -> bool {
        match self {
            Self::Database(error) => error.is_disk_full(),
            Self::Log(_) | Self::Panicked => false,
        }
    }

    /// What a start says, with so many records still in the log.
    pub(crate) fn at_start(self, directory: &DataDirectory, records: u64) -> OpenError {
        match self {
            Self::Database(error) if error.is_disk_full() => {
                OpenError::DiskFull { path: directory.database(), records }
            }
            Self::Database(error) => OpenError::Database(error),
            error @ (Self::Log(_) | Self::Panicked) => {
                OpenError::Io { path: directory.log(), source: std::io::Error::other(error) }
            }
        }
    }
}

/// The mover's place in the log.
pub(crate) struct Mover {
    segments: Arc<Segments>,
    disk: Arc<dyn Disk>,
    reader: TailReader,
    applied: Lsn,
    batch_bytes: usize,
}

impl Mover {
    /// Begins where SQLite ends.
    pub(crate) fn new(segments: Arc<Segments>, disk: Arc<dyn Disk>, applied: Lsn) -> Self {
        let reader = TailReader::new(Arc::clone(&segments), applied);
        Self { segments, disk, reader, applied, batch_bytes: BATCH_BYTES }
    }

    /// Reads the log again from where SQLite ends.
    pub(crate) fn begin_again(&mut self) {
        self.reader = TailReader::new(Arc::clone(&self.segments), self.applied);
    }

    /// Applies one batch of what is durable; returns how far SQLite is now.
    pub(crate) fn step(&mut self, connection: &Connection, durable: Lsn) -> Result<Lsn, MoveError> {
        loop {
            let is_tight = self.batch_bytes < BATCH_BYTES;
            if is_tight {
                // First of all: a batch that failed has left a large WAL, and what is free now may
                // be enough to give that back but not for another batch.
                empty_wal(connection);
            }
            let error = match self.try_step(connection, durable) {
                Ok(applied) => {
                    self.batch_bytes = (self.batch_bytes * 2).min(BATCH_BYTES);
                    return Ok(applied);
                }
                Err(error) => error,
            };
            // The reader is ahead of what was committed.
            self.reader = TailReader::new(Arc::clone(&self.segments), self.applied);
            if !error.is_disk_full() {
                return Err(error);
            }
            self.batch_bytes = BATCH_BYTES_MIN;
            if is_tight {
                return Err(error);
            }
        }
    }

    /// Applies everything up to `last`.
    pub(crate) fn catch_up(&mut self, connection: &Connection, last: Lsn) -> Result<(), MoveError> {
        while self.applied < last {
            self.step(connection, last)?;
        }
        Ok(())
    }

    fn try_step(&mut self, connection: &Connection, durable: Lsn) -> Result<Lsn, MoveError> {
        let records = self.reader.read(durable, self.batch_bytes)?;
        let Some((last, _)) = records.last() else { return Ok(self.applied) };
        let last = *last;
        apply::apply(connection, records, last)?;
        self.applied = last;
        self.segments.remove_applied(last, &*self.disk);
        Ok(last)
    }
}

/// Moves SQLite's WAL into the database file and gives its space back, as far as there is room for
/// that.
fn empty_wal(connection: &Connection) {
    let emptied = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    if let Err(error) = emptied {
        tracing::debug!(%error, "the database's WAL cannot be emptied on the full disk");
    }
}

/// How far SQLite is.
pub(crate) fn applied_lsn(connection: &Connection) -> sql::Result<Lsn> {
    connection
        .query_row("SELECT applied_lsn FROM store", [], |row| Ok(Lsn(apply::from_sql(row.get(0)?))))
}
