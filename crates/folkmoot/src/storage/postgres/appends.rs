//! The thread that makes records durable: takes all that is queued, applies it in one transaction,
//! wakes all.
//!
//! While a transaction is under way, the next batch gathers. A batch whose transaction is not in,
//! because its session broke, is tried again. What cannot be written is refused with everything
//! behind it, and nothing is taken until PostgreSQL takes it again; reads that would have to know
//! what became of it are refused until that is known.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::database::{Database, State};
use crate::storage::error::AppendError;
use crate::storage::ids::Lsn;
use crate::storage::log::queue::{Appended, Batch, Entry, Queue};
use crate::storage::progress::Progress;
use crate::storage::record::{Record, RecordError};
use crate::storage::sql::SqlError;
use crate::storage::sqlite::apply;

/// How often a database that is away or full is tried again.
const PROBE_PAUSE: Duration = Duration::from_millis(250);
/// How often a batch is tried whose session breaks each time: one of its records may be the reason.
const TRIES_MAX: u32 = 4;

/// What the thread needs.
pub(crate) struct Appends {
    pub(crate) database: Arc<Database>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) progress: Arc<Progress>,
}

/// Why a batch is not in the database.
#[derive(Debug, thiserror::Error)]
enum BatchError {
    #[error("{0}")]
    Database(#[from] SqlError),
    #[error("{0}")]
    Record(#[from] RecordError),
}

impl Appends {
    /// Runs until the queue is closed and empty.
    pub(crate) fn run(self) {
        let mut reuse = Vec::new();
        while let Some(mut batch) = self.queue.take(reuse) {
            match self.write(&batch) {
                Ok(first) => self.acknowledge(&mut batch, first),
                Err(error) => self.refuse_until_writable(&mut batch.entries, &error),
            }
            reuse = batch.entries;
        }
    }

    /// Gives the number of the batch's first record.
    fn write(&self, batch: &Batch) -> Result<Lsn, BatchError> {
        let mut state = self.database.lock();
        let mut tries = 0;
        loop {
            tries += 1;
            let first = state.standing.applied.next();
            let last = Lsn(state.standing.applied.0 + batch.entries.len() as u64);
            let records = numbered(first, &batch.entries)?;
            let written = self
                .database
                .transact(&mut state, |transaction| apply::apply_in(transaction, records, last));
            match written {
                Ok(()) => {
                    state.standing.applied = last;
                    return Ok(first);
                }
                Err(SqlError::Away(_)) if !state.is_away() && tries < TRIES_MAX => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn acknowledge(&self, batch: &mut Batch, first: Lsn) {
        let last = Lsn(first.0 + batch.entries.len() as u64 - 1);
        // Before any caller is woken: a barrier raised after an acknowledgement must cover it.
        self.progress.settle(last, batch.ticket, 0);
        self.progress.applied(last);
        let now = Instant::now();
        for (index, entry) in batch.entries.drain(..).enumerate() {
            self.queue.timer.record(now - entry.queued_at);
            let lsn = Lsn(first.0 + index as u64);
            // The caller may have given up waiting; the record is durable all the same.
            let _ = entry.done.send(Ok(Appended { lsn }));
        }
    }

    fn refuse_until_writable(&self, failed: &mut Vec<Entry>, error: &BatchError) {
        let why = append_error(error);
        tracing::error!(%error, "PostgreSQL takes no records; appends are refused until it does");
        let mut behind = self.queue.refuse(&why, failed);
        self.progress.stall(&error.to_string());
        refuse(failed, &why);
        refuse(&mut behind.entries, &why);
        loop {
            // A database that was taken over stays refused, with that reason.
            if let Ok(applied) = self.probe(&mut self.database.lock()) {
                self.progress.settle(applied, behind.ticket, 0);
                self.progress.applied(applied);
                self.queue.reopen();
                return;
            }
            if self.queue.wait_closing(PROBE_PAUSE) {
                return;
            }
        }
    }

    /// Whether something can be written; how far the database is.
    fn probe(&self, state: &mut State) -> Result<Lsn, SqlError> {
        self.database.transact(state, |_| Ok(()))?;
        Ok(state.standing.applied)
    }
}

fn numbered(first: Lsn, entries: &[Entry]) -> Result<Vec<(Lsn, Record)>, RecordError> {
    let numbers = (first.0..).map(Lsn);
    let records =
        numbers.zip(entries).map(|(lsn, entry)| Ok((lsn, Record::decode(&entry.payload)?)));
    records.collect()
}

fn refuse(entries: &mut Vec<Entry>, why: &AppendError) {
    for entry in entries.drain(..) {
        let _ = entry.done.send(Err(why.clone()));
    }
}

fn append_error(error: &BatchError) -> AppendError {
    match error {
        BatchError::Database(SqlError::Fenced) => AppendError::TakenOver,
        BatchError::Database(error) if error.is_disk_full() => AppendError::DiskFull,
        error => AppendError::Failed(error.to_string()),
    }
}
