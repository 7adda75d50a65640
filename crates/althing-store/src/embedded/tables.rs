//! The tables, and how a file comes to have them.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};

use super::OpenError;

/// Counts up with each change of the tables; `user_version` of the file.
const FORMAT: u32 = 1;

/// How long to wait for a process that is about to let the file go.
const BUSY: Duration = Duration::from_millis(200);

const TABLES: &str = "
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
";

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
    match found {
        0 => {
            let make = format!("BEGIN; {TABLES} PRAGMA user_version = {FORMAT}; COMMIT;");
            connection.execute_batch(&make).map_err(failed)?;
        }
        FORMAT => {}
        _ => return Err(OpenError::Later { path: path.to_owned(), found, known: FORMAT }),
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
    connection.execute_batch("BEGIN EXCLUSIVE; COMMIT;")?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(())
}
