//! The index: a SQLite database in the data directory, which has what the log has up to a place and
//! can be made anew from the last snapshot and the entries behind it.

use std::io;
use std::path::{Path, PathBuf};

use super::entry::Entry;
use super::log;
use super::names::Name;
use super::session::Session;
use super::snapshot::{self, Snapshot};
use crate::storage::sql::{Connection, OptionalExtension, SqlError, params};
use crate::storage::sqlite::open_unmigrated;

/// The file of the index; SQLite's own files beside it begin with its name.
const FILE: &str = "index.sqlite";

/// How far an index is. It changes in the transactions that bring it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The last entry that is in it; 0: none is.
    pub(super) number: u64,
    /// That entry's name, so that no other log is taken for this one.
    pub(super) name: Name,
    /// Bytes of all entries up to there.
    pub(super) bytes: u64,
}

impl Place {
    /// Of a log that has no entries.
    pub(super) fn first() -> Self {
        Self { number: 0, name: Name::draw(), bytes: 0 }
    }

    /// The place of the next entry.
    pub(super) fn next(self, name: Name, data: &[u8]) -> Self {
        let (number, bytes) = (self.number + 1, self.bytes + data.len() as u64);
        Self { number, name, bytes }
    }

    /// Where an index is.
    pub(super) fn read(index: &Connection) -> Result<Option<Self>, SqlError> {
        let found = index.query_row("SELECT number, name, bytes FROM log_place", [], |row| {
            let (number, bytes): (i64, i64) = (row.get(0)?, row.get(2)?);
            Ok((number.cast_unsigned(), row.get::<Vec<u8>>(1)?, bytes.cast_unsigned()))
        });
        let found = found
            .optional()?
            .and_then(|(number, name, bytes)| Some(Self { number, name: Name::of(&name)?, bytes }));
        Ok(found)
    }

    /// Notes it in an index that has the table.
    pub(super) fn note(self, transaction: &Connection) -> Result<(), SqlError> {
        let sql = "UPDATE log_place SET number = ?1, name = ?2, bytes = ?3";
        let (number, bytes) = (self.number.cast_signed(), self.bytes.cast_signed());
        let mut statement = transaction.prepare_cached(sql)?;
        statement.execute(params![number, self.name.bytes(), bytes]).map(drop)
    }

    /// Makes the table that it is noted in.
    pub(super) fn begin(self, index: &Connection) -> Result<(), SqlError> {
        index.execute_batch(
            "CREATE TABLE IF NOT EXISTS log_place (one INTEGER PRIMARY KEY CHECK (one = 1), \
             number INTEGER NOT NULL, name BLOB NOT NULL, bytes INTEGER NOT NULL); \
             INSERT OR IGNORE INTO log_place VALUES (1, 0, x'', 0)",
        )?;
        self.note(index)
    }
}

/// Where the index of a data directory is.
pub(crate) fn path(directory: &Path) -> PathBuf {
    directory.join(FILE)
}

/// Removes an index.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        match std::fs::remove_file(&name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Opens the connection that writes an index. The log has what a loss of power takes of it.
pub(super) fn open(path: &Path) -> Result<Connection, SqlError> {
    let opened = open_unmigrated(path).map_err(|error| SqlError::Refused(error.to_string()))?;
    opened.execute_batch("PRAGMA synchronous = NORMAL")?;
    Ok(opened)
}

/// Brings the index at `path` up to entry `last`; makes it anew if it is missing or too old.
///
/// # Errors
/// It has entries that the log lacks; or either cannot be used.
pub(super) fn prepare(
    path: &Path,
    session: &Session,
    snapshot: &Snapshot,
    last: u64,
) -> Result<Connection, SqlError> {
    if path.exists() {
        let index = open(path)?;
        match Place::read(&index) {
            Ok(Some(place)) if is_of_log(place, session, snapshot, last)? => {
                match catch_up(&index, place, session, last) {
                    Ok(_) => return Ok(index),
                    Err(error @ SqlError::Away(_)) => return Err(error),
                    Err(error) => tracing::warn!(%error, "the index is made anew"),
                }
            }
            Ok(_) => tracing::warn!("the index is older than the last snapshot: it is made anew"),
            Err(error) => tracing::warn!(%error, "the index cannot be read: it is made anew"),
        }
    }
    fetch(path, session, snapshot, last)
}

/// Makes an index of the snapshot and the entries behind it.
pub(super) fn fetch(
    path: &Path,
    session: &Session,
    snapshot: &Snapshot,
    last: u64,
) -> Result<Connection, SqlError> {
    let failed = |error: io::Error| SqlError::Refused(format!("{}: {error}", path.display()));
    let unfinished = path.with_extension("fetched");
    remove(&unfinished).map_err(failed)?;
    snapshot::fetch(session, snapshot, &unfinished)?;
    remove(path).map_err(failed)?;
    std::fs::rename(&unfinished, path).map_err(failed)?;
    let index = open(path)?;
    let place = Place::read(&index)?.ok_or_else(|| {
        SqlError::Refused("the snapshot in Cassandra does not say how far it is".to_owned())
    })?;
    catch_up(&index, place, session, last)?;
    Ok(index)
}

/// Whether an index can be brought up to date; false if it is older than the snapshot.
fn is_of_log(
    place: Place,
    session: &Session,
    snapshot: &Snapshot,
    last: u64,
) -> Result<bool, SqlError> {
    if place.number < snapshot.number {
        return Ok(false);
    }
    let until = std::time::Instant::now() + log::AWAY_MAX;
    let there = match place.number {
        number if number == snapshot.number => Some(snapshot.entry),
        number if number <= last => log::name_of(session, number, until)?,
        _ => None,
    };
    match there == Some(place.name) {
        true => Ok(true),
        false => Err(SqlError::Refused(format!(
            "{FILE} in the data directory has entry {}, which this keyspace lacks: it is of another \
             keyspace, or Cassandra was set back. Remove {FILE} to go on with what Cassandra has",
            place.number
        ))),
    }
}

/// Applies what an index lacks.
fn catch_up(
    index: &Connection,
    mut place: Place,
    session: &Session,
    last: u64,
) -> Result<Place, SqlError> {
    if place.number < last {
        tracing::info!(entries = last - place.number, "applying the log's tail to the index");
    }
    log::read(session, place.number, last, |kept| {
        place = place.next(kept.name, &kept.data);
        Entry::decode(&kept.data)?.apply(index, place)
    })?;
    Ok(place)
}
