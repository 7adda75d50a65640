//! The tables, and how a file comes to have them.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode};

use super::OpenError;

/// The last format that this version knows; `user_version` of the file.
const FORMAT: u32 = STEPS.len() as u32;

/// How long to wait for a process that is about to let the file go.
const BUSY: Duration = Duration::from_millis(200);

/// Pages in memory, in KiB: a transaction that changes more writes them early and reads them again.
const CACHE_KIB: i64 = 64 * 1_024;
/// So many pages are carried from the log into the file at once, of 4 KiB each. A page that many
/// transactions change is then written once.
const CHECKPOINT_PAGES: u32 = 8_192;

/// Each step takes the tables from the format before to the next. Released steps never change.
const STEPS: [&str; 2] = [
    "
    CREATE TABLE actors (
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        epoch INTEGER NOT NULL,
        version INTEGER NOT NULL,
        last_event INTEGER NOT NULL,
        schema INTEGER,
        state BLOB,
        includes INTEGER,
        PRIMARY KEY (kind, key)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE events (
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        number INTEGER NOT NULL,
        schema INTEGER NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (kind, key, number)
    ) STRICT, WITHOUT ROWID;
    ",
    // Deliveries lie in the order in which they are due, so the next ones are read in one piece.
    "
    CREATE TABLE deliveries (
        due INTEGER NOT NULL,
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        name TEXT NOT NULL,
        cron TEXT,
        to_kind TEXT NOT NULL,
        to_key TEXT NOT NULL,
        message TEXT NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (due, kind, key, name)
    ) STRICT, WITHOUT ROWID;
    CREATE UNIQUE INDEX deliveries_by_owner ON deliveries (kind, key, name);
    CREATE TABLE replies (
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        number INTEGER NOT NULL,
        request TEXT NOT NULL,
        at INTEGER NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (kind, key, number)
    ) STRICT, WITHOUT ROWID;
    ",
];

/// Opens a file and makes its tables if it is new.
pub(super) fn open(path: &Path) -> Result<Connection, OpenError> {
    let failed = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            OpenError::InUse { path: path.to_owned() }
        }
        _ => OpenError::Database { path: path.to_owned(), error },
    };
    let connection = Connection::open(path).map_err(failed)?;
    prepare(&connection).map_err(failed)?;
    let found: u32 =
        connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
    let Some(missing) = usize::try_from(found).ok().and_then(|found| STEPS.get(found..)) else {
        return Err(OpenError::Later { path: path.to_owned(), found, known: FORMAT });
    };
    if !missing.is_empty() {
        let steps = missing.concat();
        let migrate = format!("BEGIN; {steps} PRAGMA user_version = {FORMAT}; COMMIT;");
        connection.execute_batch(&migrate).map_err(failed)?;
    }
    Ok(connection)
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    // Exclusive, so that two processes never write the same actors; the lock is taken by the first
    // write.
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.execute_batch("BEGIN EXCLUSIVE; COMMIT;")?;
    connection.set_prepared_statement_cache_capacity(32);
    // A statement is compiled once, and not again for other numbers in it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}
