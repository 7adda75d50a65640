//! The thread that owns the writing connection: control transactions first, then the log's tail.
//!
//! SQLite has one writer, so both roads meet here. A control transaction waits for one batch of the
//! mover at most; an append never waits for this thread at all.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};

use super::mover::{MoveError, Mover};
use super::together::{self, Job};
use crate::storage::error::ControlError;
use crate::storage::progress::{Lag, Progress};
use crate::storage::sql::Connection;

/// How long a record waits for others before it is moved, while few come: what is said is found by
/// the search soon. A barrier does not wait for this.
const GATHER_FEW: Duration = Duration::from_millis(250);
/// How long while more come. Records of one room share pages, so larger batches cost SQLite less.
const GATHER_MANY: Duration = Duration::from_secs(1);
/// A lag of this many bytes is many records: about 300 messages.
const MANY_BYTES: u64 = 64 << 10;
/// A lag of this many bytes is moved without waiting: a full batch.
const GATHER_BYTES: u64 = super::mover::BATCH_BYTES as u64;
/// How long to leave a full disk alone before trying again.
const STALL_PAUSE: Duration = Duration::from_millis(500);
/// Control transactions waiting at once; more wait outside.
const JOBS_MAX: usize = 1_024;

/// The road of control transactions into the thread.
#[derive(Debug)]
pub(crate) struct Control {
    jobs: Mutex<Jobs>,
    permits: Semaphore,
    progress: Arc<Progress>,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    log_ended: bool,
    closed: bool,
}

impl std::fmt::Debug for Jobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Jobs").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}

impl Control {
    pub(crate) fn new(progress: Arc<Progress>) -> Self {
        Self { jobs: Mutex::default(), permits: Semaphore::new(JOBS_MAX), progress }
    }

    /// Runs `work` whole or not at all, and answers once it is committed and synced, with others that
    /// waited at the same time.
    ///
    /// # Cancel safety
    /// Dropping the future after its first poll does not stop the transaction.
    pub(crate) async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<R, ControlError> + Send + 'static,
    ) -> Result<R, ControlError> {
        let permit = self.permits.acquire().await.map_err(|_| ControlError::ShuttingDown)?;
        let (tx, rx) = oneshot::channel();
        let job = together::job(work, tx);
        {
            let mut jobs = self.jobs.lock();
            if jobs.closed {
                return Err(ControlError::ShuttingDown);
            }
            jobs.waiting.push_back(job);
        }
        self.progress.nudge();
        // Without an answer the job has panicked: what waits at the end is still done.
        let answer = rx.await.unwrap_or(Err(ControlError::Panicked));
        drop(permit);
        answer
    }

    /// What waits, as far as it fits into one commit; and whether nothing comes after it.
    pub(crate) fn take(&self) -> (VecDeque<Job>, bool) {
        let mut jobs = self.jobs.lock();
        let len = jobs.waiting.len().min(together::JOBS_AT_ONCE);
        let batch = jobs.waiting.drain(..len).collect();
        (batch, jobs.log_ended && jobs.closed)
    }

    /// For a thread that does nothing else: commits what waits until nothing comes any more.
    /// `commit` takes at least the first of the jobs away, or is given them again.
    pub(crate) fn serve(&self, mut commit: impl FnMut(&mut VecDeque<Job>)) {
        loop {
            let (mut jobs, is_ending) = self.take();
            if jobs.is_empty() {
                if is_ending {
                    break;
                }
                self.progress.wait(None);
            }
            while !jobs.is_empty() {
                commit(&mut jobs);
            }
        }
    }

    /// Refuses new transactions; what waits is still done.
    pub(crate) fn close(&self) {
        self.jobs.lock().closed = true;
        self.permits.close();
        self.progress.nudge();
    }

    /// Says that no record comes any more, so the thread may end once it has moved all.
    pub(crate) fn log_ended(&self) {
        self.jobs.lock().log_ended = true;
        self.progress.nudge();
    }
}

/// Runs until the log has ended, all of it is moved and no transaction waits.
pub(crate) fn run(
    connection: &Connection,
    mut mover: Mover,
    control: &Control,
    progress: &Progress,
    on_moved: &dyn Fn(),
) {
    let mut pace = Pace::default();
    loop {
        let (mut batch, is_ending) = control.take();
        let has_job = !batch.is_empty();
        if !has_job && is_ending {
            break;
        }
        while !batch.is_empty() {
            together::commit(connection, &mut batch);
        }
        match pace.next(&progress.lag()) {
            Turn::Move => {
                pace.moved(move_batch(connection, &mut mover, progress));
                on_moved();
            }
            Turn::Wait(timeout) if !has_job => progress.wait(timeout),
            Turn::Wait(_) => {}
        }
    }
    let durable = progress.lag().durable;
    match mover.catch_up(connection, durable) {
        Ok(()) => progress.applied(durable),
        // Nothing is lost: it is in the log, and moved on the next start.
        Err(error) => tracing::warn!(%error, "the log's tail was not moved into the database"),
    }
}

/// Decides when a batch is worth moving.
#[derive(Default)]
struct Pace {
    behind_since: Option<Instant>,
    stalled_until: Option<Instant>,
}

enum Turn {
    Move,
    Wait(Option<Duration>),
}

impl Pace {
    fn next(&mut self, lag: &Lag) -> Turn {
        if !lag.is_behind {
            *self = Self::default();
            return Turn::Wait(None);
        }
        let now = Instant::now();
        let gather = if lag.bytes < MANY_BYTES { GATHER_FEW } else { GATHER_MANY };
        let gathered = *self.behind_since.get_or_insert(now) + gather;
        let is_urgent = lag.is_awaited || lag.bytes >= GATHER_BYTES;
        let due = self.stalled_until.unwrap_or(if is_urgent { now } else { gathered });
        match due.checked_duration_since(now) {
            Some(left) if !left.is_zero() => Turn::Wait(Some(left)),
            _ => Turn::Move,
        }
    }

    fn moved(&mut self, stalled_until: Option<Instant>) {
        *self = Self { behind_since: None, stalled_until };
    }
}

fn move_batch(connection: &Connection, mover: &mut Mover, progress: &Progress) -> Option<Instant> {
    let durable = progress.lag().durable;
    let stepped = catch_unwind(AssertUnwindSafe(|| mover.step(connection, durable)));
    let stepped = stepped.unwrap_or_else(|_| {
        // Its transaction was rolled back; it begins again where the database ends.
        mover.begin_again();
        Err(MoveError::Panicked)
    });
    match stepped {
        Ok(applied) => {
            progress.applied(applied);
            None
        }
        Err(error) => {
            let reason = error.to_string();
            if progress.stalled().as_ref() != Some(&reason) {
                tracing::error!(%error, "the log cannot be moved into the database; trying again");
            }
            progress.stall(&reason);
            Some(Instant::now() + pause_after(&error))
        }
    }
}

fn pause_after(error: &MoveError) -> Duration {
    match error {
        MoveError::Database(_) => STALL_PAUSE,
        MoveError::Panicked => STALL_PAUSE * 20,
        // The log does not mend itself; do not fill the disk with complaints.
        MoveError::Log(_) => STALL_PAUSE * 20,
    }
}
