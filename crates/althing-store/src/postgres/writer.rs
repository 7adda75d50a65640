//! The task of one connection: it takes what has gathered, has it written, answers, and connects
//! again when the connection broke.
//!
//! What was certainly not written goes back to the front of the queue and is tried again. A commit
//! of which nobody knows is answered so, and never tried again.

use std::hash::{BuildHasher, RandomState};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use althing_postgres::Server;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_postgres::error::SqlState;

use super::queue::{Job, Queue, Task};
use super::rows::Outcome;
use super::session::{Failure, Session};
use super::{PostgresError, PostgresOptions, unavailable, unknown};

/// Pause after the first failure; it doubles with each that follows.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
/// The longest pause: about so long after the server is back, so is the store.
const PAUSE_MAX: Duration = Duration::from_secs(2);

pub(super) struct Writer {
    queue: Arc<Queue>,
    server: Server,
    options: PostgresOptions,
    session: Option<Session>,
    /// Failures since something succeeded, and the last one of them.
    failures: u32,
    cause: Arc<PostgresError>,
    next_try: Instant,
    /// Jobs at the front of the queue that run alone, because the server refused a batch with one
    /// of them.
    suspects: usize,
}

impl Writer {
    pub(super) fn new(
        queue: Arc<Queue>,
        server: Server,
        options: PostgresOptions,
        session: Session,
    ) -> Self {
        Self {
            queue,
            server,
            options,
            session: Some(session),
            failures: 0,
            cause: Arc::new(PostgresError::Ended),
            next_try: Instant::now(),
            suspects: 0,
        }
    }

    /// Runs until the store was dropped and nothing waits any more.
    pub(super) async fn run(mut self) {
        while self.queue.is_filled().await {
            if self.session.as_ref().is_none_or(Session::is_closed) {
                self.session = None;
                self.reconnect().await;
            }
            let Some(session) = &self.session else { continue };
            let batch = self.queue.take(if self.suspects > 0 { 1 } else { usize::MAX });
            self.suspects = self.suspects.saturating_sub(1);
            match session.run(&batch, self.options.answer_within).await {
                Ok(outcomes) => {
                    self.failures = 0;
                    batch.into_iter().zip(outcomes).for_each(|(job, it)| answer(job, it));
                }
                Err(failure) => self.fail(batch, failure),
            }
        }
    }

    /// Tries once, after the pause that is due; refuses meanwhile what has waited for too long, and
    /// gives up when nothing waits.
    async fn reconnect(&mut self) {
        let (server, next_try) = (self.server.clone(), self.next_try);
        let attempt = async {
            sleep_until(next_try).await;
            Session::connect(&server).await
        };
        let mut attempt = pin!(attempt);
        let connected = loop {
            self.queue.refuse_after(self.options.wait_within, &self.cause);
            let Some(until) = self.queue.first_has_waited(self.options.wait_within) else { return };
            if let Ok(connected) = timeout_at(until, &mut attempt).await {
                break connected;
            }
        };
        match connected {
            Ok(session) => self.session = Some(session),
            Err(error) => self.count(Arc::new(error)),
        }
    }

    /// The connection goes with the failure: closing it is what ends the transaction for certain.
    fn fail(&mut self, batch: Vec<Job>, failure: Failure) {
        self.session = None;
        match failure {
            Failure::NotWritten(cause) => {
                self.count(cause.clone());
                if !is_of_the_batch(&cause) {
                    self.queue.put_back(batch);
                } else if batch.len() > 1 {
                    // One of them is to blame, and shall take nothing of the others along.
                    self.suspects += batch.len();
                    self.queue.put_back(batch);
                } else {
                    batch.into_iter().for_each(|job| job.refuse(unavailable(cause.clone())));
                }
            }
            Failure::Unknown(cause) => {
                self.count(cause.clone());
                let (commits, opens): (Vec<_>, Vec<_>) =
                    batch.into_iter().partition(Job::is_commit);
                commits.into_iter().for_each(|job| job.refuse(unknown(cause.clone())));
                // To open once more for the same epoch changes nothing, nor does it to say once
                // more that something was taken.
                self.queue.put_back(opens);
            }
        }
    }

    fn count(&mut self, cause: Arc<PostgresError>) {
        tracing::warn!(%cause, failures = self.failures, "PostgreSQL cannot be used");
        let pause = (PAUSE_FIRST * 2_u32.pow(self.failures.min(10))).min(PAUSE_MAX);
        // Half of it by chance, so that connections do not come back all at once.
        let chance = RandomState::new().hash_one(self.failures) as u32;
        self.next_try =
            Instant::now() + pause.mul_f64(0.5 + f64::from(chance) / f64::from(u32::MAX) / 2.0);
        self.failures += 1;
        self.cause = cause;
    }
}

impl Drop for Writer {
    /// The runtime may end before the store does.
    fn drop(&mut self) {
        self.queue.abandon();
    }
}

/// Whether the server refused what was asked of it, as opposed to not working.
fn is_of_the_batch(cause: &PostgresError) -> bool {
    let PostgresError::Server(error) = cause else { return false };
    let Some(code) = error.code() else { return false };
    // Classes: connection, state of the transaction (read-only), rollback, tables or rights that
    // are missing, resources, state of an object (a lock), an operator's intervention, the system.
    let passes = ["08", "25", "40", "42", "53", "55", "57", "58"];
    !passes.iter().any(|class| code.code().starts_with(class)) || *code == SqlState::QUERY_CANCELED
}

fn answer(job: Job, outcome: Outcome) {
    // Whoever asked may have gone.
    match (job.task, outcome) {
        (Task::Open(_, _, reply), Outcome::Open(outcome)) => _ = reply.send(outcome),
        (Task::Commit(_, reply), Outcome::Commit(outcome)) => _ = reply.send(outcome),
        (Task::Events(_, _, _, reply), Outcome::Events(events)) => _ = reply.send(Ok(events)),
        (Task::Due(_, _, _, reply), Outcome::Due(due)) => _ = reply.send(Ok(due)),
        (Task::LeftBefore(_, _, reply), Outcome::LeftBefore(left)) => _ = reply.send(Ok(left)),
        (Task::Settle(_, reply), Outcome::Settled) => _ = reply.send(Ok(())),
        _ => unreachable!("a job's outcome is of its own variant"),
    }
}
