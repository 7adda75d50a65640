//! What a statement can fail with, on either database.

use rusqlite::types::FromSqlError;
use tokio_postgres::error::{DbError, SqlState};

/// The result of a statement.
pub(crate) type Result<T, E = SqlError> = std::result::Result<T, E>;

/// Why a statement failed. Its transaction is to be taken back.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// SQLite refused.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// PostgreSQL refused; it is there, and says why.
    #[error("{}{}", .0.message(), .0.detail().map(|detail| format!(": {detail}")).unwrap_or_default())]
    Postgres(Box<DbError>),
    /// PostgreSQL or Cassandra does not answer. Whether what was asked has happened is unknown; a
    /// transaction that was not asked to commit was taken back.
    #[error("the database cannot be reached: {0}")]
    Away(String),
    /// Another server writes to the database; nothing of ours is taken any more.
    #[error("another server has taken the database over")]
    Fenced,
    /// The database lacks what it had acknowledged; nothing of ours is taken any more.
    #[error(
        "the database lacks what it had acknowledged: it was set back, or a standby that was behind \
         took its place"
    )]
    SetBack,
    /// A row was asked for, and there is none.
    #[error("the query returned no row")]
    NoRow,
    /// A value is of another kind than its column is to have.
    #[error("a stored value cannot be read: {0}")]
    Value(#[from] FromSqlError),
    /// A parameter does not fit the column that it is for.
    #[error("a value cannot be written: {0}")]
    Parameter(String),
    /// The store in Cassandra is not as it has to be, or does not take this; nothing was changed.
    #[error("{0}")]
    Refused(String),
}

impl SqlError {
    /// Whether there is no room on the database's disk.
    pub(crate) fn is_disk_full(&self) -> bool {
        match self {
            Self::Sqlite(error) => error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull),
            Self::Postgres(error) => *error.code() == SqlState::DISK_FULL,
            _ => false,
        }
    }

    /// The same for one more of those whom it concerns.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::Sqlite(rusqlite::Error::SqliteFailure(code, text)) => {
                Self::Sqlite(rusqlite::Error::SqliteFailure(*code, text.clone()))
            }
            Self::Sqlite(_) | Self::NoRow => Self::rolled_back(),
            Self::Postgres(error) => Self::Postgres(error.clone()),
            Self::Away(reason) => Self::Away(reason.clone()),
            Self::Fenced => Self::Fenced,
            Self::SetBack => Self::SetBack,
            Self::Value(error) => Self::Parameter(error.to_string()),
            Self::Parameter(reason) => Self::Parameter(reason.clone()),
            Self::Refused(reason) => Self::Refused(reason.clone()),
        }
    }

    /// What somebody is told whose work was taken back with that of others.
    pub(crate) fn rolled_back() -> Self {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ABORT_ROLLBACK);
        Self::Sqlite(rusqlite::Error::SqliteFailure(code, None))
    }
}

impl From<tokio_postgres::Error> for SqlError {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(said) if said.code().code() == TAKEN_OVER => Self::Fenced,
            // A server that shuts down or starts is as good as away.
            Some(said) if !is_going_away(said.code()) => Self::Postgres(Box::new(said.clone())),
            _ => Self::Away(format!("PostgreSQL: {}", in_full(&error))),
        }
    }
}

/// What the database itself says to a server whose number counts no longer.
const TAKEN_OVER: &str = "FM001";

fn is_going_away(code: &SqlState) -> bool {
    [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    ]
    .contains(code)
}

/// An error with its causes.
pub(crate) fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// A row that may not be there.
pub(crate) trait OptionalExtension<T> {
    /// `None` instead of the error that there is no row.
    fn optional(self) -> Result<Option<T>>;
}

impl<T> OptionalExtension<T> for Result<T> {
    fn optional(self) -> Result<Option<T>> {
        match self {
            Ok(value) => Ok(Some(value)),
            Err(SqlError::NoRow | SqlError::Sqlite(rusqlite::Error::QueryReturnedNoRows)) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
