//! The store as its callers see it: open, append, read, close. It owns the threads and joins them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use folkmoot_protocol::Channel;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::address::StoreAddress;
use super::directory::{DataDirectory, Keeps};
use super::error::{AppendError, ControlError, OpenError, ReadError};
use super::ids::{Lsn, WriteEpoch};
use super::log::append_times::AppendTimes;
use super::log::disk::{Disk, RealDisk};
use super::log::queue::{Append, Queue, QueueLimits};
use super::log::segments::Segments;
use super::log::writer::{LogWriter, LogWriterStart, PROBE_PAUSE};
use super::lost::Lost;
use super::progress::{Progress, Stream};
use super::record::{Record, RoomEvent};
use super::sql::Connection;
use super::sqlite::mover::{Mover, applied_lsn};
use super::sqlite::place::{Restored, note_place};
use super::sqlite::readers::{Reader, Readers};
use super::sqlite::writer::Control;
use super::sqlite::{open_reader, open_writer, writer};
use super::{cassandra, postgres};

/// How to open a store; `StoreOptions::new` has the defaults that were measured.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The data directory; made if it is missing.
    pub directory: PathBuf,
    /// Bytes of a log segment; 64 MiB. A segment is preallocated.
    pub segment_bytes: u64,
    /// Bytes of records that may wait to be written; 16 MiB.
    pub queued_bytes_max: usize,
    /// Bytes of records that may wait to be moved into SQLite; 256 MiB, some seconds of replay.
    pub backlog_bytes_max: u64,
    /// Reading threads; 4.
    pub readers: usize,
    /// Whether the data was brought back from an earlier time; unknown.
    pub restored: Restored,
    /// Where the database or its log is, if not in the data directory; it is.
    pub database: Option<StoreAddress>,
    /// Which of several nodes this is that write to the database beside each other; the only one.
    pub node: Option<NodeName>,
}

/// One of several nodes of a server, by its name and that of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeName {
    /// Nodes of two clusters know nothing of each other, and do not share a database.
    pub cluster: String,
    /// No two nodes have one.
    pub node: String,
}

impl StoreOptions {
    /// The defaults, for a data directory.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            segment_bytes: 64 << 20,
            queued_bytes_max: 16 << 20,
            backlog_bytes_max: 256 << 20,
            readers: 4,
            restored: Restored::Unknown,
            database: None,
            node: None,
        }
    }
}

#[cfg(test)]
impl StoreOptions {
    /// With segments that take no time to make.
    pub(crate) fn small(directory: impl Into<PathBuf>) -> Self {
        Self { segment_bytes: 1 << 20, ..Self::new(directory) }
    }
}

/// What the store is doing, for the metrics page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreStats {
    /// The last record that is on disk.
    pub durable_lsn: Lsn,
    /// The last record that is in SQLite.
    pub applied_lsn: Lsn,
    /// Bytes of log between the two.
    pub lag_bytes: u64,
    /// Log segments on disk.
    pub segments: usize,
    /// Statements that reads have asked the database, each of them a journey where it is elsewhere.
    pub statements_read: u64,
}

/// The durable store of one data directory. Clones share it.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

pub(super) struct Inner {
    pub(super) queue: Arc<Queue>,
    pub(super) progress: Arc<Progress>,
    pub(super) control: Arc<Control>,
    pub(super) readers: Arc<Readers>,
    /// Of the log; PostgreSQL has its own.
    pub(super) segments: Option<Arc<Segments>>,
    pub(super) stream_epoch: String,
    pub(super) directory: PathBuf,
    /// Whether it is no longer ours; nobody can take a store of one process alone.
    pub(super) lost: Option<watch::Receiver<Option<Lost>>>,
    pub(super) threads: Mutex<Option<Threads>>,
}

/// The threads of a store; each ends by itself once the store is closed.
pub(super) struct Threads {
    /// Makes records durable.
    pub(super) log: JoinHandle<()>,
    /// Runs control transactions, and ends after the one before.
    pub(super) database: JoinHandle<()>,
    pub(super) readers: Vec<JoinHandle<()>>,
}

