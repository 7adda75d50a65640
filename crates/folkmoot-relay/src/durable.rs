//! Histories on disk: a log that a thread of its own writes. What has gathered while it was writing
//! is one frame and one sync, with a payload once for all the channels that it went into. Channels
//! themselves are in memory, with their owners; the log says what they were when a relay starts.
//!
//! A publication of a durable channel is on disk before anybody hears of it, so an offset that
//! somebody has seen means the same after the process was killed. With it are its idempotency key
//! and the row of the backend that it comes from, so neither is published again.

mod compaction;
mod former;
mod ledger;
mod log;
mod replay;
mod rows;
mod writer;

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use tokio::sync::oneshot;

use crate::channels::Post;
use crate::epoch::Epoch;
use crate::payload::Payload;
use crate::stream::Keep;
use crate::version::Version;
use compaction::{Calls, Compaction};
pub(crate) use compaction::{Portion, Turn};
pub(crate) use ledger::Ledger;
use log::Log;
use replay::Replay;
pub(crate) use rows::{KnownRows, RowKey, fingerprint};
use writer::{Job, Writer};

/// Why histories cannot be kept on disk.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The directory cannot be made.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// It is in use by another process, damaged, or of a later version.
    #[error("{path}: {reason}", path = path.display())]
    Log {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// The histories cannot be read; they may be when it is tried again.
#[derive(Debug, thiserror::Error)]
#[error("the histories on disk cannot be read")]
pub(crate) struct Unreadable;

/// A publication with its place in a channel.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) channel: Arc<str>,
    pub(crate) epoch: Epoch,
    pub(crate) offset: u64,
    pub(crate) post: Post,
    pub(crate) keep: Keep,
    /// When it was published, and until when its idempotency key is known; milliseconds since 1970.
    pub(crate) at: u64,
    pub(crate) key_until: u64,
}

/// A channel as it is found on disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Restored {
    pub(crate) epoch: Epoch,
    pub(crate) top: u64,
    /// Of the newest publication; milliseconds since 1970.
    pub(crate) at: u64,
    /// The newest ones without a gap, the oldest first.
    pub(crate) history: VecDeque<Arc<Payload>>,
    /// Idempotency keys with their offsets, and until when they are known; the first to go first.
    pub(crate) keys: VecDeque<(Arc<str>, u64, u64)>,
    /// Of the newest publication that had one.
    pub(crate) version: Option<Arc<Version>>,
}

/// All that is found on disk.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) channels: HashMap<Arc<str>, Restored>,
    pub(crate) rows: Vec<(RowKey, Arc<str>)>,
    /// How far each log of changes was read.
    pub(crate) progress: HashMap<Arc<str>, u64>,
}

/// The way to the thread that writes. What is sent is written in the order of the calls.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    jobs: Sender<Job>,
    calls: Calls,
}

impl Disk {
    /// Opens the log in a directory, which is made if it is missing, and reads all of it.
    pub(crate) fn open(directory: &Path) -> Result<(Self, Found), DiskError> {
        let io = |source| DiskError::Io { path: directory.to_owned(), source };
        let wrong = |reason| DiskError::Log { path: directory.to_owned(), reason };
        std::fs::create_dir_all(directory).map_err(io)?;
        let mut replay = Replay::of(&|_| true);
        let log = Log::open(directory, &mut |body| replay.frame(body));
        let log = log.map_err(|error| wrong(error.to_string()))?;
        let before = former::read(directory).map_err(wrong)?;
        if let Some(before) = &before {
            // It goes once it is brought over, so it is not older than the log.
            replay.overlay(before);
        }
        let (calls, found) = (Calls::default(), replay.found());
        let mut writer = Writer::new(log, Compaction::new(calls.clone()), &found);
        if let Some(before) = &before {
            writer.bring_over(before).and_then(|()| former::remove(directory)).map_err(io)?;
        }
        let (jobs, queue) = channel();
        std::thread::Builder::new()
            .name("relay-histories".to_owned())
            .spawn(move || writer.run(&queue))
            .map_err(io)?;
        Ok((Self { jobs, calls }, found))
    }

    /// All owners of channels have what was found; so many of them hand it over when they are asked.
    pub(crate) fn restored(&self, owners: usize) {
        self.send(Job::Restored(owners));
    }

    /// How often owners were asked for all that they keep.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.count()
    }

    /// Waits until an owner that was asked may hand a portion over.
    pub(crate) fn turn(&self) -> impl Future<Output = Turn> + use<> {
        self.calls.turn()
    }

    /// Answers such a call, or a part of it.
    pub(crate) fn hand_over(&self, portion: Portion, turn: Turn) {
        self.send(Job::HandOver(portion, turn));
    }

    /// Writes all of them or none; true once they would survive the end of the machine.
    pub(crate) fn keep(&self, records: Arc<Vec<Record>>) -> impl Future<Output = bool> + use<> {
        let (reply, kept) = oneshot::channel();
        self.send(Job::Keep(records, reply));
        async { kept.await.unwrap_or(false) }
    }

    /// Reads such channels and their rows as they are once all before is written.
    pub(crate) async fn read(
        &self,
        is_meant: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Result<Found, Unreadable> {
        let (reply, found) = oneshot::channel();
        self.send(Job::Read(Box::new(is_meant), reply));
        found.await.ok().flatten().ok_or(Unreadable)
    }

    /// The publications of a channel up to an offset have expired; its numbers stay.
    pub(crate) fn clear(&self, channel: Arc<str>, up_to: u64) {
        self.send(Job::Clear(channel, up_to, None));
    }

    /// Removes the publications of a channel up to an offset; true once they would not come back
    /// after the end of the machine.
    pub(crate) fn remove(
        &self,
        channel: Arc<str>,
        up_to: u64,
    ) -> impl Future<Output = bool> + use<> {
        let (reply, removed) = oneshot::channel();
        self.send(Job::Clear(channel, up_to, Some(reply)));
        async { removed.await.unwrap_or(false) }
    }

    /// Removes all of a channel, if it is still in this epoch.
    pub(crate) fn forget(&self, channel: Arc<str>, epoch: Epoch) {
        self.send(Job::Forget(channel, epoch));
    }

    /// These rows do not come again.
    pub(crate) fn confirm(&self, rows: Vec<RowKey>) {
        self.send(Job::Confirm(rows));
    }

    /// A log of changes was read up to here, and its rows do not come again.
    pub(crate) fn advance(&self, source: Arc<str>, to: u64) {
        self.send(Job::Advance(source, to));
    }

    /// Writes what was sent before, and lets go of the directory.
    pub(crate) async fn close(&self) {
        let (reply, closed) = oneshot::channel();
        self.send(Job::Close(reply));
        let _ = closed.await;
    }

    fn send(&self, job: Job) {
        // A thread that has ended drops the job, and with it the reply.
        let _ = self.jobs.send(job);
    }
}

#[cfg(test)]
mod tests;
