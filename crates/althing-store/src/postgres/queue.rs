//! What waits for one connection, in the order of the calls: bounded by calls and by bytes.
//!
//! What a broken transaction gives back goes to the front, so the order of calls outlives the
//! connection.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use althing::{ActorId, Epoch, Timestamp};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::{PostgresError, unavailable};
use crate::delivery::{Delivery, Mark, Settled};
use crate::store::{Event, Kept, StoreError, Turn};

/// Calls in one transaction, at most: those behind wait no longer than that many take.
const BATCH_CALLS_MAX: usize = 1_024;
/// Bytes in one transaction, unless a single turn has more.
const BATCH_BYTES_MAX: usize = 4 << 20;
/// Snapshots and pages of a journal read at once, at most: their size is known only when they are
/// in memory.
const BATCH_READS_MAX: usize = 64;

/// Where an answer goes.
pub(super) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// Something to do with the database.
#[derive(Debug)]
pub(super) enum Task {
    Open(ActorId, Epoch, Reply<Kept>),
    Commit(Box<Turn>, Reply<()>),
    Events(ActorId, u64, usize, Reply<Vec<Event>>),
    Due(Timestamp, Option<Mark>, usize, Reply<Vec<Delivery>>),
    LeftBefore(Vec<(ActorId, String)>, usize, Reply<Vec<Delivery>>),
    Settle(Vec<Settled>, Reply<()>),
}

/// A task that waits, or is under way.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) task: Task,
    since: Instant,
    bytes: usize,
}

#[derive(Debug)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Notify,
    calls_max: usize,
    pub(super) bytes_max: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    bytes: usize,
    is_closed: bool,
}

impl Job {
    pub(super) fn new(task: Task, bytes: usize) -> Self {
        Self { task, since: Instant::now(), bytes: bytes + size_of::<Self>() }
    }

    /// Whether it is done outside of transactions.
    pub(super) fn is_read(&self) -> bool {
        matches!(self.task, Task::Events(..) | Task::Due(..) | Task::LeftBefore(..))
    }

    pub(super) fn is_commit(&self) -> bool {
        matches!(self.task, Task::Commit(..))
    }

    // Whoever asked may have gone.
    pub(super) fn refuse(self, error: StoreError) {
        match self.task {
            Task::Open(_, _, reply) => _ = reply.send(Err(error)),
            Task::Commit(_, reply) => _ = reply.send(Err(error)),
            Task::Events(_, _, _, reply) => _ = reply.send(Err(error)),
            Task::Due(_, _, _, reply) => _ = reply.send(Err(error)),
            Task::LeftBefore(_, _, reply) => _ = reply.send(Err(error)),
            Task::Settle(_, reply) => _ = reply.send(Err(error)),
        }
    }
}

impl Queue {
    pub(super) fn new(calls_max: usize, bytes_max: usize) -> Self {
        Self { waiting: Mutex::default(), changed: Notify::new(), calls_max, bytes_max }
    }

    /// # Errors
    /// It is full, or nobody takes from it any more.
    pub(super) fn push(&self, job: Job) -> Result<(), PostgresError> {
        let mut waiting = self.waiting.lock();
        if waiting.is_closed {
            return Err(PostgresError::Ended);
        }
        let (calls, bytes) = (waiting.jobs.len(), waiting.bytes);
        // A turn of the largest size has to fit into an empty queue, together with what it takes
        // besides.
        if calls >= self.calls_max || (calls > 0 && bytes + job.bytes > self.bytes_max) {
            return Err(PostgresError::QueueFull { calls, bytes });
        }
        waiting.bytes += job.bytes;
        waiting.jobs.push_back(job);
        drop(waiting);
        self.changed.notify_one();
        Ok(())
    }

    /// Waits until something is there; `false` once nothing comes any more.
    pub(super) async fn is_filled(&self) -> bool {
        loop {
            {
                let waiting = self.waiting.lock();
                if !waiting.jobs.is_empty() {
                    return true;
                }
                if waiting.is_closed {
                    return false;
                }
            }
            self.changed.notified().await;
        }
    }

    /// Takes what goes into one transaction, or reads that follow on each other;
    /// `calls_max` of them at most.
    pub(super) fn take(&self, calls_max: usize) -> Vec<Job> {
        let mut waiting = self.waiting.lock();
        let are_read = waiting.jobs.front().is_some_and(Job::is_read);
        let (mut batch, mut bytes, mut reads) = (Vec::new(), 0, 0);
        while let Some(job) = waiting.jobs.front() {
            bytes += job.bytes;
            reads += usize::from(!job.is_commit());
            let has_room = bytes <= BATCH_BYTES_MAX
                && reads <= BATCH_READS_MAX
                && batch.len() < calls_max.min(BATCH_CALLS_MAX);
            if job.is_read() != are_read || !(has_room || batch.is_empty()) {
                break;
            }
            batch.extend(waiting.jobs.pop_front());
        }
        waiting.bytes -= batch.iter().map(|job| job.bytes).sum::<usize>();
        batch
    }

    /// Gives back what was taken and not written.
    pub(super) fn put_back(&self, batch: Vec<Job>) {
        let mut waiting = self.waiting.lock();
        waiting.bytes += batch.iter().map(|job| job.bytes).sum::<usize>();
        batch.into_iter().rev().for_each(|job| waiting.jobs.push_front(job));
    }

    /// When the first one has waited for that long; `None` if nothing waits.
    pub(super) fn first_has_waited(&self, long: Duration) -> Option<Instant> {
        self.waiting.lock().jobs.front().map(|job| job.since + long)
    }

    /// Refuses those that have waited for so long.
    pub(super) fn refuse_after(&self, long: Duration, cause: &Arc<PostgresError>) {
        let now = Instant::now();
        let mut waiting = self.waiting.lock();
        while waiting.jobs.front().is_some_and(|job| job.since + long <= now) {
            let Some(job) = waiting.jobs.pop_front() else { break };
            waiting.bytes -= job.bytes;
            let waited = now - job.since;
            job.refuse(unavailable(PostgresError::Unreachable { waited, cause: cause.clone() }));
        }
    }

    /// Takes no more; what waits is still written.
    pub(super) fn close(&self) {
        self.waiting.lock().is_closed = true;
        self.changed.notify_one();
    }

    /// Takes no more, and lets go of what waits.
    pub(super) fn abandon(&self) {
        self.close();
        let waiting = std::mem::take(&mut self.waiting.lock().jobs);
        waiting.into_iter().for_each(|job| job.refuse(unavailable(PostgresError::Ended)));
    }
}
