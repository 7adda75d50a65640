//! Opens a store whose log is in Cassandra.

use std::path::PathBuf;
use std::sync::{Arc, mpsc};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::address::CassandraAddress;
use super::appends::Appends;
use super::controls;
use super::database::{Database, Done};
use super::entry::Entry;
use super::filling;
use super::index::{self, Place};
use super::keeper::{self, Keeper};
use super::log::Log;
use super::names::Name;
use super::session::Session;
use super::snapshot::{self, Snapshot};
use crate::storage::directory::{DataDirectory, Keeps, RESTORING};
use crate::storage::error::OpenError;
use crate::storage::log::queue::{Queue, QueueLimits};
use crate::storage::progress::Progress;
use crate::storage::sql::{Connection, SqlError};
use crate::storage::sqlite::place::Restored;
use crate::storage::sqlite::readers::{Reader, Readers};
use crate::storage::sqlite::writer::Control;
use crate::storage::sqlite::{migrations, open_reader};
use crate::storage::store::{Inner, StoreOptions, Threads, spawn};

/// How often it is begun anew because a snapshot has come to count meanwhile.
const TRIES_MAX: u32 = 3;

/// The log taken over, and its index brought up to date.
struct Claimed {
    session: Arc<Session>,
    log: Log,
    index: Connection,
    snapshot: Snapshot,
}

/// Takes the keyspace over, brings the index up to date, and starts the threads. Blocks.
pub(crate) fn open(options: &StoreOptions, address: &CassandraAddress) -> Result<Inner, OpenError> {
    if options.node.is_some() {
        return Err(OpenError::OneNode { address: address.clone() });
    }
    let directory = Arc::new(DataDirectory::open(&options.directory, Keeps::Index)?);
    let path = directory.log();
    // A session waits in a runtime of its own, which a thread of the caller's runtime cannot enter.
    let opening = std::thread::scope(|scope| {
        let opening = std::thread::Builder::new().name("folkmoot-open".to_owned());
        let opened = opening.spawn_scoped(scope, || start(options, address, &directory));
        opened.map(|opened| opened.join().expect("opening a store does not panic"))
    });
    opening.map_err(|source| OpenError::Io { path, source })?
}

fn start(
    options: &StoreOptions,
    address: &CassandraAddress,
    directory: &Arc<DataDirectory>,
) -> Result<Inner, OpenError> {
    let failed = |source| OpenError::Cassandra { address: address.clone(), source };
    let path = index::path(&options.directory);
    let Claimed { session, log, index, snapshot } = claim(address, &path).map_err(failed)?;
    let place = Place::read(&index).map_err(failed)?.expect("the index was brought up to date");
    let (lost, told) = watch::channel(None);
    let database = Database::new(address.clone(), (index, place), log, lost);
    let database = Arc::new(database.map_err(failed)?);
    if options.restored == Restored::Yes {
        begin_epoch(&database).map_err(failed)?;
    }
    let mut reading = Vec::new();
    for _ in 0..options.readers.max(1) {
        reading.push(open_reader(&path)?);
    }
    let sql = "SELECT epoch FROM store";
    let stream_epoch = reading[0].query_row(sql, [], |row| row.get(0)).map_err(failed)?;
    let progress = Arc::new(Progress::new(database.lock().applied()));
    let limits = QueueLimits {
        queued_bytes_max: options.queued_bytes_max,
        backlog_bytes_max: options.backlog_bytes_max,
    };
    let inner = Inner {
        queue: Arc::new(Queue::new(Arc::clone(&progress), limits)),
        control: Arc::new(Control::new(Arc::clone(&progress))),
        progress,
        readers: Arc::new(Readers::new()),
        segments: None,
        stream_epoch,
        directory: PathBuf::from(&options.directory),
        lost: Some(told),
        threads: Mutex::new(None),
    };
    let snapshot_bytes = address.snapshot_bytes();
    let keeper = Keeper { database, session, index: path, snapshot, snapshot_bytes };
    let threads = spawn_all(&inner, keeper, reading, directory)?;
    *inner.threads.lock() = Some(threads);
    Ok(inner)
}

fn spawn_all(
    inner: &Inner,
    keeper: Keeper,
    reading: Vec<Connection>,
    directory: &Arc<DataDirectory>,
) -> Result<Threads, OpenError> {
    let database = Arc::clone(&keeper.database);
    let (queue, progress) = (Arc::clone(&inner.queue), Arc::clone(&inner.progress));
    let appends = Appends { database: Arc::clone(&database), queue, progress };
    let held = Arc::clone(directory);
    let log = spawn("folkmoot-append", directory, move || {
        appends.run();
        drop(held);
    })?;
    let (stop, stopped) = mpsc::channel();
    let keeping = spawn("folkmoot-keeper", directory, move || keeper.run(&stopped))?;
    let (held, control) = (Arc::clone(directory), Arc::clone(&inner.control));
    let progress = Arc::clone(&inner.progress);
    let controls = spawn("folkmoot-control", directory, move || {
        control.serve(|jobs| controls::commit(&database, jobs));
        progress.close();
        drop(stop);
        // A panic in it is our own bug and was printed by the thread that had it.
        let _ = keeping.join();
        // Closes the index, which nobody else may have open before.
        drop(database);
        drop(held);
    })?;
    let mut readers = Vec::new();
    for reader in reading {
        let serving = Arc::clone(&inner.readers);
        readers.push(spawn("folkmoot-read", directory, move || {
            serving.serve(Reader::Sqlite(reader));
        })?);
    }
    Ok(Threads { log, database: controls, readers })
}

