//! Rows in a SQLite file, one record a user, so that a whole user is read and written at once.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use folkmoot_threads::QuietThread;
use parking_lot::Mutex;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension, params};

use super::entries::{decode, encode};
use super::{Answer, Row, RowStore, StoreError, check_format};

const BUSY: Duration = Duration::from_secs(10);

/// What is tried, as errors say it.
const SAVING: &str = "save rows";

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS read_states (
        user INTEGER PRIMARY KEY,
        version INTEGER NOT NULL,
        entries BLOB NOT NULL
    ) STRICT;
    PRAGMA user_version = 1;
";

/// See the module. Reads and writes use a connection each. Writes are on a thread of lower priority,
/// since those who change read states do not wait for them.
pub struct SqliteRows {
    reader: Arc<Mutex<Connection>>,
    writer: Arc<Writer>,
}

struct Writer {
    connection: Mutex<Connection>,
    thread: QuietThread,
}

impl SqliteRows {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// The file cannot be opened, is no database, or is of a later version.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let open = || -> rusqlite::Result<Connection> {
            let connection = Connection::open(path)?;
            connection.busy_timeout(BUSY)?;
            connection.pragma_update(None, "journal_mode", "WAL")?;
            // A commit is on the disk when it returns: the log forgets what was saved.
            connection.pragma_update(None, "synchronous", "FULL")?;
            // A statement is compiled once, and not again for other numbers in it.
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
            Ok(connection)
        };
        let opened = || open().map_err(failed("open its file"));
        let thread = QuietThread::start("read-states-rows")
            .map_err(|error| StoreError::new("start its thread", error.to_string()))?;
        let writer = opened()?;
        check_format(format(&writer).map_err(failed("open its file"))?)?;
        writer.execute_batch(SCHEMA).map_err(failed("open its file"))?;
        let writer = Writer { connection: Mutex::new(writer), thread };
        Ok(Self { reader: Arc::new(Mutex::new(opened()?)), writer: Arc::new(writer) })
    }
}

/// That of the file: 0 if it is new, or of the first versions, which wrote none.
fn format(connection: &Connection) -> rusqlite::Result<i32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn failed(doing: &'static str) -> impl Fn(rusqlite::Error) -> StoreError {
    move |error| StoreError::new(doing, error.to_string())
}

/// Runs a statement where it may block.
fn blocking<T: Send + 'static>(
    connection: &Arc<Mutex<Connection>>,
    doing: &'static str,
    work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
) -> Answer<T> {
    let connection = connection.clone();
    Box::pin(async move {
        let done = tokio::task::spawn_blocking(move || work(&mut connection.lock())).await;
        let done = done.map_err(|error| StoreError::new(doing, error.to_string()))?;
        done.map_err(failed(doing))
    })
}

impl RowStore for SqliteRows {
    /// The file is one process's, by the lock on the directory of its log.
    fn take_over(&self, version: u64) -> Answer<u64> {
        blocking(&self.reader, "find its highest version", move |connection| {
            let query = "SELECT coalesce(max(version), 0) FROM read_states";
            let found = connection.query_row(query, [], |row| row.get::<_, i64>(0))?;
            Ok(found.cast_unsigned().max(version))
        })
    }

    fn load(&self, user: u64) -> Answer<Option<Row>> {
        blocking(&self.reader, "load a row", move |connection| {
            let mut select = connection
                .prepare_cached("SELECT version, entries FROM read_states WHERE user = ?")?;
            let row = select
                .query_row([user.cast_signed()], |row| {
                    Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?))
                })
                .optional()?;
            Ok(row.map(|(version, entries)| Row {
                user,
                version: version.cast_unsigned(),
                entries: decode(&entries),
            }))
        })
    }

    fn save(&self, rows: Vec<Row>) -> Answer<()> {
        let writer = self.writer.clone();
        Box::pin(async move {
            let of_job = writer.clone();
            let job = move || save(&mut of_job.connection.lock(), &rows);
            let saved = writer.thread.try_run(job).await;
            let saved = saved.map_err(|_| StoreError::new(SAVING, "it panicked".to_owned()))?;
            saved.map_err(failed(SAVING))
        })
    }
}

fn save(connection: &mut Connection, rows: &[Row]) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    {
        let mut upsert = transaction.prepare_cached(
            "INSERT INTO read_states (user, version, entries) VALUES (?1, ?2, ?3)
             ON CONFLICT (user) DO UPDATE
             SET version = excluded.version, entries = excluded.entries
             WHERE excluded.version > version",
        )?;
        for row in rows {
            let version = row.version.cast_signed();
            let entries = encode(&row.entries);
            upsert.execute(params![row.user.cast_signed(), version, entries])?;
        }
    }
    transaction.commit()
}
