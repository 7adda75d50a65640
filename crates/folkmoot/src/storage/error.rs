//! What can go wrong in the store, one enum per family of operations.
//!
//! Each variant says whether anything changed and whether a retry is safe.

use std::path::PathBuf;

use super::ids::{Lsn, WriteEpoch};

/// Why a data directory could not be opened. Nothing was changed in it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the directory open.
    #[error("data directory {path} is in use by {holder}")]
    Locked {
        /// The directory.
        path: PathBuf,
        /// "process 1234", or "another process" when its number is not readable.
        holder: String,
    },
    /// The directory was written by a program with another on-disk format.
    #[error("data directory {path} has format {found}, this program reads format {expected}")]
    OtherVersion {
        /// The directory.
        path: PathBuf,
        /// What its VERSION file says.
        found: String,
        /// What this program reads.
        expected: u32,
    },
    /// The directory holds files, but no VERSION: it is not ours to write into.
    #[error("{path} is neither empty nor a data directory: it has no VERSION file")]
    NotADataDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// The database was migrated by a newer program.
    #[error("{path} has schema {found}, this program knows schemas up to {newest}")]
    NewerSchema {
        /// The database file.
        path: PathBuf,
        /// Its `user_version`.
        found: u32,
        /// The newest migration known here.
        newest: u32,
    },
    /// A segment is damaged before its end: acknowledged records would be lost by going on.
    #[error("log segment {segment} is corrupt at byte {position}: {reason}")]
    Corrupt {
        /// The segment's file.
        segment: PathBuf,
        /// Where the damaged record starts.
        position: u64,
        /// What is wrong there.
        reason: String,
    },
    /// Records that SQLite has not seen are in no segment: a segment is missing.
    #[error("the log begins at record {found}, but the database ends at {applied}")]
    MissingRecords {
        /// The last record applied to SQLite.
        applied: Lsn,
        /// The first one that is in the log.
        found: Lsn,
    },
    /// The file system refused.
    #[error("cannot open {path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// SQLite refused.
    #[error("cannot open the database: {0}")]
    Sqlite(#[from] rusqlite::Error),
}

/// Why a record was not acknowledged.
///
/// A record refused with [`Self::DiskFull`] or [`Self::Failed`] may still turn up if the process
/// dies before the next successful append; a retry is therefore safe only under the same
/// idempotency key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The disk is full. The store probes by itself and takes writes again once there is room.
    #[error("the disk is full: writes are refused until there is room")]
    DiskFull,
    /// The disk failed in another way. The store goes on probing; retry later.
    #[error("the log cannot be written: {0}")]
    Failed(String),
    /// The store is closing; nothing was written. Retry after the restart.
    #[error("the store is shutting down")]
    ShuttingDown,
    /// The record is over the limit; nothing was written and a retry is pointless.
    #[error("a record of {bytes} bytes is over the limit of {limit} bytes")]
    TooLarge {
        /// The record's size.
        bytes: usize,
        /// The most that a record may have.
        limit: usize,
    },
    /// The queue is over its hard limit; nothing was written. Await [`super::Store::ready`].
    #[error("the log's queue holds {bytes} bytes, over its limit of {limit}")]
    Overloaded {
        /// What is waiting.
        bytes: usize,
        /// The hard limit.
        limit: usize,
    },
    /// An earlier append of this stream and epoch failed, so this one might leave a gap. Nothing
    /// was written. Load the room or user again; its snapshot carries the new epoch.
    #[error("write epoch {given} ended with a failed append; the current one is {current}")]
    StaleEpoch {
        /// The epoch handed in.
        given: WriteEpoch,
        /// The one that is valid now.
        current: WriteEpoch,
    },
}

/// Why a control transaction was not committed. Nothing changed in any of these cases.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Another account has this name. Retry with another one.
    #[error("the name {0:?} is taken")]
    NameTaken(String),
    /// The account, room or invite it refers to does not exist. A retry is pointless.
    #[error("no such {0}")]
    NotFound(&'static str),
    /// A rule forbids it as things are; a retry is pointless.
    #[error("{0}")]
    NotAllowed(&'static str),
    /// The disk is full; a retry is safe once there is room.
    #[error("the disk is full")]
    DiskFull,
    /// The store is closing; a retry is safe after the restart.
    #[error("the store is shutting down")]
    ShuttingDown,
    /// Our own bug, which the log of the server tells of; the transaction was taken back.
    #[error("a change failed by a bug of the server")]
    Panicked,
    /// SQLite refused; whether a retry helps depends on the reason.
    #[error("the database refused: {0}")]
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for ControlError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::DiskFull,
            _ => Self::Sqlite(error),
        }
    }
}

/// Why a read has no answer. Reads change nothing; a retry is always safe.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The store is closing.
    #[error("the store is shutting down")]
    ShuttingDown,
    /// The log's tail cannot be moved into SQLite, so a read would be out of date.
    #[error("the log cannot be moved into the database: {0}")]
    Stalled(String),
    /// Our own bug, which the log of the server tells of.
    #[error("a read failed by a bug of the server")]
    Panicked,
    /// SQLite refused.
    #[error("the database refused: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// A stored value does not decode: damaged, or written by a newer program.
    #[error("a stored record does not decode: {0}")]
    Undecodable(#[from] super::record::RecordError),
}
