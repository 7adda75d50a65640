//! The thread that has the file: takes what has gathered, writes it in one transaction, and answers
//! when that is on disk.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use prost::Message;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use tokio::sync::oneshot;

use super::{Found, Record, RowKey, load};
use crate::epoch::Epoch;
use crate::server::now_ms;
use crate::version::Version;

/// Jobs in one transaction, at most: those behind wait no longer than that many take.
const BATCH_MAX: usize = 1_024;
/// How often idempotency keys whose time is over are removed.
const KEYS_EVERY: Duration = Duration::from_secs(10);

/// Something to do with the file.
pub(super) enum Job {
    Keep(Arc<Vec<Record>>, oneshot::Sender<bool>),
    Clear(Arc<str>, u64),
    Forget(Arc<str>, Epoch),
    Confirm(Vec<RowKey>),
    Advance(Arc<str>, u64),
    Read(IsMeant, oneshot::Sender<Option<Found>>),
    Close(oneshot::Sender<()>),
}

/// Which channels are read.
pub(super) type IsMeant = Box<dyn Fn(&str) -> bool + Send + Sync>;

pub(super) struct Writer {
    connection: Connection,
    keys_at: Instant,
    /// Said already: it is said once, not at each attempt.
    is_down: bool,
}

impl Writer {
    pub(super) fn new(connection: Connection) -> Self {
        Self { connection, keys_at: Instant::now(), is_down: false }
    }

    pub(super) fn run(mut self, queue: &Receiver<Job>) {
        loop {
            let mut batch = match queue.recv_timeout(KEYS_EVERY) {
                Ok(first) => vec![first],
                Err(RecvTimeoutError::Timeout) => Vec::new(),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            batch.extend(queue.try_iter().take(BATCH_MAX));
            let (closing, batch): (Vec<_>, Vec<_>) =
                batch.into_iter().partition(|job| matches!(job, Job::Close(_)));
            let (reading, batch): (Vec<_>, Vec<_>) =
                batch.into_iter().partition(|job| matches!(job, Job::Read(..)));
            self.write(batch);
            for job in reading {
                if let Job::Read(is_meant, reply) = job {
                    let found = load::load(&self.connection, &is_meant);
                    let told = |error| tracing::error!(%error, "histories cannot be read");
                    let _ = reply.send(found.map_err(told).ok());
                }
            }
            if !closing.is_empty() {
                drop(self.connection);
                for job in closing {
                    if let Job::Close(reply) = job {
                        let _ = reply.send(());
                    }
                }
                return;
            }
        }
    }

    /// Nothing is answered before the transaction has ended. One that fails has written nothing.
    fn write(&mut self, batch: Vec<Job>) {
        let written = self.try_write(&batch);
        match &written {
            Ok(()) if std::mem::take(&mut self.is_down) => {
                tracing::info!("histories are written again");
            }
            Ok(()) => {}
            Err(error) => {
                if !std::mem::replace(&mut self.is_down, true) {
                    tracing::error!(%error, "histories cannot be written");
                }
            }
        }
        for job in batch {
            if let Job::Keep(_, reply) = job {
                let _ = reply.send(written.is_ok());
            }
        }
    }

    fn try_write(&mut self, batch: &[Job]) -> rusqlite::Result<()> {
        let is_due = self.keys_at.elapsed() >= KEYS_EVERY;
        if batch.is_empty() && !is_due {
            return Ok(());
        }
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior)?;
        for job in batch {
            apply(&transaction, job)?;
        }
        if is_due {
            transaction
                .prepare_cached("DELETE FROM keys WHERE until <= ?1")?
                .execute([now_ms()])?;
        }
        transaction.commit()?;
        if is_due {
            self.keys_at = Instant::now();
        }
        Ok(())
    }
}

