//! The log that closes the window between a change and its row in the store.
//!
//! Changes are appended to a buffer; one thread writes what has gathered, syncs once, and says how
//! far the disk has them: at once while somebody waits for that, else about a hundred times a
//! second. A new segment begins with each round of storing rows, and segments go once everything in
//! them is stored. Versions tell a replay what a stored row contains already, so that a change found
//! twice counts once.
//!
//! ```text
//! segment  records, one after the other
//! record   user u64 | room u64 | version u64 | message u64 | mentions u32 | kind u32 | crc32c u32
//! ```
//! All little endian. A torn tail is what was never acknowledged; a record amid others that is not
//! whole was spoilt on the disk, and is left out.

mod segments;
mod writer;

use std::io;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

pub(crate) use segments::Record;

use self::segments::Segments;
use self::writer::Shared;

/// The log failed, once and for all: the file system refused a write or a sync.
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

/// How far the log is on the disk, in bytes since it was opened.
type Synced = Result<u64, LogError>;

pub(crate) struct Log {
    shared: Arc<Shared>,
    synced: watch::Receiver<Synced>,
    segments: Mutex<Segments>,
    writer: Option<std::thread::JoinHandle<()>>,
}

impl Log {
    /// Opens the directory, or makes it, and returns what earlier segments hold, in their order.
    pub(crate) fn open(directory: &Path) -> Result<(Self, Vec<Record>), LogError> {
        let (mut segments, records) = Segments::open(directory)?;
        let file = segments.begin()?;
        let shared = Arc::new(Shared::default());
        let (tell, synced) = watch::channel(Ok(0));
        let writing = shared.clone();
        let writer = std::thread::Builder::new()
            .name("read-states-log".into())
            .spawn(move || {
                // Acknowledgements wait for it, and it mostly waits for the disk.
                if let Err(error) = folkmoot_threads::run_soon() {
                    tracing::debug!(%error, "the log's thread waits for its turn like any other");
                }
                writing.write(file, &tell);
            })
            .map_err(LogError::new("start its thread"))?;
        let log = Self { shared, synced, segments: Mutex::new(segments), writer: Some(writer) };
        Ok((log, records))
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

    /// Begins a new segment; the number returned names all before it for `remove`.
    pub(crate) fn rotate(&self) -> Result<u64, LogError> {
        let mut segments = self.segments.lock();
        let file = segments.begin()?;
        self.shared.rotate(file);
        Ok(segments.last())
    }

    /// Removes the segments before a number: all of their changes are in the store.
    pub(crate) fn remove(&self, before: u64) -> Result<(), LogError> {
        self.segments.lock().remove(before)
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
