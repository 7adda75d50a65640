//! The log that closes the window between a change and its row in the store.
//!
//! Changes are appended to a buffer; one thread writes what has gathered, syncs once, and says how
//! far the disk has them: at once while somebody waits for that, else about a hundred times a
//! second. A new segment begins with each round of storing rows, and segments go once everything in
//! them is stored. Versions tell a replay what a stored row contains already, so that a change found
//! twice counts once.
//!
//! When the disk refuses a write, what was appended and not synced is thrown away, and refused until
//! a round has begun another segment and has stored all that was changed before it.
//!
//! ```text
//! segment  records, one after the other
//! record   user u64 | room u64 | version u64 | message u64 | mentions u32 | kind u32 | crc32c u32
//! ```
//! All little endian. A torn tail is what was never acknowledged; a record amid others that is not
//! whole was spoilt on the disk, and is left out.

mod segments;
mod writer;

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

pub(crate) use segments::{Earlier, Record};

use self::segments::Segments;
use self::writer::Shared;

/// The log failed: the file system refused a write or a sync.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the log of read states failed to {doing}: {why}")]
pub struct LogError {
    /// What was tried.
    pub doing: &'static str,
    /// The system's words.
    pub why: String,
}

impl LogError {
    fn new(doing: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self { doing, why: error.to_string() }
    }
}

/// A log of so many bytes, six million changes, is said to be one that grows.
const MUCH_BYTES: u64 = 256 << 20;

/// How far the log is on the disk, in bytes since it was opened.
type Synced = Result<u64, LogError>;

pub(crate) struct Log {
    shared: Arc<Shared>,
    synced: watch::Receiver<Synced>,
    segments: Mutex<Segments>,
    writer: Option<std::thread::JoinHandle<()>>,
}

impl Log {
    /// Opens the directory, or makes it, and returns what earlier segments hold.
    pub(crate) fn open(directory: &Path) -> Result<(Self, Earlier), LogError> {
        let (mut segments, earlier) = Segments::open(directory)?;
        let file = segments.begin()?;
        Ok((Self::into(segments, file)?, earlier))
    }

    fn into(segments: Segments, file: File) -> Result<Self, LogError> {
        let shared = Arc::new(Shared::new());
        let (writing, synced) = (shared.clone(), shared.synced());
        let writer = std::thread::Builder::new()
            .name("read-states-log".into())
            .spawn(move || {
                // Acknowledgements wait for it, and it mostly waits for the disk.
                if let Err(error) = folkmoot_threads::run_soon() {
                    tracing::debug!(%error, "the log's thread waits for its turn like any other");
                }
                writing.write(file);
            })
            .map_err(LogError::new("start its thread"))?;
        Ok(Self { shared, synced, segments: Mutex::new(segments), writer: Some(writer) })
    }

    /// Appends a record; returns a position for `durable`.
    #[inline]
    pub(crate) fn append(&self, record: &Record) -> u64 {
        self.shared.append(&record.encode())
    }

    /// A position for `durable`: behind all that was appended.
    pub(crate) fn position(&self) -> u64 {
        self.shared.appended()
    }

    /// Waits until the disk has everything before a position.
    pub(crate) async fn durable(&self, position: u64) -> Result<(), LogError> {
        self.shared.want(position);
        let mut synced = self.synced.clone();
        let reached = synced
            .wait_for(|synced| synced.as_ref().map_or(true, |reached| *reached >= position))
            .await;
        match reached {
            Ok(reached) => reached.clone().map(drop),
            Err(_) => Err(LogError { doing: "go on", why: "its thread has ended".to_owned() }),
        }
    }

    /// Begins a new segment; the number returned names all before it for `stored`. A log that has
    /// failed is written again from here on, if the disk takes something now.
    pub(crate) fn rotate(&self) -> Result<u64, LogError> {
        let mut segments = self.segments.lock();
        let file = match self.shared.is_broken() {
            true => segments.begin_on_trial()?,
            false => segments.begin()?,
        };
        self.shared.rotate(file);
        Ok(segments.last())
    }

    /// All that was appended before a rotation is in the store: removes the segments before it. A
    /// log that had failed before it promises again what it has.
    pub(crate) fn stored(&self, before: u64) -> Result<(), LogError> {
        self.shared.mended();
        self.segments.lock().remove(before)
    }

    /// Bytes on the disk.
    pub(crate) fn bytes(&self) -> u64 {
        self.segments.lock().bytes()
    }

    /// A round has failed, so that what came before it stays.
    pub(crate) fn says_what_it_keeps(&self, why: &dyn std::fmt::Display) {
        let bytes = self.bytes();
        if bytes >= MUCH_BYTES {
            tracing::error!(bytes, %why, "the log of read states grows until the store takes all rows");
        }
    }

    /// Whether what is appended becomes durable: else it waits for a round.
    pub(crate) fn is_whole(&self) -> bool {
        self.shared.is_whole()
    }
}

impl Drop for Log {
    /// Writes and syncs what was appended.
    fn drop(&mut self) {
        self.shared.close();
        if let Some(writer) = self.writer.take() {
            _ = writer.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;

    fn record(version: u64) -> Record {
        Record { user: 1, room: 7, version, change: Change::Mention { message: version } }
    }

    /// A log whose first segment is on a disk that is full.
    fn on_a_full_disk(directory: &Path) -> Log {
        let (segments, _) = Segments::open(directory).expect("it opens");
        let full = File::options().append(true).open("/dev/full").expect("the system has it");
        Log::into(segments, full).expect("it begins")
    }

    #[tokio::test]
    async fn a_log_that_has_failed_goes_on_in_another_segment_and_promises_once_all_is_stored() {
        let directory = tempfile::tempdir().expect("a directory");
        let log = on_a_full_disk(directory.path());
        let lost = log.append(&record(1));
        log.durable(lost).await.expect_err("the disk is full");
        let segment = log.rotate().expect("the disk has room");
        let kept = log.append(&record(2));
        log.durable(kept).await.expect_err("what was thrown away is not stored yet");
        log.stored(segment).expect("it is told");
        for position in [lost, kept, log.append(&record(3))] {
            log.durable(position).await.expect("all of it is on the disk or in the store");
        }
        assert!(log.is_whole());
        drop(log);
        let (_log, mut earlier) = Log::open(directory.path()).expect("it opens");
        assert_eq!(earlier.version, 3);
        let records = earlier.next(usize::MAX).expect("they are read");
        let versions: Vec<_> = records.iter().map(|record| record.version).collect();
        assert_eq!(versions.into_iter().filter(|version| *version > 0).collect::<Vec<_>>(), [2, 3]);
    }

    #[tokio::test]
    async fn what_a_failed_log_was_told_is_durable_once_it_is_stored_though_nothing_follows_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let log = on_a_full_disk(directory.path());
        let lost = log.append(&record(1));
        log.durable(lost).await.expect_err("the disk is full");
        log.stored(log.rotate().expect("the disk has room")).expect("it is told");
        log.durable(lost).await.expect("the store has it");
    }
}
