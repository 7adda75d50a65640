//! SQLite behind the log: one connection that writes, a few that read.
//!
//! Only the `writer` thread changes anything: it applies the log in batches and runs control
//! transactions.

pub(crate) mod apply;
mod apply_attachments;
mod apply_expired;
mod apply_moderation;
mod apply_room;
mod apply_user;
pub(crate) mod migrations;
pub(crate) mod moderation;
pub(crate) mod mover;
pub(crate) mod name_words;
pub(crate) mod place;
pub(crate) mod readers;
pub(crate) mod together;
pub(crate) mod writer;

#[cfg(test)]
mod tests;

use std::path::Path;

use rusqlite::OpenFlags;
use rusqlite::config::DbConfig;

use super::error::OpenError;
use super::sql::Connection;

/// How many prepared statements a connection keeps: all that this module has.
const STATEMENTS_MAX: usize = 128;

/// Pages of SQLite's own WAL (4 KiB each) that are gathered before they go into the database file.
/// At the default of 1,000 nearly every batch paid for that; at 16,384 the mover was measured 1.7
/// times as fast.
const CHECKPOINT_PAGES: u32 = 16_384;

/// Opens the one connection that writes and brings the schema up to date.
pub(crate) fn open_writer(path: &Path) -> Result<Connection, OpenError> {
    let connection = open_unmigrated(path)?;
    migrations::migrate(&connection, path)?;
    Ok(connection)
}

/// The same with the schema that the file has.
pub(crate) fn open_unmigrated(path: &Path) -> Result<Connection, OpenError> {
    let connection = rusqlite::Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // Segments are deleted once SQLite has their records, so its commits must be durable
    // themselves.
    connection.pragma_update(None, "synchronous", "FULL")?;
    // What was deleted is overwritten, not only forgotten: its text must not be found in the file.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    // In KiB: the pages that a batch touches should stay in memory from one batch to the next.
    connection.pragma_update(None, "cache_size", -65_536)?;
    keep_statements(&connection)?;
    Ok(connection.into())
}

/// Opens a connection that only reads.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, OpenError> {
    Ok(open_sqlite_reader(path)?.into())
}

/// The same as SQLite's own connection, for what only SQLite has.
pub(crate) fn open_sqlite_reader(path: &Path) -> Result<rusqlite::Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = rusqlite::Connection::open_with_flags(path, flags)?;
    connection.pragma_update(None, "cache_size", -16_384)?;
    connection.pragma_update(None, "mmap_size", 1_i64 << 30)?;
    // A reader meets a lock only while the writer recovers or truncates the WAL file.
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    keep_statements(&connection)?;
    Ok(connection)
}

/// Statements are compiled once. By default SQLite compiles one again whenever it is run with
/// another number in a place that its plan might depend on, which took three quarters of all reads.
fn keep_statements(connection: &rusqlite::Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}
