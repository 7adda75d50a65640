//! The thread that makes records durable: takes all that is queued, applies it in one transaction,
//! wakes all.
//!
//! While a transaction is under way, the next batch gathers. A batch whose transaction is not in,
//! because its session broke, is tried again. What cannot be written is refused with everything
//! behind it, and nothing is taken until PostgreSQL takes it again; reads that would have to know
//! what became of it are refused until that is known.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::database::{Database, State};
use super::fence;
use crate::storage::error::AppendError;
use crate::storage::ids::Lsn;
use crate::storage::log::queue::{Appended, Batch, Entry, Queue};
use crate::storage::progress::{Progress, Stream};
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
            match self.write(&mut batch) {
                Ok(first) => self.acknowledge(&mut batch, first),
                Err(error) => self.refuse_until_writable(&mut batch.entries, &error),
            }
            reuse = batch.entries;
        }
    }

    /// Gives the number of the batch's first record; those that another node has forestalled are
    /// refused, and taken out.
    fn write(&self, batch: &mut Batch) -> Result<Lsn, BatchError> {
        let mut state = self.database.lock();
        let mut tries = 0;
        loop {
            tries += 1;
            refuse_lost(&mut batch.entries);
            let records = decode(&batch.entries)?;
            let places: Vec<_> = records.iter().map(fence::place).collect();
            let (mut first, mut last, mut lost) = (Lsn(0), Lsn(0), HashSet::new());
            let written = self.database.transact(&mut state, |transaction, applied| {
                if self.database.is_shared() {
                    lost = fence::lost(transaction, &records)?;
                }
                let kept = records.into_iter().filter(|record| {
                    fence::place(record).is_none_or(|(stream, _)| !lost.contains(&stream))
                });
                first = applied.next();
                let kept: Vec<_> = (first.0..).map(Lsn).zip(kept).collect();
                last = Lsn(applied.0 + kept.len() as u64);
                apply::apply_in(transaction, kept, last)
            });
            match written {
                Ok(()) => {
                    state.standing.applied = last;
                    if !lost.is_empty() {
                        self.give_up(&mut batch.entries, &places, &lost);
                    }
                    return Ok(first);
                }
                Err(SqlError::Away(_)) if !state.is_away() && tries < TRIES_MAX => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Refuses what another node has forestalled, in the batch and behind it: no later record of the
    /// stream may fit by chance.
    fn give_up(
        &self,
        entries: &mut Vec<Entry>,
        places: &[Option<(Stream, u64)>],
        lost: &HashSet<Stream>,
    ) {
        tracing::warn!(streams = lost.len(), "another node has appended to streams of this one");
        self.queue.lose(lost);
        for (entry, place) in entries.iter_mut().zip(places) {
            entry.is_lost = place.is_some_and(|(stream, _)| lost.contains(&stream));
        }
        refuse_lost(entries);
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
        self.database.transact(state, |_, _| Ok(()))?;
        Ok(state.standing.applied)
    }
}

fn decode(entries: &[Entry]) -> Result<Vec<Record>, RecordError> {
    entries.iter().map(|entry| Record::decode(&entry.payload)).collect()
}

fn refuse_lost(entries: &mut Vec<Entry>) {
    for entry in entries.extract_if(.., |entry| entry.is_lost) {
        let _ = entry.done.send(Err(AppendError::OtherNode));
    }
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
