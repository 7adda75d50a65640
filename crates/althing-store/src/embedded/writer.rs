//! The thread that has the database: it takes what has gathered, writes it in one transaction, and
//! answers when that is on the disk.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use althing::{ActorId, Epoch, Timestamp};
use rusqlite::ffi::SQLITE_IOERR_WRITE;
use rusqlite::{
    Connection, ErrorCode, OptionalExtension, Transaction, TransactionBehavior, params,
};
use tokio::sync::oneshot;

use super::deliveries;
use crate::delivery::{Delivery, Mark, Settled};
use crate::store::{Event, Kept, Snapshot, StoreError, Turn, check_follows, with_key};

/// Rows that one transaction changes, about and at most, unless a single job has more: those behind
/// wait no longer than that many take.
const BATCH_ROWS_MAX: usize = 16_384;

/// Where an answer goes.
pub(super) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// Something to do with the database.
pub(super) enum Job {
    Open(ActorId, Epoch, Reply<Kept>),
    Commit(Box<Turn>, Reply<()>),
    Events(ActorId, u64, usize, Reply<Vec<Event>>),
    Due(Timestamp, Option<Mark>, usize, Reply<Vec<Delivery>>),
    LeftBefore(Vec<(ActorId, String)>, usize, Reply<Vec<Delivery>>),
    Settle(Vec<Settled>, Reply<()>),
}

impl Job {
    /// About how many rows it changes.
    fn rows(&self) -> usize {
        match self {
            Self::Commit(turn, _) => {
                1 + turn.events.len() + turn.postings.len() + turn.replies.len()
            }
            Self::Settle(settled, _) => settled.len(),
            Self::Open(..) | Self::Events(..) | Self::Due(..) | Self::LeftBefore(..) => 1,
        }
    }

    fn only_reads(&self) -> bool {
        matches!(self, Self::Events(..) | Self::Due(..) | Self::LeftBefore(..))
    }
}

/// What a job came to, in the same variant.
enum Outcome {
    Open(Result<Kept, StoreError>),
    Commit(Result<(), StoreError>),
    Events(Vec<Event>),
    Due(Vec<Delivery>),
    LeftBefore(Vec<Delivery>),
    Settled,
}

pub(super) struct Writer {
    connection: Connection,
}

/// The error of what is asked of a store that is gone.
pub(super) fn gone() -> StoreError {
    StoreError::Unknown(Arc::new(io::Error::other("its writer has ended")))
}

impl Writer {
    pub(super) fn new(connection: Connection) -> Self {
        Self { connection }
    }

    pub(super) fn run(mut self, queue: &Receiver<Job>) {
        while let Ok(first) = queue.recv() {
            let mut rows = first.rows();
            let mut batch = vec![first];
            while rows < BATCH_ROWS_MAX
                && let Ok(job) = queue.try_recv()
            {
                rows += job.rows();
                batch.push(job);
            }
            let batch = self.read_ahead(batch);
            self.write(batch);
        }
    }

    /// Answers what only reads and stands before everything that writes: it need not wait for their
    /// sync. Returns the rest.
    fn read_ahead(&mut self, batch: Vec<Job>) -> Vec<Job> {
        let reads = batch.iter().take_while(|job| job.only_reads()).count();
        if reads == 0 || reads == batch.len() {
            return batch;
        }
        let mut batch = batch.into_iter();
        self.write(batch.by_ref().take(reads).collect());
        batch.collect()
    }

    /// Nothing is answered before the transaction has ended: what one of them reads, another one of
    /// them may have written.
    fn write(&mut self, batch: Vec<Job>) {
        match self.try_write(&batch) {
            Ok(outcomes) => batch.into_iter().zip(outcomes).for_each(|(job, it)| answer(job, it)),
            // One of them may be to blame, and shall take nothing of the others along.
            Err(error) if batch.len() > 1 && !error.may_have_written() => {
                tracing::debug!(%error, "what was refused together is tried one by one");
                batch.into_iter().for_each(|job| self.write(vec![job]));
            }
            Err(error) => {
                tracing::error!(%error, "the store cannot write");
                batch.into_iter().for_each(|job| refuse(job, &error));
            }
        }
    }

