//! What vehicles remember while they sleep and across restarts: one SQLite file, one row per
//! vehicle.
//!
//! One thread writes and one reads (`reading`), each in transactions of whatever waits; what is
//! read is committed. The file is in WAL mode with `synchronous = NORMAL`: a killed process loses
//! nothing that `save` confirmed, a power cut at most the last moments. The ids of all known
//! vehicles are kept in memory (ten bytes each), so a new vehicle starts without touching the disk.

mod reading;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use parking_lot::RwLock;
use reading::{Read, read_all};
use rusqlite::{Connection, params};
use tokio::sync::{mpsc, oneshot};

use crate::hfp::VehicleId;

/// Snapshots that may wait for the writer, and vehicles for the reader; more wait outside.
const QUEUE_LEN_MAX: usize = 16_384;
/// Snapshots per transaction: long enough to share one commit, short enough that nobody waits for
/// it.
const BATCH_LEN_MAX: usize = 4_096;
/// Layout of the file; another one is refused.
const USER_VERSION: i32 = 1;

/// Why the store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// The file was written by another version.
    #[error("{path} has layout {found}, this program reads {USER_VERSION}")]
    OtherVersion {
        /// The file.
        path: String,
        /// Its layout.
        found: i32,
    },
    /// SQLite says no.
    #[error("vehicle store")]
    Sqlite(#[from] rusqlite::Error),
    /// The store has ended; nothing was stored or read.
    #[error("vehicle store is closed")]
    Closed,
}

/// The snapshots of all vehicles; cheap to clone.
#[derive(Clone)]
pub(crate) struct Store {
    shared: Arc<Shared>,
}

struct Shared {
    queue: mpsc::Sender<Write>,
    reads: mpsc::Sender<Read>,
    known: Arc<RwLock<HashSet<u32>>>,
}

enum Write {
    Save { id: VehicleId, snapshot: Vec<u8>, stored: Option<oneshot::Sender<()>> },
    Close(oneshot::Sender<()>),
}

impl Store {
    /// Opens the file, and makes it if there is none.
    ///
    /// # Errors
    /// If it cannot be opened, or was written by another version.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "normal")?;
        // 64 MB of pages: the hot part of a million rows.
        connection.pragma_update(None, "cache_size", -65_536)?;
        let found: i32 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if found != 0 && found != USER_VERSION {
            return Err(StoreError::OtherVersion { path: path.display().to_string(), found });
        }
        connection.execute_batch(
            "CREATE TABLE IF NOT EXISTS vehicle (id INTEGER PRIMARY KEY, snapshot BLOB NOT NULL)",
        )?;
        connection.pragma_update(None, "user_version", USER_VERSION)?;
        let known = Arc::new(RwLock::new(load_known(&connection)?));
        let (queue, waiting) = mpsc::channel(QUEUE_LEN_MAX);
        let written = known.clone();
        thread::Builder::new()
            .name("vehicle-store".to_owned())
            .spawn(move || write_all(connection, waiting, &written))
            .map_err(|_| StoreError::Closed)?;
        let connection = Connection::open(path)?;
        let (reads, asked) = mpsc::channel(QUEUE_LEN_MAX);
        thread::Builder::new()
            .name("vehicle-reader".to_owned())
            .spawn(move || read_all(&connection, asked))
            .map_err(|_| StoreError::Closed)?;
        let shared = Shared { queue, reads, known };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Vehicles that have a snapshot.
    pub(crate) fn known_len(&self) -> usize {
        self.shared.known.read().len()
    }

    /// Whether the vehicle has a snapshot.
    pub(crate) fn knows(&self, id: VehicleId) -> bool {
        self.shared.known.read().contains(&id.packed())
    }

    /// Some vehicle that has a snapshot; `random` chooses.
    pub(crate) fn any_known(&self, random: usize) -> Option<VehicleId> {
        let known = self.shared.known.read();
        let place = random.checked_rem(known.len())?;
        known.iter().nth(place).copied().and_then(VehicleId::from_packed)
    }

    /// Reads a snapshot.
    ///
    /// # Errors
    /// If SQLite fails.
    ///
    /// # Cancel safety
    /// Nothing changes, whether or not it is dropped.
    pub(crate) async fn load(&self, id: VehicleId) -> Result<Option<Vec<u8>>, StoreError> {
        let (answer, answered) = oneshot::channel();
        self.shared.reads.send(Read { id, answer }).await.map_err(|_| StoreError::Closed)?;
        answered.await.map_err(|_| StoreError::Closed)?
    }