impl Store {
    /// Opens a data directory, replays its log and starts the threads; or claims a database.
    ///
    /// Blocks: call it before serving, or on a blocking thread.
    ///
    /// # Errors
    /// [`OpenError`]; the directory is as it was, but for a torn tail that is cut off.
    pub fn open(options: &StoreOptions) -> Result<Self, OpenError> {
        match &options.database {
            None => Self::open_on(options, RealDisk),
            Some(StoreAddress::Postgres(address)) => {
                Ok(Self(Arc::new(postgres::open::open(options, address)?)))
            }
            Some(StoreAddress::Cassandra(address)) => {
                Ok(Self(Arc::new(cassandra::open::open(options, address)?)))
            }
        }
    }

    /// The same with another disk under the log, for tests that make it fail.
    pub(crate) fn open_on(options: &StoreOptions, disk: impl Disk) -> Result<Self, OpenError> {
        let directory = DataDirectory::open(&options.directory, Keeps::Everything)?;
        let disk: Arc<dyn Disk> = Arc::new(disk);
        Self::open_in(options, &Arc::new(directory), &disk)
    }

    /// The same for a directory that is held already.
    pub(crate) fn open_held(
        options: &StoreOptions,
        directory: &Arc<DataDirectory>,
    ) -> Result<Self, OpenError> {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        Self::open_in(options, directory, &disk)
    }

    fn open_in(
        options: &StoreOptions,
        directory: &Arc<DataDirectory>,
        disk: &Arc<dyn Disk>,
    ) -> Result<Self, OpenError> {
        let connection = open_writer(&directory.database())?;
        note_place(&connection, &directory.database(), options.restored)?;
        let applied = applied_lsn(&connection)?;
        let recovered = Segments::recover(&directory.log(), applied)?;
        let segments = Arc::new(recovered.segments);
        let mut mover = Mover::new(Arc::clone(&segments), Arc::clone(disk), applied);
        replay(&mut mover, &connection, applied, recovered.last_lsn, directory)?;
        let stream_epoch = connection.query_row("SELECT epoch FROM store", [], |row| row.get(0))?;

        let progress = Arc::new(Progress::new(recovered.last_lsn));
        let limits = QueueLimits {
            queued_bytes_max: options.queued_bytes_max,
            backlog_bytes_max: options.backlog_bytes_max,
        };
        let queue = Arc::new(Queue::new(Arc::clone(&progress), limits));
        let log = LogWriter::start(LogWriterStart {
            disk: Arc::clone(disk),
            segments: Arc::clone(&segments),
            queue: Arc::clone(&queue),
            progress: Arc::clone(&progress),
            segment_len: options.segment_bytes,
            probe_pause: PROBE_PAUSE,
            next_number: recovered.next_number,
            last_lsn: recovered.last_lsn,
        })
        .map_err(|source| OpenError::Io { path: directory.log(), source })?;
        // Only now that a segment follows them may all older ones go; else they would pile up with
        // each start.
        segments.remove_applied(recovered.last_lsn, &**disk);
        let mut reading = Vec::new();
        for _ in 0..options.readers.max(1) {
            reading.push(Reader::Sqlite(open_reader(&directory.database())?));
        }
        let control = Arc::new(Control::new(Arc::clone(&progress)));
        let readers = Arc::new(Readers::new());
        let inner = Inner {
            queue,
            progress,
            control,
            readers,
            segments: Some(segments),
            stream_epoch,
            directory: options.directory.clone(),
            lost: None,
            threads: Mutex::new(None),
        };
        let threads = inner.spawn(log, mover, connection, reading, directory)?;
        *inner.threads.lock() = Some(threads);
        Ok(Self(Arc::new(inner)))
    }

    /// Queues a record at once; the future it returns resolves when the record is on disk.
    ///
    /// One caller's records keep their order whether or not their futures are awaited in between.
    /// Ask [`Store::admits`] or await [`Store::ready`] first: this never waits for room, it
    /// refuses.
    ///
    /// # Errors
    /// The future's [`AppendError`] says what may have happened and what to do.
    pub fn append(&self, epoch: WriteEpoch, record: &Record) -> Append {
        let is_ordered = matches!(record, Record::Room(_) | Record::User(_));
        self.0.queue.append(is_ordered.then_some(epoch), record.encode(), touched(record))
    }

