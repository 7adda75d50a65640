//! The default store: one SQLite file in a directory, written by one thread.
//!
//! Whatever has gathered while the thread was writing is committed with one sync of the disk. A
//! turn that is refused takes nothing of the others along. One process at a time has the file; a
//! second one is refused when it opens it.

mod deliveries;
mod tables;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use althing::{ActorId, Epoch, Timestamp};
use tokio::sync::oneshot;

use self::writer::{Job, Reply, Writer};
use crate::delivery::{Delivery, Mark, Settled};
use crate::store::{Answer, Event, Kept, Store, Turn, check_names, in_order, with_key};

/// The file in the directory.
const FILE: &str = "actors.sqlite";

/// Keeps state in `actors.sqlite` in a directory of its own. Dropping it waits until what was
/// called before is written.
///
/// ```
/// use althing_store::Embedded;
///
/// let directory = tempfile::tempdir()?;
/// let store = Embedded::open(directory.path())?;
/// assert!(Embedded::open(directory.path()).is_err(), "one at a time");
/// drop(store);
/// Embedded::open(directory.path())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Embedded {
    /// `None` once it is being dropped.
    jobs: Option<Sender<Job>>,
    writer: Option<JoinHandle<()>>,
}

/// Why the store could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The directory or the file cannot be used.
    #[error("{path}: {error}", path = path.display())]
    Io {
        /// What was to be opened.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// Another process has it open.
    #[error("{path} is used by another process", path = path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// It was written by a later version of this library.
    #[error("{path} has format {found}, and {known} is the last that this version knows", path = path.display())]
    Later {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The last known one.
        known: u32,
    },
    /// It is no database of this library, or damaged.
    #[error("{path}: {error}", path = path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        error: rusqlite::Error,
    },
}

impl Embedded {
    /// Opens the store in a directory, which is made if it is not there.
    ///
    /// # Errors
    /// The directory cannot be used, another process uses it, or it was written by a later version.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, OpenError> {
        let directory = directory.as_ref();
        std::fs::create_dir_all(directory)
            .map_err(|error| OpenError::Io { path: directory.to_owned(), error })?;
        let connection = tables::open(&directory.join(FILE))?;
        let (jobs, queue) = channel();
        let writer = std::thread::Builder::new()
            .name("althing-store".to_owned())
            .spawn(move || Writer::new(connection).run(&queue))
            .map_err(|error| OpenError::Io { path: directory.to_owned(), error })?;
        Ok(Self { jobs: Some(jobs), writer: Some(writer) })
    }

    fn ask_about<T: Send + 'static>(
        &self,
        id: &ActorId,
        job: impl FnOnce(Reply<T>) -> Job,
    ) -> Answer<T> {
        if let Err(refused) = with_key(id) {
            return Box::pin(async { Err(refused) });
        }
        self.ask(job)
    }

    fn ask<T: Send + 'static>(&self, job: impl FnOnce(Reply<T>) -> Job) -> Answer<T> {
        let (reply, answer) = oneshot::channel();
        // A writer that is gone drops the job, and with it the reply.
        if let Some(jobs) = &self.jobs {
            _ = jobs.send(job(reply));
        }
        Box::pin(async { answer.await.unwrap_or_else(|_| Err(writer::gone())) })
    }
}

impl Store for Embedded {
    fn open(&self, id: &ActorId, epoch: Epoch) -> Answer<Kept> {
        let id_ = id.clone();
        self.ask_about(id, |reply| Job::Open(id_, epoch, reply))
    }

    fn commit(&self, turn: Turn) -> Answer<()> {
        if let Err(refused) = check_names(&turn) {
            return Box::pin(async { Err(refused) });
        }
        self.ask(|reply| Job::Commit(Box::new(turn), reply))
    }

    fn events(&self, id: &ActorId, after: u64, limit: usize) -> Answer<Vec<Event>> {
        let id_ = id.clone();
        self.ask_about(id, |reply| Job::Events(id_, after, limit, reply))
    }

    fn due(&self, until: Timestamp, after: Option<Mark>, limit: usize) -> Answer<Vec<Delivery>> {
        if let Some(Err(refused)) = after.as_ref().map(|mark| with_key(&mark.owner).map(drop)) {
            return Box::pin(async { Err(refused) });
        }
        self.ask(|reply| Job::Due(until, after, limit, reply))
    }

    fn left_before(&self, names: Vec<(ActorId, String)>, limit: usize) -> Answer<Vec<Delivery>> {
        let names = in_order(names);
        self.ask(|reply| Job::LeftBefore(names, limit, reply))
    }

    fn settle(&self, mut settled: Vec<Settled>) -> Answer<()> {
        // Nobody without a key has left anything.
        settled.retain(|settled| settled.mark.owner.key().is_some());
        self.ask(|reply| Job::Settle(settled, reply))
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has said so already.
            _ = writer.join();
        }
    }
}