    fn try_write(&mut self, batch: &[Job]) -> Result<Vec<Outcome>, StoreError> {
        let unavailable = |error| StoreError::Unavailable(Arc::new(error));
        let behavior = TransactionBehavior::Immediate;
        let transaction =
            self.connection.transaction_with_behavior(behavior).map_err(unavailable)?;
        // An error on the way rolls all of it back, so nothing was written.
        let outcomes = batch.iter().map(|job| apply(&transaction, job)).collect::<Result<_, _>>();
        let outcomes = outcomes.map_err(unavailable)?;
        transaction.commit().map_err(|error| match has_no_room(&error) {
            true => unavailable(error),
            false => StoreError::Unknown(Arc::new(error)),
        })?;
        Ok(outcomes)
    }
}

/// Whether a commit failed because the disk took no more bytes. Then nothing was written: the page
/// that makes a commit count is the last one in SQLite's log.
fn has_no_room(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| {
        error.code == ErrorCode::DiskFull || error.extended_code == SQLITE_IOERR_WRITE
    })
}

// Whoever asked may have gone, here and below.
fn answer(job: Job, outcome: Outcome) {
    match (job, outcome) {
        (Job::Open(_, _, reply), Outcome::Open(outcome)) => _ = reply.send(outcome),
        (Job::Commit(_, reply), Outcome::Commit(outcome)) => _ = reply.send(outcome),
        (Job::Events(_, _, _, reply), Outcome::Events(events)) => _ = reply.send(Ok(events)),
        (Job::Due(_, _, _, reply), Outcome::Due(due)) => _ = reply.send(Ok(due)),
        (Job::LeftBefore(_, _, reply), Outcome::LeftBefore(left)) => _ = reply.send(Ok(left)),
        (Job::Settle(_, reply), Outcome::Settled) => _ = reply.send(Ok(())),
        _ => unreachable!("a job's outcome is of its own variant"),
    }
}

fn refuse(job: Job, error: &StoreError) {
    let error = error.clone();
    match job {
        Job::Open(_, _, reply) => _ = reply.send(Err(error)),
        Job::Commit(_, reply) => _ = reply.send(Err(error)),
        Job::Events(_, _, _, reply) => _ = reply.send(Err(error)),
        Job::Due(_, _, _, reply) => _ = reply.send(Err(error)),
        Job::LeftBefore(_, _, reply) => _ = reply.send(Err(error)),
        Job::Settle(_, reply) => _ = reply.send(Err(error)),
    }
}

fn apply(transaction: &Transaction<'_>, job: &Job) -> rusqlite::Result<Outcome> {
    Ok(match job {
        Job::Open(id, epoch, _) => Outcome::Open(open(transaction, id, *epoch)?),
        Job::Commit(turn, _) => Outcome::Commit(commit(transaction, turn)?),
        Job::Events(id, after, limit, _) => {
            Outcome::Events(events(transaction, id, *after, *limit)?)
        }
        Job::Due(until, after, limit, _) => {
            Outcome::Due(deliveries::due(transaction, *until, after.as_ref(), *limit)?)
        }
        Job::LeftBefore(names, limit, _) => {
            Outcome::LeftBefore(deliveries::left_before(transaction, names, *limit)?)
        }
        Job::Settle(settled, _) => {
            settled.iter().try_for_each(|settled| deliveries::settle(transaction, settled))?;
            Outcome::Settled
        }
    })
}

/// The part of a row that decides what may be written.
#[derive(Clone, Copy, Default)]
struct Held {
    epoch: Epoch,
    version: u64,
    last_event: u64,
}

fn held(transaction: &Transaction<'_>, id: &ActorId) -> rusqlite::Result<Held> {
    let mut select = transaction.prepare_cached(
        "SELECT epoch, version, last_event FROM actors WHERE kind = ?1 AND key = ?2",
    )?;
    let row = select.query_row(params![id.kind().as_str(), key(id)], |row| {
        let (epoch, version, last_event): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(Held {
            epoch: Epoch(epoch.cast_unsigned()),
            version: version.cast_unsigned(),
            last_event: last_event.cast_unsigned(),
        })
    });
    Ok(row.optional()?.unwrap_or_default())
}