/// Connects, takes the log over, and brings the index up to date.
fn claim(address: &CassandraAddress, path: &std::path::Path) -> Result<Claimed, SqlError> {
    let session = Arc::new(Session::connect(address)?);
    let mut tries = 0;
    loop {
        tries += 1;
        let snapshot = match snapshot::current(&session)? {
            Some(snapshot) => snapshot,
            None => begin(&session, path)?,
        };
        let newest = migrations::newest();
        if snapshot.schema > newest {
            return Err(SqlError::Refused(format!(
                "it has schema {}, this program knows schemas up to {newest}",
                snapshot.schema
            )));
        }
        let log = Log::take_over(Arc::clone(&session), snapshot.number)?;
        match index::prepare(path, &session, &snapshot, log.last()) {
            Ok(index) => {
                let snapshot = migrate(&session, (path, &index), snapshot)?;
                return Ok(Claimed { session, log, index, snapshot });
            }
            Err(error) => {
                // Whoever wrote before us may have written a snapshot meanwhile, and deleted what
                // was before it.
                let counts = snapshot::current(&session)?;
                let is_another = counts.is_some_and(|it| it.number != snapshot.number);
                if !is_another || tries >= TRIES_MAX {
                    return Err(error);
                }
            }
        }
    }
}

/// Makes an empty store in a keyspace that has none, and writes it as the first snapshot.
fn begin(session: &Session, path: &std::path::Path) -> Result<Snapshot, SqlError> {
    if path.exists() {
        return Err(SqlError::Refused(format!(
            "the keyspace holds no data of Folkmoot, and {} is the index of one that did: remove it, \
             or give another data directory",
            path.display()
        )));
    }
    let data = path.parent().unwrap_or(path);
    if data.join(RESTORING).exists() {
        return Err(SqlError::Refused(format!(
            "the keyspace holds no data of Folkmoot, and {} has a part of a backup that was to fill \
             it: run the same `folkmoot restore` again, which begins anew, or empty it to begin \
             with an empty store",
            data.display()
        )));
    }
    let begun = filling::directory(data);
    if begun.exists() {
        return Err(SqlError::Refused(format!(
            "{} has what was to fill the keyspace: run the same `folkmoot migrate` again, which goes \
             on from there, or remove it to begin with an empty store",
            begun.display()
        )));
    }
    let made = path.with_extension("made");
    let failed = |error| SqlError::Refused(format!("{}: {error}", made.display()));
    index::remove(&made).map_err(failed)?;
    let index = index::open(&made)?;
    migrations::migrate(&index, &made).map_err(|error| SqlError::Refused(error.to_string()))?;
    Place::first().begin(&index)?;
    drop(index);
    let snapshot = keeper::take(session, &made, None, &|| true)?;
    index::remove(&made).map_err(failed)?;
    match snapshot {
        Some(snapshot) => Ok(snapshot),
        // Somebody else was faster.
        None => snapshot::current(session)?
            .ok_or_else(|| SqlError::Refused("no first snapshot counts".to_owned())),
    }
}

/// Takes the steps that the index lacks. Entries are of the schema before, so a snapshot of the new
/// one is written before there are others.
fn migrate(
    session: &Session,
    (path, index): (&std::path::Path, &Connection),
    snapshot: Snapshot,
) -> Result<Snapshot, SqlError> {
    if snapshot.schema == migrations::newest() {
        return Ok(snapshot);
    }
    migrations::migrate(index, path).map_err(|error| SqlError::Refused(error.to_string()))?;
    let taken = keeper::take(session, path, Some(&snapshot), &|| true)?;
    taken.ok_or(SqlError::Fenced)
}

/// Has clients fetch history anew. The epoch is drawn here: a statement that draws it would draw
/// another one wherever it is repeated.
fn begin_epoch(database: &Database) -> Result<(), SqlError> {
    tracing::warn!("the data was restored from a copy: clients will fetch history again");
    let epoch = format!("{:?}", Name::draw())[..16].to_owned();
    let mut state = database.lock();
    database.transact(&mut state, |transaction, applied| {
        let local = transaction.local().expect("the index is SQLite's");
        local.begin_taking();
        transaction.execute("UPDATE store SET epoch = ?1", [epoch])?;
        let entry = Entry::of_changes(local.end_taking());
        Ok(Done { answer: (), entry, applied })
    })
}