    /// Stores a snapshot and waits until it is committed.
    ///
    /// # Errors
    /// If the store is closed or the disk refuses: the snapshot is not stored.
    ///
    /// # Cancel safety
    /// A dropped future may or may not have stored the snapshot.
    pub(crate) async fn save(&self, id: VehicleId, snapshot: Vec<u8>) -> Result<(), StoreError> {
        let (stored, done) = oneshot::channel();
        let write = Write::Save { id, snapshot, stored: Some(stored) };
        self.shared.queue.send(write).await.map_err(|_| StoreError::Closed)?;
        done.await.map_err(|_| StoreError::Closed)
    }

    /// Stores a snapshot soon; returns whether there was room to take it.
    pub(crate) fn save_soon(&self, id: VehicleId, snapshot: Vec<u8>) -> bool {
        self.shared.queue.try_send(Write::Save { id, snapshot, stored: None }).is_ok()
    }

    /// Writes what waits and closes the file.
    pub(crate) async fn close(&self) {
        let (closed, done) = oneshot::channel();
        if self.shared.queue.send(Write::Close(closed)).await.is_ok() {
            // An ended writer has closed the file already.
            done.await.ok();
        }
    }
}

fn load_known(connection: &Connection) -> Result<HashSet<u32>, rusqlite::Error> {
    let mut statement = connection.prepare("SELECT id FROM vehicle")?;
    statement.query_map([], |row| row.get(0))?.collect()
}

fn write_all(
    mut connection: Connection,
    mut waiting: mpsc::Receiver<Write>,
    known: &RwLock<HashSet<u32>>,
) {
    let mut batch = Vec::new();
    while waiting.blocking_recv_many(&mut batch, BATCH_LEN_MAX) > 0 {
        match write_batch(&mut connection, &batch) {
            Ok(()) => confirm(&mut batch, known),
            // Dropping the batch tells everyone who waits for it.
            Err(error) => {
                tracing::error!(%error, snapshots = batch.len(), "cannot store snapshots")
            }
        }
        let closing = batch.drain(..).find_map(|write| match write {
            Write::Close(closed) => Some(closed),
            Write::Save { .. } => None,
        });
        if let Some(closed) = closing {
            drop(connection);
            closed.send(()).ok();
            return;
        }
    }
}

fn write_batch(connection: &mut Connection, batch: &[Write]) -> Result<(), rusqlite::Error> {
    let transaction = connection.transaction()?;
    {
        let mut put = transaction
            .prepare_cached("INSERT OR REPLACE INTO vehicle (id, snapshot) VALUES (?1, ?2)")?;
        for write in batch {
            if let Write::Save { id, snapshot, .. } = write {
                put.execute(params![id.packed(), snapshot])?;
            }
        }
    }
    transaction.commit()
}

fn confirm(batch: &mut [Write], known: &RwLock<HashSet<u32>>) {
    let mut known = known.write();
    for write in batch {
        if let Write::Save { id, stored, .. } = write {
            known.insert(id.packed());
            if let Some(stored) = stored.take() {
                // Who no longer waits does not mind.
                stored.send(()).ok();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("map-store-{name}-{}", std::process::id()));
        for end in ["", "-wal", "-shm"] {
            std::fs::remove_file(format!("{}{end}", path.display())).ok();
        }
        path
    }

    fn id(number: u32) -> VehicleId {
        VehicleId::new(1, number).unwrap()
    }

    #[tokio::test]
    async fn what_was_saved_is_there_after_reopening() {
        let path = scratch("reopen");
        let store = Store::open(&path).unwrap();
        assert!(!store.knows(id(7)));
        store.save(id(7), vec![1]).await.unwrap();
        store.save(id(7), vec![2, 3]).await.unwrap();
        assert_eq!(store.load(id(7)).await.unwrap(), Some(vec![2, 3]));
        store.close().await;
        assert!(matches!(store.save(id(8), vec![]).await, Err(StoreError::Closed)));
        let store = Store::open(&path).unwrap();
        assert_eq!((store.known_len(), store.knows(id(7))), (1, true));
        assert_eq!(store.load(id(7)).await.unwrap(), Some(vec![2, 3]));
        assert_eq!(store.load(id(8)).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_snapshot_taken_without_waiting_is_stored_before_close_returns() {
        let path = scratch("soon");
        let store = Store::open(&path).unwrap();
        for number in 0..1_000 {
            assert!(store.save_soon(id(number), vec![number as u8]));
        }
        store.close().await;
        assert_eq!(Store::open(&path).unwrap().known_len(), 1_000);
    }

    #[test]
    fn a_file_of_another_layout_is_refused_by_name() {
        let path = scratch("layout");
        let file = Connection::open(&path).unwrap();
        file.pragma_update(None, "user_version", 9).unwrap();
        let error = Store::open(&path).err().unwrap();
        assert!(error.to_string().contains("layout 9"), "{error}");
    }
}