fn open(
    transaction: &Transaction<'_>,
    id: &ActorId,
    epoch: Epoch,
) -> rusqlite::Result<Result<Kept, StoreError>> {
    let held = held(transaction, id)?;
    if epoch < held.epoch {
        return Ok(Err(StoreError::Fenced { id: id.clone(), held: held.epoch, yours: epoch }));
    }
    // Only a later epoch is written: whoever comes back in its own is read on a full disk, too.
    if epoch > held.epoch {
        transaction
            .prepare_cached(
                "INSERT INTO actors (kind, key, epoch, version, last_event)
                 VALUES (?1, ?2, ?3, 0, 0)
                 ON CONFLICT (kind, key) DO UPDATE SET epoch = excluded.epoch",
            )?
            .execute(params![id.kind().as_str(), key(id), epoch.0.cast_signed()])?;
    }
    let snapshot = transaction
        .prepare_cached(
            "SELECT schema, state, includes FROM actors
             WHERE kind = ?1 AND key = ?2 AND state IS NOT NULL",
        )?
        .query_row(params![id.kind().as_str(), key(id)], |row| {
            let includes: i64 = row.get(2)?;
            Ok(Snapshot {
                schema: row.get(0)?,
                bytes: row.get(1)?,
                includes: includes.cast_unsigned(),
            })
        })
        .optional()?;
    let replies = deliveries::replies(transaction, id)?;
    Ok(Ok(Kept { version: held.version, snapshot, last_event: held.last_event, replies }))
}

fn commit(transaction: &Transaction<'_>, turn: &Turn) -> rusqlite::Result<Result<(), StoreError>> {
    let Turn { id, epoch, version, snapshot, events, .. } = turn;
    let held = held(transaction, id)?;
    if *epoch < held.epoch {
        return Ok(Err(StoreError::Fenced { id: id.clone(), held: held.epoch, yours: *epoch }));
    }
    if let Err(conflict) = check_follows(turn, held.version, held.last_event) {
        return Ok(Err(conflict));
    }
    let last_event = events.last().map_or(held.last_event, |event| event.number);
    transaction
        .prepare_cached(
            "INSERT INTO actors (kind, key, epoch, version, last_event, schema, state, includes)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (kind, key) DO UPDATE SET
                 epoch = excluded.epoch,
                 version = excluded.version,
                 last_event = excluded.last_event,
                 schema = coalesce(excluded.schema, schema),
                 state = coalesce(excluded.state, state),
                 includes = coalesce(excluded.includes, includes)",
        )?
        .execute(params![
            id.kind().as_str(),
            key(id),
            epoch.0.cast_signed(),
            version.cast_signed(),
            last_event.cast_signed(),
            snapshot.as_ref().map(|snapshot| snapshot.schema),
            snapshot.as_ref().map(|snapshot| &snapshot.bytes),
            snapshot.as_ref().map(|snapshot| snapshot.includes.cast_signed()),
        ])?;
    for event in events {
        transaction
            .prepare_cached(
                "INSERT INTO events (kind, key, number, schema, body) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![
                id.kind().as_str(),
                key(id),
                event.number.cast_signed(),
                event.schema,
                event.bytes,
            ])?;
    }
    deliveries::write(transaction, turn)?;
    Ok(Ok(()))
}

fn events(
    transaction: &Transaction<'_>,
    id: &ActorId,
    after: u64,
    limit: usize,
) -> rusqlite::Result<Vec<Event>> {
    let mut select = transaction.prepare_cached(
        "SELECT number, schema, body FROM events
         WHERE kind = ?1 AND key = ?2 AND number > ?3 ORDER BY number LIMIT ?4",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let rows = select.query_map(params![id.kind().as_str(), key(id), after, limit], |row| {
        let number: i64 = row.get(0)?;
        Ok(Event { number: number.cast_unsigned(), schema: row.get(1)?, bytes: row.get(2)? })
    })?;
    rows.collect()
}

pub(super) fn key(id: &ActorId) -> &str {
    with_key(id).expect("looked at before the job was made")
}
