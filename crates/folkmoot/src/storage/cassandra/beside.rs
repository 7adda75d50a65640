//! For tasks of an administrator's: all that a keyspace has, as of now, in a file that is there
//! only meanwhile; and a file that becomes all that an empty keyspace has. The server that writes,
//! if there is one, is not disturbed.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::time::Instant;

use super::address::CassandraAddress;
use super::index::{self, Place};
use super::names::Name;
use super::session::Session;
use super::{keeper, log, snapshot};
use crate::storage::error::OpenError;
use crate::storage::sql::{Connection, SqlError};
use crate::storage::sqlite::migrations;

/// A directory that nobody else may read, removed with all that is in it.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// In the system's directory for what is there only meanwhile.
    pub(crate) fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("folkmoot-{:?}", Name::draw()));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    /// The one file in it.
    pub(crate) fn file(&self) -> PathBuf {
        index::path(&self.0)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, path = %self.0.display(), "what was there meanwhile is left");
        }
    }
}

/// What a keyspace had at one moment.
pub(crate) struct Fetched {
    // Before the directory that it is in.
    pub(crate) connection: Connection,
    /// By what it is told from any other, and from itself once it has changed.
    pub(crate) mark: String,
    pub(crate) scratch: Scratch,
}

/// Reads all that a keyspace has; `None` if that is nothing. Blocks.
pub(crate) fn fetch(address: &CassandraAddress) -> Result<Option<Fetched>, OpenError> {
    let failed = |source| OpenError::Cassandra { address: address.clone(), source };
    let session = Session::connect(address).map_err(failed)?;
    let Some(snapshot) = snapshot::current(&session).map_err(failed)? else { return Ok(None) };
    if snapshot.schema != migrations::newest() {
        let source = SqlError::Refused(format!(
            "it has schema {}, this program wants {}: start its server once",
            snapshot.schema,
            migrations::newest()
        ));
        return Err(failed(source));
    }
    let scratch = scratch()?;
    let last = log::last_entry(&session, snapshot.number).map_err(failed)?;
    let fetched = index::fetch(&scratch.file(), &session, &snapshot, last);
    let connection = fetched.map_err(failed)?;
    let place = Place::read(&connection).map_err(failed)?;
    let mark = place.map_or_else(String::new, |it| format!("{} {:?}", it.number, Some(it.name)));
    Ok(Some(Fetched { connection, mark, scratch }))
}

/// Whether a keyspace has data. Blocks.
pub(crate) fn is_filled(address: &CassandraAddress) -> Result<bool, OpenError> {
    let failed = |source| OpenError::Cassandra { address: address.clone(), source };
    let session = Session::connect(address).map_err(failed)?;
    Ok(snapshot::current(&session).map_err(failed)?.is_some())
}

/// Has a closed file become all that a keyspace has; false if that has data already. Blocks.
pub(crate) fn fill(address: &CassandraAddress, scratch: &Scratch) -> Result<bool, OpenError> {
    let failed = |source| OpenError::Cassandra { address: address.clone(), source };
    let session = Session::connect(address).map_err(failed)?;
    let made = index::open(&scratch.file()).map_err(failed)?;
    Place::first().begin(&made).map_err(failed)?;
    drop(made);
    let taken = keeper::take(&session, &scratch.file(), None, &|| true).map_err(failed)?;
    Ok(taken.is_some())
}

/// A directory for a file that is to fill a keyspace.
pub(crate) fn scratch() -> Result<Scratch, OpenError> {
    let path = std::env::temp_dir();
    Scratch::new().map_err(|source| OpenError::Io { path, source })
}

/// By what a keyspace is told from any other, and from itself once it has changed; `None` if it has
/// no data. Blocks.
pub(crate) fn mark(address: &CassandraAddress) -> Result<Option<String>, OpenError> {
    let failed = |source| OpenError::Cassandra { address: address.clone(), source };
    let session = Session::connect(address).map_err(failed)?;
    let Some(snapshot) = snapshot::current(&session).map_err(failed)? else { return Ok(None) };
    let last = log::last_entry(&session, snapshot.number).map_err(failed)?;
    let name = match last == snapshot.number {
        true => Some(snapshot.entry),
        false => {
            let until = Instant::now() + log::AWAY_MAX;
            log::name_of(&session, last, until).map_err(failed)?
        }
    };
    Ok(Some(format!("{last} {name:?}")))
}
