//! The tables of histories, and how a file comes to have them.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode};

use super::DiskError;

pub(super) const FILE: &str = "relay.sqlite";
/// `user_version` of the file.
const FORMAT: u32 = 2;
/// How long to wait for a process that is about to let the file go.
const BUSY: Duration = Duration::from_secs(2);
/// KiB of pages that SQLite keeps in memory: a broadcast into 100,000 channels touches as many places
/// of the file, and each page that does not fit is written out and read again before the end.
const CACHE_KIB: i64 = 64 << 10;
/// Pages of the write-ahead log after which it is brought into the file: 64 MiB, more than a
/// transaction of such a broadcast, so that not each one waits for that.
const CHECKPOINT_PAGES: i64 = 16_384;

const TABLES: &str = "
    CREATE TABLE streams (
        channel TEXT PRIMARY KEY,
        epoch INTEGER NOT NULL,
        top INTEGER NOT NULL,
        at INTEGER NOT NULL,
        version INTEGER,
        version_epoch TEXT NOT NULL DEFAULT ''
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE publications (
        channel TEXT NOT NULL,
        offset INTEGER NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (channel, offset)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE keys (
        channel TEXT NOT NULL,
        key TEXT NOT NULL,
        offset INTEGER NOT NULL,
        until INTEGER NOT NULL,
        PRIMARY KEY (channel, key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX keys_by_end ON keys (until);
    CREATE TABLE rows (
        source TEXT NOT NULL,
        id INTEGER NOT NULL,
        part INTEGER NOT NULL,
        channel TEXT NOT NULL,
        PRIMARY KEY (source, id, part, channel)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE progress (
        source TEXT PRIMARY KEY,
        at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
";

/// What a file of format 1 lacks.
const SINCE_1: &str = "
    ALTER TABLE streams ADD COLUMN version INTEGER;
    ALTER TABLE streams ADD COLUMN version_epoch TEXT NOT NULL DEFAULT '';
";

/// Opens a file and makes its tables if it is new.
pub(super) fn open(path: &Path) -> Result<Connection, DiskError> {
    let wrong = |reason: String| DiskError::Database { path: path.to_owned(), reason };
    let failed = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            wrong("it is used by another process".to_owned())
        }
        _ => wrong(error.to_string()),
    };
    let connection = Connection::open(path).map_err(failed)?;
    prepare(&connection).map_err(failed)?;
    let format: u32 =
        connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
    match format {
        FORMAT => {}
        0 | 1 => {
            let missing = if format == 0 { TABLES } else { SINCE_1 };
            let made = format!("BEGIN; {missing} PRAGMA user_version = {FORMAT}; COMMIT;");
            connection.execute_batch(&made).map_err(failed)?;
        }
        later => {
            return Err(wrong(format!("it has format {later}, and {FORMAT} is the last known")));
        }
    }
    Ok(connection)
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    // Exclusive, so that two relays never give out the same offsets.
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
