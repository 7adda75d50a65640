//! A few threads with a reading connection each; reads never wait for the writer.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};
use tokio::sync::{Semaphore, oneshot};

use crate::storage::error::ReadError;
use crate::storage::postgres::address::DatabaseAddress;
use crate::storage::postgres::claim;
use crate::storage::sql::{Connection, SqlError};

/// Reads waiting at once; more wait outside.
const JOBS_MAX: usize = 1_024;

type Job = Box<dyn FnOnce(&mut Reader) + Send>;

/// The connection of one thread.
pub(crate) enum Reader {
    Sqlite(Connection),
    /// Connects again when the session is lost.
    Postgres(DatabaseAddress, Option<Connection>),
}

impl Reader {
    /// Statements that its connection was asked.
    fn asked(&self) -> u64 {
        match self {
            Self::Sqlite(connection) | Self::Postgres(_, Some(connection)) => connection.asked(),
            Self::Postgres(_, None) => 0,
        }
    }

    /// A connection that works.
    fn connection(&mut self) -> Result<&Connection, SqlError> {
        match self {
            Self::Sqlite(connection) => Ok(connection),
            Self::Postgres(address, connection) => {
                if connection.take_if(|connection| !connection.is_there()).is_some() {
                    tracing::debug!("a reading session was lost; connecting again");
                }
                match connection {
                    Some(connection) => Ok(connection),
                    lost => Ok(lost.insert(claim::connect(address, "folkmoot reader")?)),
                }
            }
        }
    }
}

/// The queue in front of the reading threads.
pub(crate) struct Readers {
    state: Mutex<State>,
    work: Condvar,
    permits: Semaphore,
    /// Statements that reads have asked the database.
    asked: Arc<AtomicU64>,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    closed: bool,
}

impl Readers {
    pub(crate) fn new() -> Self {
        let permits = Semaphore::new(JOBS_MAX);
        Self { state: Mutex::default(), work: Condvar::new(), permits, asked: Arc::default() }
    }

    /// Runs `read` on a reading thread, inside one snapshot of the database.
    ///
    /// # Cancel safety
    /// Dropping the future gives up the answer; the read may still run.
    pub(crate) async fn run<R: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<R, ReadError> + Send + 'static,
    ) -> Result<R, ReadError> {
        self.serve_next(move |reader| in_snapshot(reader, read)).await
    }

    /// Runs a read of one statement, which sees one state of the database by itself: a far one is
    /// asked once and not three times.
    ///
    /// # Cancel safety
    /// As for `run`.
    pub(crate) async fn run_one<R: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<R, ReadError> + Send + 'static,
    ) -> Result<R, ReadError> {
        self.serve_next(move |reader| read(reader.connection()?)).await
    }

    async fn serve_next<R: Send + 'static>(
        &self,
        read: impl FnOnce(&mut Reader) -> Result<R, ReadError> + Send + 'static,
    ) -> Result<R, ReadError> {
        let permit = self.permits.acquire().await.map_err(|_| ReadError::ShuttingDown)?;
        let (tx, rx) = oneshot::channel();
        let asked = self.asked.clone();
        let job: Job = Box::new(move |reader| {
            // Nobody waits any more: a disconnected client's read costs nothing.
            if !tx.is_closed() {
                let before = reader.asked();
                let answer = read(reader);
                // A connection that was made anew began at nothing.
                asked.fetch_add(reader.asked().saturating_sub(before), Ordering::Relaxed);
                let _ = tx.send(answer);
            }
        });
        {
            let mut state = self.state.lock();
            if state.closed {
                return Err(ReadError::ShuttingDown);
            }
            state.jobs.push_back(job);
        }
        self.work.notify_one();
        // Without an answer the job has panicked: what waits at the end is still served.
        let answer = rx.await.unwrap_or(Err(ReadError::Panicked));
        drop(permit);
        answer
    }

    /// Serves reads until closed.
    pub(crate) fn serve(self: &Arc<Self>, mut reader: Reader) {
        loop {
            let job = {
                let mut state = self.state.lock();
                loop {
                    if let Some(job) = state.jobs.pop_front() {
                        break job;
                    }
                    if state.closed {
                        return;
                    }
                    self.work.wait(&mut state);
                }
            };
            // A reader that dies of one job would take the answers of all others with it.
            if catch_unwind(AssertUnwindSafe(|| job(&mut reader))).is_err() {
                tracing::error!("a read panicked; its caller is told that it failed");
            }
        }
    }

    /// How many statements reads have asked the database.
    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// Refuses new reads; what waits is still served.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.permits.close();
        self.work.notify_all();
    }
}

/// Several statements must see the same state, or a snapshot of a room could contradict itself.
fn in_snapshot<R>(
    reader: &mut Reader,
    read: impl FnOnce(&Connection) -> Result<R, ReadError>,
) -> Result<R, ReadError> {
    let transaction = reader.connection()?.begin_reading()?;
    let result = read(&transaction)?;
    transaction.commit()?;
    Ok(result)
}