    /// Whether an append to a stream would be taken now, with room to spare. Asked before a state
    /// is changed that the append is to make durable.
    ///
    /// # Errors
    /// What the append would be refused with.
    pub fn admits(&self, epoch: WriteEpoch, stream: Channel) -> Result<(), AppendError> {
        self.0.queue.admits(epoch, stream.into())
    }

    /// Waits until the store has room for appends.
    ///
    /// # Errors
    /// [`AppendError::DiskFull`], [`AppendError::Failed`] or [`AppendError::ShuttingDown`].
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn ready(&self) -> Result<(), AppendError> {
        self.0.queue.ready().await
    }

    /// The epoch that appends are accepted under; a failed append ends it for its stream. Snapshots
    /// carry it.
    #[must_use]
    pub fn write_epoch(&self) -> WriteEpoch {
        self.0.queue.epoch()
    }

    /// The epoch of every stream of this data directory, as clients see it beside their offsets.
    #[must_use]
    pub fn stream_epoch(&self) -> &str {
        &self.0.stream_epoch
    }

    /// Waits until SQLite holds all that was appended before the call.
    ///
    /// # Errors
    /// [`ReadError`] if it cannot come to that.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn barrier(&self) -> Result<(), ReadError> {
        self.0.progress.barrier(&[]).await
    }

    /// Waits until the database holds all that was appended to a stream before the call.
    ///
    /// # Errors
    /// [`ReadError`] if it cannot come to that.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn settled(&self, stream: Channel) -> Result<(), ReadError> {
        self.barrier_for(&[stream.into()]).await
    }

    /// What the store is doing.
    #[must_use]
    pub fn stats(&self) -> StoreStats {
        let lag = self.0.progress.lag();
        StoreStats {
            durable_lsn: lag.durable,
            applied_lsn: lag.applied,
            lag_bytes: lag.bytes,
            segments: self.0.segments.as_ref().map_or(0, |segments| segments.count()),
            statements_read: self.0.readers.asked(),
        }
    }

    /// Ready once the store is no longer this server's, which shows what it knew then: says why.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn lost(&self) -> Lost {
        let Some(mut told) = self.0.lost.clone() else { return std::future::pending().await };
        let lost = told.wait_for(Option::is_some).await.ok().and_then(|lost| *lost);
        match lost {
            Some(lost) => lost,
            None => std::future::pending().await,
        }
    }

    /// The data directory.
    pub(super) fn directory(&self) -> &Path {
        &self.0.directory
    }

    /// How long appends took since the store was opened, from the call to the acknowledgement.
    #[must_use]
    pub fn append_times(&self) -> AppendTimes {
        self.0.queue.timer.read()
    }

    /// Writes what is queued, moves it into SQLite, ends the threads and gives the directory free.
    ///
    /// Later calls of anything are refused as shutting down. A second call returns at once.
    pub async fn close(&self) {
        let inner = Arc::clone(&self.0);
        // A panic in it is our own bug and was printed by the thread that had it.
        let _ = tokio::task::spawn_blocking(move || inner.close()).await;
    }

    /// Waits for the tails of some streams.
    pub(super) async fn barrier_for(&self, streams: &[Stream]) -> Result<(), ReadError> {
        self.0.progress.barrier(streams).await
    }

    /// Runs a control transaction.
    pub(super) async fn control<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<R, ControlError> + Send + 'static,
    ) -> Result<R, ControlError> {
        self.0.control.run(work).await
    }

    /// Runs a read.
    pub(super) async fn read<R: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<R, ReadError> + Send + 'static,
    ) -> Result<R, ReadError> {
        self.0.readers.run(read).await
    }

    /// Runs a read of one statement.
    pub(super) async fn read_one<R: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<R, ReadError> + Send + 'static,
    ) -> Result<R, ReadError> {
        self.0.readers.run_one(read).await
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Store").field(&self.stats()).finish()
    }
}

