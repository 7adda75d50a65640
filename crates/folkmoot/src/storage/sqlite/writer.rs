//! The thread that owns the writing connection: control transactions first, then the log's tail.
//!
//! SQLite has one writer, so both roads meet here. A control transaction waits for one batch of the mover at
//! most; an append never waits for this thread at all.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{Semaphore, oneshot};

use super::mover::{MoveError, Mover};
use crate::storage::error::ControlError;
use crate::storage::progress::Progress;

/// How long a record may wait for others before it is moved. Larger batches cost SQLite less per
/// record; a barrier does not wait for this.
const GATHER_MAX: Duration = Duration::from_millis(250);
/// A lag of this many bytes is moved without waiting: a full batch.
const GATHER_BYTES: u64 = super::mover::BATCH_BYTES as u64;
/// How long to leave a full disk alone before trying again.
const STALL_PAUSE: Duration = Duration::from_millis(500);
/// Control transactions waiting at once; more wait outside.
const JOBS_MAX: usize = 1_024;

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

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

    /// Runs `work` in a transaction of its own, and answers once it is committed and synced.
    ///
    /// # Cancel safety
    /// Dropping the future after its first poll does not stop the transaction.
    pub(crate) async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<R, ControlError> + Send + 'static,
    ) -> Result<R, ControlError> {
        let permit = self.permits.acquire().await.map_err(|_| ControlError::ShuttingDown)?;
        let (tx, rx) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            // The caller may have given up waiting; the change stands.
            let _ = tx.send(transact(connection, work));
        });
        {
            let mut jobs = self.jobs.lock();
            if jobs.closed {
                return Err(ControlError::ShuttingDown);
            }
            jobs.waiting.push_back(job);
        }
        self.progress.nudge();
        let answer = rx.await.unwrap_or(Err(ControlError::ShuttingDown));
        drop(permit);
        answer
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

fn transact<R>(
    connection: &mut Connection,
    work: impl FnOnce(&Connection) -> Result<R, ControlError>,
) -> Result<R, ControlError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // An early return drops the transaction, which rolls it back.
    let result = work(&transaction)?;
    transaction.commit()?;
    Ok(result)
}

/// Runs until the log has ended, all of it is moved and no transaction waits.
pub(crate) fn run(
    mut connection: Connection,
    mut mover: Mover,
    control: &Control,
    progress: &Progress,
    on_moved: &dyn Fn(),
) {
    let mut behind_since: Option<Instant> = None;
    let mut stalled_until: Option<Instant> = None;
    loop {
        let (job, log_ended, closed) = {
            let mut jobs = control.jobs.lock();
            (jobs.waiting.pop_front(), jobs.log_ended, jobs.closed)
        };
        let has_job = job.is_some();
        if let Some(job) = job {
            job(&mut connection);
        }
        let lag = progress.lag();
        if !lag.is_behind {
            behind_since = None;
            if has_job {
                continue;
            }
            if log_ended && closed {
                return;
            }
            progress.wait(None);
            continue;
        }
        let now = Instant::now();
        let due = *behind_since.get_or_insert(now) + GATHER_MAX;
        let is_due = lag.is_awaited || log_ended || lag.bytes >= GATHER_BYTES || now >= due;
        let wake = stalled_until.unwrap_or(if is_due { now } else { due });
        if wake > now {
            if stalled_until.is_some() && log_ended {
                return; // What is left is in the log and moved on the next start.
            }
            if !has_job {
                progress.wait(Some(wake - now));
            }
            continue;
        }
        behind_since = None;
        stalled_until = move_batch(&mut connection, &mut mover, progress);
        on_moved();
    }
}

fn move_batch(
    connection: &mut Connection,
    mover: &mut Mover,
    progress: &Progress,
) -> Option<Instant> {
    match mover.step(connection, progress.lag().durable) {
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
        MoveError::Sqlite(_) => STALL_PAUSE,
        // The log does not mend itself; do not fill the disk with complaints.
        MoveError::Log(_) => STALL_PAUSE * 20,
    }
}
