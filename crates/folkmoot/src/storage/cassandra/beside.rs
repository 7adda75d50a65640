//! For tasks of an administrator's: all that a keyspace has, as of now, in a file that is there
//! only meanwhile. The server that writes, if there is one, is not disturbed.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::address::CassandraAddress;
use super::index::{self, Place};
use super::names::Name;
use super::session::Session;
use super::{log, snapshot};
use crate::storage::error::OpenError;
use crate::storage::sql::{Connection, SqlError};
use crate::storage::sqlite::migrations;

/// A directory that nobody else may read, removed with all that is in it unless it is to be kept.
pub(crate) struct Scratch {
    path: PathBuf,
    is_kept: bool,
}

impl Scratch {
    /// In the system's directory for what is there only meanwhile.
    pub(crate) fn new() -> io::Result<Self> {
        Self::within(&std::env::temp_dir())
    }

    /// A new one in another directory.
    pub(super) fn within(directory: &Path) -> io::Result<Self> {
        let path = directory.join(format!("folkmoot-{:?}", Name::draw()));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self { path, is_kept: false })
    }

    /// At a place where it is found again, until it is removed.
    pub(super) fn kept(path: &Path) -> io::Result<Self> {
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(Self { path: path.to_owned(), is_kept: true }),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The file of an index in it.
    pub(crate) fn file(&self) -> PathBuf {
        index::path(&self.path)
    }

    /// Removes it, also if it was to be kept.
    pub(super) fn remove(mut self) -> io::Result<()> {
        self.is_kept = true;
        std::fs::remove_dir_all(&self.path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "what was there meanwhile is left");
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
    let scratch = Scratch::new();
    let scratch = scratch.map_err(|source| OpenError::Io { path: std::env::temp_dir(), source })?;
    let last = log::last_entry(&session, snapshot.number).map_err(failed)?;
    let fetched = index::fetch(&scratch.file(), &session, &snapshot, last);
    let connection = fetched.map_err(failed)?;
    let place = Place::read(&connection).map_err(failed)?;
    let mark = place.map_or_else(String::new, |it| format!("{} {:?}", it.number, Some(it.name)));
    Ok(Some(Fetched { connection, mark, scratch }))
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