impl Inner {
    pub(super) fn spawn(
        &self,
        log: LogWriter,
        mover: Mover,
        connection: Connection,
        reading: Vec<Reader>,
        directory: &Arc<DataDirectory>,
    ) -> Result<Threads, OpenError> {
        // Each thread holds the directory's lock, which must outlast the last write.
        let held = Arc::clone(directory);
        let log = spawn("folkmoot-log", directory, move || {
            // Each acknowledgement waits for it, and it mostly waits for the disk.
            if let Err(error) = folkmoot_threads::run_soon() {
                tracing::debug!(%error, "the log's thread waits for its turn like any other");
            }
            log.run();
            drop(held);
        })?;
        let held = Arc::clone(directory);
        let (control, progress, queue) =
            (Arc::clone(&self.control), Arc::clone(&self.progress), Arc::clone(&self.queue));
        let sqlite = spawn("folkmoot-sqlite", directory, move || {
            // Most of its work is behind the acknowledgements.
            if let Err(error) = folkmoot_threads::lower_priority() {
                tracing::debug!(%error, "the log is moved at the normal priority");
            }
            writer::run(&connection, mover, &control, &progress, &|| queue.notify_room());
            progress.close();
            drop(held);
        })?;
        let mut readers = Vec::new();
        for reader in reading {
            let serving = Arc::clone(&self.readers);
            readers.push(spawn("folkmoot-read", directory, move || serving.serve(reader))?);
        }
        Ok(Threads { log, database: sqlite, readers })
    }

    /// Asks the threads to end, without waiting.
    fn begin_close(&self) {
        self.queue.close();
        self.control.close();
        self.readers.close();
    }

    fn close(&self) {
        self.begin_close();
        let Some(threads) = self.threads.lock().take() else { return };
        // The log first: the mover must know that nothing comes any more.
        let _ = threads.log.join();
        for reader in threads.readers {
            let _ = reader.join();
        }
        self.control.log_ended();
        // Last: SQLite empties its WAL when the connection that writes is the last one to close.
        let _ = threads.database.join();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.begin_close();
        let Some(threads) = self.threads.lock().take() else { return };
        let control = Arc::clone(&self.control);
        // Not joined here, because this may run on the reactor; the threads end by themselves.
        let _ = std::thread::Builder::new().name("folkmoot-close".into()).spawn(move || {
            let _ = threads.log.join();
            control.log_ended();
        });
    }
}

pub(super) fn spawn(
    name: &str,
    directory: &DataDirectory,
    run: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, OpenError> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(run)
        .map_err(|source| OpenError::Io { path: directory.log(), source })
}

/// Brings SQLite up to the end of the log before anything is served.
fn replay(
    mover: &mut Mover,
    connection: &Connection,
    applied: Lsn,
    last: Lsn,
    directory: &DataDirectory,
) -> Result<(), OpenError> {
    if applied >= last {
        return Ok(());
    }
    let records = last.0 - applied.0;
    tracing::info!(records, "moving the log's tail into the database");
    mover.catch_up(connection, last).map_err(|error| error.at_start(directory, records))
}

/// The database of a directory, with all that the log has; for tasks that have it alone.
pub(super) fn settled(directory: &DataDirectory) -> Result<Connection, OpenError> {
    let connection = open_writer(&directory.database())?;
    let applied = applied_lsn(&connection)?;
    let recovered = Segments::recover(&directory.log(), applied)?;
    let mut mover = Mover::new(Arc::new(recovered.segments), Arc::new(RealDisk), applied);
    replay(&mut mover, &connection, applied, recovered.last_lsn, directory)?;
    Ok(connection)
}

/// The streams whose rows a record changes.
fn touched(record: &Record) -> [Option<Stream>; 2] {
    match record {
        Record::Room(record) => {
            let member = match &record.event {
                RoomEvent::Joined { user, .. }
                | RoomEvent::Left { user, .. }
                | RoomEvent::RoleSet { user, .. } => Some(Stream::User(*user)),
                _ => None,
            };
            [Some(Stream::Room(record.room)), member]
        }
        Record::User(record) => [Some(Stream::User(record.user)), None],
        Record::Cursor(cursor) => [Some(Stream::User(cursor.user)), None],
        Record::DeviceSeen { .. } => [None, None],
    }
}
