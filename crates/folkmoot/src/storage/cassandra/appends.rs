//! The thread that makes records durable: takes all that is queued, applies it to the index and
//! writes it into the log, wakes all.
//!
//! While an entry is under way, the next batch gathers. What cannot be written is refused with
//! everything behind it, and nothing is taken until the log takes it again; reads that would have
//! to know what became of it are refused until that is known.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::database::{Database, Done};
use super::entry::{self, RECORD_BYTES};
use crate::storage::error::AppendError;
use crate::storage::ids::Lsn;
use crate::storage::log::queue::{Appended, Entry, Queue};
use crate::storage::progress::Progress;
use crate::storage::record::Record;
use crate::storage::sql::SqlError;
use crate::storage::sqlite::apply;

/// How often servers that are away are tried again.
const PROBE_PAUSE: Duration = Duration::from_millis(250);

/// What the thread needs.
pub(super) struct Appends {
    pub(super) database: Arc<Database>,
    pub(super) queue: Arc<Queue>,
    pub(super) progress: Arc<Progress>,
}

impl Appends {
    /// Runs until the queue is closed and empty.
    pub(super) fn run(self) {
        let mut reuse = Vec::new();
        while let Some(mut batch) = self.queue.take(reuse) {
            let mut last = None;
            let written = loop {
                let len = fitting(&batch.entries);
                if len == 0 {
                    break Ok(());
                }
                match self.write(&batch.entries[..len]) {
                    Ok(first) => last = Some(self.acknowledge(batch.entries.drain(..len), first)),
                    Err(error) => break Err(error),
                }
            };
            if let Some(last) = last {
                // The ticket covers what was refused, too: it is known that it was not written.
                self.progress.settle(last, batch.ticket, 0);
            }
            match written {
                Ok(()) => self.progress.applied(last.unwrap_or_default()),
                Err(error) => self.refuse_until_writable(&mut batch.entries, &error),
            }
            reuse = batch.entries;
        }
    }

    /// Gives the number of the first record.
    fn write(&self, entries: &[Entry]) -> Result<Lsn, SqlError> {
        let undecodable = |error: crate::storage::record::RecordError| {
            SqlError::Refused(format!("a record does not decode: {error}"))
        };
        let records = entries.iter().map(|entry| Record::decode(&entry.payload));
        let records = records.collect::<Result<Vec<_>, _>>().map_err(undecodable)?;
        let mut state = self.database.lock();
        self.database.transact(&mut state, |transaction, applied| {
            let (first, last) = (applied.next(), Lsn(applied.0 + records.len() as u64));
            apply::apply_in(transaction, (first.0..).map(Lsn).zip(records).collect(), last)?;
            let payloads = entries.iter().map(|entry| entry.payload.clone()).collect();
            let entry = Some(entry::Entry::of_records(first, payloads));
            Ok(Done { answer: first, entry, applied: last })
        })
    }

    /// Gives the number of the last record.
    fn acknowledge(&self, entries: impl Iterator<Item = Entry>, first: Lsn) -> Lsn {
        let (now, mut lsn) = (Instant::now(), first);
        for (index, entry) in entries.enumerate() {
            self.queue.timer.record(now - entry.queued_at);
            lsn = Lsn(first.0 + index as u64);
            // The caller may have given up waiting; the record is durable all the same.
            let _ = entry.done.send(Ok(Appended { lsn }));
        }
        lsn
    }

    fn refuse_until_writable(&self, failed: &mut Vec<Entry>, error: &SqlError) {
        let why = append_error(error);
        tracing::error!(%error, "Cassandra takes no records; appends are refused until it does");
        let mut behind = self.queue.refuse(&why, failed);
        self.progress.stall(&error.to_string());
        refuse(failed, &why);
        refuse(&mut behind.entries, &why);
        loop {
            // A keyspace that was taken over stays refused, with that reason.
            if let Ok(applied) = self.probe() {
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

    /// Whether something can be written; how far the index is.
    fn probe(&self) -> Result<Lsn, SqlError> {
        let mut state = self.database.lock();
        self.database.probe(&mut state)?;
        Ok(state.applied())
    }
}

/// How many of these go into one entry; one at least, if there is one.
fn fitting(entries: &[Entry]) -> usize {
    let mut bytes = 0;
    let fits = |entry: &&Entry| {
        bytes += entry.payload.len();
        bytes <= RECORD_BYTES
    };
    entries.iter().take_while(fits).count().max(entries.len().min(1))
}

fn refuse(entries: &mut Vec<Entry>, why: &AppendError) {
    for entry in entries.drain(..) {
        let _ = entry.done.send(Err(why.clone()));
    }
}

fn append_error(error: &SqlError) -> AppendError {
    match error {
        SqlError::Fenced => AppendError::TakenOver,
        error if error.is_disk_full() => AppendError::DiskFull,
        error => AppendError::Failed(error.to_string()),
    }
}
