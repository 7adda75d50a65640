//! A file that becomes all that an empty keyspace has. If that is cut off, it goes on from there.
//!
//! Rows go into `index.sqlite` of a directory of its own. Once they are all there, `index.filled` is
//! made of it, which never changes: its pieces have the name that is in it, so whoever was killed
//! while they were written finds those that are in Cassandra and goes on with the next one.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::address::CassandraAddress;
use super::beside::Scratch;
use super::index::{self, Place};
use super::keeper;
use super::session::Session;
use super::snapshot::{self, Whole};
use crate::progress::{Bar, note};
use crate::storage::error::OpenError;
use crate::storage::sql::{Connection, SqlError};

/// The directory in a data directory, until the keyspace is filled.
const DIRECTORY: &str = "migration";

/// A keyspace that is to be filled.
pub(crate) struct Filling {
    address: CassandraAddress,
    scratch: Scratch,
}

impl Filling {
    /// Begins, or goes on with what an earlier one has left in the data directory; without one it
    /// goes on with nothing. `None` if the keyspace has data that is not of this filling. Blocks.
    pub(crate) fn begin(
        address: &CassandraAddress,
        data: Option<&Path>,
    ) -> Result<Option<Self>, OpenError> {
        let place = data.map_or_else(std::env::temp_dir, directory);
        let failed = |source| OpenError::Cassandra { address: address.clone(), source };
        // Before anything is made: a keyspace that is not empty leaves no trace of the attempt.
        if !may_fill(address, &filled(&index::path(&place))).map_err(failed)? {
            return Ok(None);
        }
        let scratch = match data {
            Some(_) => Scratch::kept(&place),
            None => Scratch::within(&place),
        };
        let scratch = scratch.map_err(|source| OpenError::Io { path: place, source })?;
        Ok(Some(Self { address: address.clone(), scratch }))
    }

    /// Where rows go.
    pub(crate) fn file(&self) -> PathBuf {
        self.scratch.file()
    }

    /// Where that is, and what is made of it.
    pub(crate) fn directory(&self) -> &Path {
        self.scratch.path()
    }

    /// Has the closed file, without the table that says how far it was filled, become all that the
    /// keyspace has; false if that has other data by now. Blocks.
    pub(crate) fn finish(self, progress_table: &str) -> Result<bool, OpenError> {
        let is_filled = self.fill(progress_table).map_err(|source| self.failed(source))?;
        if is_filled {
            let path = self.file();
            self.scratch.remove().map_err(|source| OpenError::Io { path, source })?;
        }
        Ok(is_filled)
    }

    fn fill(&self, progress_table: &str) -> Result<bool, SqlError> {
        let filled = filled(&self.file());
        if !filled.exists() {
            make(&self.file(), &filled, progress_table)?;
        }
        let (place, schema) = keeper::read(&filled)?;
        let bytes = std::fs::metadata(&filled).map_err(failed_at(&filled))?.len();
        let bar = RefCell::new(Bar::new("Cassandra", snapshot::pieces_of(bytes)));
        let go_on = || {
            bar.borrow_mut().add(1);
            true
        };
        let session = Session::connect(&self.address)?;
        let there = snapshot::there(&session, place.name)?;
        if there > 0 {
            note(&format!("going on after {there} pieces that are in Cassandra"));
        }
        let file = Whole { file: &filled, place, schema, name: place.name, there };
        let published = snapshot::publish(&session, file, None, &go_on)?;
        bar.into_inner().end();
        Ok(published.is_some())
    }

    fn failed(&self, source: SqlError) -> OpenError {
        OpenError::Cassandra { address: self.address.clone(), source }
    }
}

/// Where what is to fill a keyspace is in a data directory, if that was begun.
pub(crate) fn directory(data: &Path) -> PathBuf {
    data.join(DIRECTORY)
}

/// What is made of a file once all rows are in it.
fn filled(file: &Path) -> PathBuf {
    file.with_extension("filled")
}

/// Whether the keyspace is empty, or was filled by the file that is there.
fn may_fill(address: &CassandraAddress, filled: &Path) -> Result<bool, SqlError> {
    let session = Session::connect(address)?;
    let Some(current) = snapshot::current(&session)? else { return Ok(true) };
    Ok(filled.exists() && keeper::read(filled)?.0.name == current.entry)
}

/// Copies what was filled, durably and as a whole or not at all.
fn make(from: &Path, to: &Path, progress_table: &str) -> Result<(), SqlError> {
    let made = to.with_extension("made");
    index::remove(&made).map_err(failed_at(&made))?;
    keeper::copy(from, &made)?;
    let copy = Connection::from(rusqlite::Connection::open(&made)?);
    copy.execute_batch(&format!("DROP TABLE IF EXISTS {progress_table}"))?;
    Place::first().begin(&copy)?;
    drop(copy);
    let synced = File::open(&made).and_then(|made| made.sync_all());
    synced.and_then(|()| std::fs::rename(&made, to)).map_err(failed_at(to))
}

fn failed_at(path: &Path) -> impl Fn(io::Error) -> SqlError {
    move |error| SqlError::Refused(format!("{}: {error}", path.display()))
}
