//! `folkmoot backup` and `folkmoot restore`: everything that a server keeps in one file, taken
//! while the server runs, and a data directory made of it.
//!
//! In a backup are the database, the part of the log that the database lacks, and the files of
//! messages and people. The search index is not: the server makes it anew from the database. A
//! restored directory begins a new epoch, so clients fetch anew, and no offset means two things.

mod archive;
mod restore;
mod take;
mod unfinished;

use std::io;
use std::path::{Path, PathBuf};

use crate::storage::{CopyError, OpenError, SqlError};

pub use archive::{ARCHIVE_FORMAT, ArchiveError};
pub(crate) use restore::release;
pub use restore::{RestoredBackup, restore};
pub use take::{BackedUp, back_up};

/// Why a backup was not made or not restored. What had been written by then was removed, unless the
/// last answer of a database is all that was missing.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A backup never replaces a file.
    #[error("{0} is there already; name another file, or remove it first")]
    FileExists(PathBuf),
    /// Two at once would write over each other.
    #[error("another backup is being written there ({0}); name another file, or wait for it")]
    Underway(PathBuf),
    /// A backup is restored into an empty directory only.
    #[error("{0} is not empty; restore into an empty directory (--data DIR), or empty it first")]
    NotEmpty(PathBuf),
    /// The data directory cannot be read, or what was restored cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The database cannot be read, or does not take what the backup has.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// The backup cannot be read.
    #[error("{path} was not restored: {source}; nothing was changed, try another copy of it")]
    Archive {
        /// The backup.
        path: PathBuf,
        /// What is wrong with it.
        source: ArchiveError,
    },
    /// The backup is of a data directory that this program does not read.
    #[error("{path} was not restored: {reason}")]
    Content {
        /// The backup.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// The database cannot be copied.
    #[error("the database of {path} cannot be copied to {copy}: {source}; is there room for it?")]
    Database {
        /// The data directory.
        path: PathBuf,
        /// Where to.
        copy: PathBuf,
        /// What the database said.
        source: SqlError,
    },
    /// The file system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

fn io_error(path: &Path, source: io::Error) -> BackupError {
    BackupError::Io { path: path.to_owned(), source }
}

/// Makes the names in a directory durable.
fn sync_directory(path: &Path) -> Result<(), BackupError> {
    let synced = std::fs::File::open(path).and_then(|directory| directory.sync_all());
    synced.map_err(|source| io_error(path, source))
}
