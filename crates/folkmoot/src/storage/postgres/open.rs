//! Opens a store whose data is in PostgreSQL.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::address::DatabaseAddress;
use super::appends::Appends;
use super::claim::{Claimed, claim, claim_as, connect};
use super::controls;
use super::database::Database;
use super::schema;
use crate::storage::directory::{DataDirectory, Keeps};
use crate::storage::error::OpenError;
use crate::storage::log::queue::{Queue, QueueLimits};
use crate::storage::progress::Progress;
use crate::storage::sql::Connection;
use crate::storage::sqlite::readers::{Reader, Readers};
use crate::storage::sqlite::writer::Control;
use crate::storage::store::{Inner, StoreOptions, Threads, spawn};

/// Claims the database, makes or migrates its tables, and starts the threads. Blocks.
pub(crate) fn open(options: &StoreOptions, address: &DatabaseAddress) -> Result<Inner, OpenError> {
    let directory = Arc::new(DataDirectory::open(&options.directory, Keeps::Files)?);
    let (restored, readers, path) = (options.restored, options.readers.max(1), directory.log());
    // A session waits in a runtime of its own, which a thread of the caller's runtime cannot enter.
    let opening = std::thread::scope(|scope| {
        let opening = std::thread::Builder::new().name("folkmoot-open".to_owned());
        let opened = opening.spawn_scoped(scope, || {
            let claimed = match &options.node {
                None => claim(address, restored)?,
                Some(node) => claim_as(address, node)?,
            };
            let mut reading = Vec::new();
            for _ in 0..readers {
                let session = connect(address, "folkmoot reader").map_err(|source| {
                    OpenError::Unreachable { address: address.clone(), source }
                })?;
                reading.push(Reader::Postgres(address.clone(), Some(session)));
            }
            start(options, &directory, claimed, reading)
        });
        opened.map(|opened| opened.join().expect("opening a database does not panic"))
    });
    opening.map_err(|source| OpenError::Io { path, source })?
}

/// A session of a task of an administrator's, which looks at all there is.
pub(crate) fn connect_for_task(address: &DatabaseAddress) -> Result<Connection, OpenError> {
    let unreachable = |source| OpenError::Unreachable { address: address.clone(), source };
    let connection = connect(address, "folkmoot task").map_err(unreachable)?;
    connection.take_time().map_err(unreachable)?;
    Ok(connection)
}

/// A session of a task that works beside the server, if one runs.
pub(crate) fn connect_beside(address: &DatabaseAddress) -> Result<Connection, OpenError> {
    let connection = connect_for_task(address)?;
    schema::require(&connection, address)?;
    Ok(connection)
}

fn start(
    options: &StoreOptions,
    directory: &Arc<DataDirectory>,
    claimed: Claimed,
    reading: Vec<Reader>,
) -> Result<Inner, OpenError> {
    let stream_epoch = claimed.stream_epoch.clone();
    let progress = Arc::new(Progress::new(claimed.standing.applied));
    let limits = QueueLimits {
        queued_bytes_max: options.queued_bytes_max,
        backlog_bytes_max: options.backlog_bytes_max,
    };
    let queue = Arc::new(Queue::new(Arc::clone(&progress), limits));
    let control = Arc::new(Control::new(Arc::clone(&progress)));
    let (lost, told) = watch::channel(None);
    let inner = Inner {
        queue: Arc::clone(&queue),
        progress: Arc::clone(&progress),
        control: Arc::clone(&control),
        readers: Arc::new(Readers::new()),
        segments: None,
        stream_epoch,
        directory: PathBuf::from(&options.directory),
        lost: Some(told),
        threads: Mutex::new(None),
    };
    let database = Arc::new(Database::new(claimed, lost));
    let appends =
        Appends { database: Arc::clone(&database), queue, progress: Arc::clone(&progress) };
    let held = Arc::clone(directory);
    let log = spawn("folkmoot-append", directory, move || {
        appends.run();
        drop(held);
    })?;
    let held = Arc::clone(directory);
    let controls = spawn("folkmoot-control", directory, move || {
        control.serve(|jobs| controls::commit(&database, jobs));
        progress.close();
        drop(held);
    })?;
    let mut readers = Vec::new();
    for reader in reading {
        let serving = Arc::clone(&inner.readers);
        readers.push(spawn("folkmoot-read", directory, move || serving.serve(reader))?);
    }
    *inner.threads.lock() = Some(Threads { log, database: controls, readers });
    Ok(inner)
}
