//! What can go wrong in the store, one enum per family of operations.
//!
//! Each variant says whether anything changed and whether a retry is safe.

use althing::Wire;
use std::path::PathBuf;

use super::cassandra::address::CassandraAddress;
use super::ids::{Lsn, WriteEpoch};
use super::postgres::address::DatabaseAddress;
use super::sql::SqlError;

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
    /// Nodes that know nothing of this one write to the database.
    #[error("{address} is in use by {holder}, of another cluster than {cluster} (--cluster-name)")]
    OtherCluster {
        /// Where it is, without the password.
        address: DatabaseAddress,
        /// The session of one of them, as PostgreSQL shows it.
        holder: String,
        /// The cluster of this node.
        cluster: String,
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
    /// What was acknowledged last is in the log, and the database has no room for it.
    #[error(
        "the disk is full: {records} records of the log cannot be moved into {path}; \
         nothing is lost, make room and start again"
    )]
    DiskFull {
        /// The database.
        path: PathBuf,
        /// So many wait.
        records: u64,
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
    /// The directory belongs to a server with the other kind of store.
    #[error("data directory {path} {holds}")]
    OtherStore {
        /// The directory.
        path: PathBuf,
        /// What it holds, and what to do about it.
        holds: &'static str,
    },
    /// PostgreSQL is away, or does not let us in.
    #[error("cannot use {address}: {source}")]
    Unreachable {
        /// Where it was looked for, without the password.
        address: DatabaseAddress,
        /// What it said, or that it said nothing.
        source: SqlError,
    },
    /// Another server writes to the database.
    #[error("{address} is in use by {holder}")]
    DatabaseInUse {
        /// Where it is, without the password.
        address: DatabaseAddress,
        /// Its session, as PostgreSQL shows it.
        holder: String,
    },
    /// The database was migrated by a newer program.
    #[error("{address} has schema {found}, this program knows schemas up to {newest}")]
    NewerDatabase {
        /// Where it is, without the password.
        address: DatabaseAddress,
        /// The steps it has taken.
        found: u32,
        /// The newest one known here.
        newest: u32,
    },
    /// No server has begun to use the database.
    #[error("{address} holds no data of Folkmoot")]
    NoTables {
        /// Where it is, without the password.
        address: DatabaseAddress,
    },
    /// The database is of an older program.
    #[error("{address} has schema {found}, this program wants {newest}: start its server once")]
    OlderDatabase {
        /// Where it is, without the password.
        address: DatabaseAddress,
        /// The steps it has taken.
        found: u32,
        /// The newest one known here.
        newest: u32,
    },
    /// It was to be filled from another store, and that was cut off.
    #[error(
        "{address} holds a part of another store: run the same `folkmoot migrate` again, which goes \
         on, or empty it (DROP SCHEMA folkmoot CASCADE)"
    )]
    Unfinished {
        /// Where it is, without the password.
        address: DatabaseAddress,
    },
    /// Cassandra is away, does not let us in, or has what cannot be used.
    #[error("cannot use {address}: {source}")]
    Cassandra {
        /// Where it is, without the password.
        address: CassandraAddress,
        /// What it said, or what is wrong.
        source: SqlError,
    },
    /// No server has begun to use the keyspace.
    #[error("{address} holds no data of Folkmoot")]
    EmptyKeyspace {
        /// Where it is, without the password.
        address: CassandraAddress,
    },
    /// A task that works beside the server can change nothing in Cassandra.
    #[error(
        "{task} works on {address} only while no server has the data directory open: stop it first"
    )]
    NotBeside {
        /// The task.
        task: &'static str,
        /// Where it is, without the password.
        address: CassandraAddress,
    },
    /// Several nodes cannot share it.
    #[error(
        "several nodes cannot share {address}: a store in Cassandra is for one server; nodes share \
         postgres://..."
    )]
    OneNode {
        /// Where it is, without the password.
        address: CassandraAddress,
    },
    /// The database cannot hold every text.
    #[error("{address} has the encoding {encoding}; make a database with UTF8")]
    DatabaseEncoding {
        /// Where it is, without the password.
        address: DatabaseAddress,
        /// As PostgreSQL calls it.
        encoding: String,
    },
    /// The database takes no writes.
    #[error("{address} is a standby, which only reads: give the server that it follows")]
    Standby {
        /// Where it is, without the password.
        address: DatabaseAddress,
    },
    /// The database refused.
    #[error("cannot open the database: {0}")]
    Database(#[from] SqlError),
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error.into())
    }
}

/// Why a record was not acknowledged.
///
/// A record refused with [`Self::DiskFull`] or [`Self::Failed`] may still turn up if the process
/// dies before the next successful append; a retry is therefore safe only under the same
/// idempotency key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Wire)]
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
    /// Another server writes to the database now; nothing was written, nor will be by this one.
    #[error("another server has taken the database over")]
    TakenOver,
    /// Another node has appended to the stream since it was loaded here; nothing was written. Load
    /// the room or user again.
    #[error("another node of this server has the room or user now")]
    OtherNode,
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

/// Why a control transaction was not committed. Nothing changed in any of these cases, but for
/// [`Self::Away`].
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
    /// The database cannot be reached. What was asked may have been done, if the connection broke
    /// while it was and has not come back since.
    #[error("the database cannot be reached: {0}")]
    Away(String),
    /// Another server writes to the database now; a retry is pointless.
    #[error("another server has taken the database over")]
    TakenOver,
    /// Our own bug, which the log of the server tells of; the transaction was taken back.
    #[error("a change failed by a bug of the server")]
    Panicked,
    /// The database refused; whether a retry helps depends on the reason.
    #[error("the database refused: {0}")]
    Database(SqlError),
}

impl From<SqlError> for ControlError {
    fn from(error: SqlError) -> Self {
        match error {
            SqlError::Away(reason) => Self::Away(reason),
            SqlError::Fenced => Self::TakenOver,
            SqlError::SetBack => Self::Away(error.to_string()),
            error if error.is_disk_full() => Self::DiskFull,
            error => Self::Database(error),
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
    /// The database cannot be reached.
    #[error("the database cannot be reached: {0}")]
    Away(String),
    /// The database refused.
    #[error("the database refused: {0}")]
    Database(SqlError),
    /// A stored value does not decode: damaged, or written by a newer program.
    #[error("a stored record does not decode: {0}")]
    Undecodable(#[from] super::record::RecordError),
}

impl From<SqlError> for ReadError {
    fn from(error: SqlError) -> Self {
        match error {
            SqlError::Away(reason) => Self::Away(reason),
            error => Self::Database(error),
        }
    }
}