fn apply(transaction: &Transaction<'_>, job: &Job) -> rusqlite::Result<()> {
    match job {
        Job::Keep(records, _) => keep(transaction, records),
        Job::Clear(channel, up_to) => {
            let mut delete = transaction
                .prepare_cached("DELETE FROM publications WHERE channel = ?1 AND offset <= ?2")?;
            delete.execute(params![channel, up_to.cast_signed()]).map(drop)
        }
        Job::Forget(channel, epoch) => {
            let mut delete = transaction
                .prepare_cached("DELETE FROM streams WHERE channel = ?1 AND epoch = ?2")?;
            if delete.execute(params![channel, epoch.number().cast_signed()])? > 0 {
                remove_all(transaction, channel)?;
            }
            Ok(())
        }
        Job::Confirm(rows) => {
            let delete = "DELETE FROM rows WHERE source = ?1 AND id = ?2 AND part = ?3";
            let mut delete = transaction.prepare_cached(delete)?;
            for RowKey { source, id, part } in rows {
                delete.execute(params![source, id.cast_signed(), part.cast_signed()])?;
            }
            Ok(())
        }
        Job::Advance(source, to) => {
            let upsert = "INSERT INTO progress (source, at) VALUES (?1, ?2)
                          ON CONFLICT DO UPDATE SET at = excluded.at";
            let to = to.cast_signed();
            transaction.prepare_cached(upsert)?.execute(params![source, to])?;
            let delete = "DELETE FROM rows WHERE source = ?1 AND id < ?2";
            transaction.prepare_cached(delete)?.execute(params![source, to]).map(drop)
        }
        Job::Read(..) | Job::Close(_) => Ok(()),
    }
}

fn keep(transaction: &Transaction<'_>, records: &[Record]) -> rusqlite::Result<()> {
    let mut insert = transaction
        .prepare_cached("INSERT INTO publications (channel, offset, body) VALUES (?1, ?2, ?3)")?;
    let mut trim = transaction
        .prepare_cached("DELETE FROM publications WHERE channel = ?1 AND offset <= ?2")?;
    let mut stream = transaction.prepare_cached(
        "INSERT INTO streams (channel, epoch, top, at) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT DO UPDATE SET epoch = excluded.epoch, top = excluded.top, at = excluded.at",
    )?;
    let mut version = transaction
        .prepare_cached("UPDATE streams SET version = ?2, version_epoch = ?3 WHERE channel = ?1")?;
    let mut key = transaction.prepare_cached(
        "INSERT OR REPLACE INTO keys (channel, key, offset, until) VALUES (?1, ?2, ?3, ?4)",
    )?;
    let mut row = transaction.prepare_cached(
        "INSERT OR IGNORE INTO rows (source, id, part, channel) VALUES (?1, ?2, ?3, ?4)",
    )?;
    // The same payload goes into many channels in a broadcast.
    let mut encoded: Option<(*const crate::payload::Payload, Vec<u8>)> = None;
    for record in records {
        let Record { channel, offset, post, .. } = record;
        if *offset == 1 {
            // Another life of a channel that was lost without a word to the disk.
            remove_all(transaction, channel)?;
        }
        let payload = Arc::as_ptr(&post.payload);
        if encoded.as_ref().is_none_or(|(of, _)| *of != payload) {
            encoded = Some((payload, post.payload.at(0).encode_to_vec()));
        }
        let body = encoded.as_ref().map_or(&[][..], |(_, body)| body);
        let number = offset.cast_signed();
        insert.execute(params![channel, number, body])?;
        if let Some(old) = offset.checked_sub(record.keep.len_max.max(1) as u64)
            && old > 0
        {
            trim.execute(params![channel, old.cast_signed()])?;
        }
        let epoch = record.epoch.number().cast_signed();
        stream.execute(params![channel, epoch, number, record.at.cast_signed()])?;
        if let Some(Version { number, epoch }) = post.version.as_deref() {
            version.execute(params![channel, number.cast_signed(), epoch])?;
        }
        if let Some(text) = &post.key {
            key.execute(params![channel, text, number, record.key_until.cast_signed()])?;
        }
        if let Some(RowKey { source, id, part }) = &post.row {
            row.execute(params![source, id.cast_signed(), part.cast_signed(), channel])?;
        }
    }
    Ok(())
}

/// All that belongs to a channel but its numbers: its version, too, counts for one life.
fn remove_all(transaction: &Transaction<'_>, channel: &str) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("DELETE FROM publications WHERE channel = ?1")?
        .execute([channel])?;
    transaction
        .prepare_cached("UPDATE streams SET version = NULL WHERE channel = ?1")?
        .execute([channel])?;
    transaction.prepare_cached("DELETE FROM keys WHERE channel = ?1")?.execute([channel]).map(drop)
}
