//! Carries all that a store keeps from one database to another, table by table: between SQLite,
//! PostgreSQL and Cassandra, whose rows are those of its index.
//!
//! Rows go in the order of their keys, a page in each transaction of the target, together with the
//! place that was reached: so a copy that was killed goes on where it was, and no row comes twice.
//! What was carried is read again at the end, on both sides. The target begins an epoch of its own:
//! the source stays as it is and may serve again, and no offset means two things under one epoch.

mod carry;
mod digest;
mod progress;
mod site;
mod source;
mod tables;
mod target;

use std::path::PathBuf;

use super::error::OpenError;
use super::sql::SqlError;

pub(crate) use carry::carry;
pub use digest::Digest;
pub(crate) use progress::is_unfinished;
pub use site::Site;
pub(crate) use source::Source;
pub(crate) use target::Target;

/// Why a store was not carried over. The source is as it was.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// One of the two cannot be used, or a server uses it.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// One of the databases refused; running the same command again goes on from there.
    #[error("{0}; the same command goes on from here")]
    Database(#[from] SqlError),
    /// There is no store.
    #[error("{0} holds no data of Folkmoot")]
    NoData(Site),
    /// Nothing is carried over what is there.
    #[error("{0} is not empty; give an empty database, or a directory that is missing or empty")]
    NotEmpty(Site),
    /// It was filled from this very source, which has not changed since.
    #[error(
        "{0} is not empty: all that is to be carried there is there already, and servers may begin \
         on it"
    )]
    AllThere(Site),
    /// It was begun from elsewhere, or the source has changed since.
    #[error(
        "{0} holds a part of what was carried from another store, or the store has changed since; \
         empty it (DROP SCHEMA folkmoot CASCADE, or remove the directory) and begin again"
    )]
    OtherSource(Site),
    /// A server has written to it while it was read.
    #[error(
        "{0} has changed meanwhile: stop its server and begin again; the target is not in use yet"
    )]
    Changed(Site),
    /// Both sides are the same.
    #[error("{0} cannot be carried onto itself")]
    Same(Site),
    /// What was carried is not what is there.
    #[error(
        "table {table} has {target} at the target and {source_side} at the source; empty the target \
         and begin again"
    )]
    Differs {
        /// The table.
        table: String,
        /// What it has at the target.
        target: Digest,
        /// What it has at the source.
        source_side: Digest,
    },
    /// The file system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl From<rusqlite::Error> for CopyError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error.into())
    }
}
