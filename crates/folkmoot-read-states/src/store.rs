//! Where rows live for good: a trait, with SQLite as its embedded implementation, and PostgreSQL and
//! Cassandra for those who have one.
//!
//! A row is everything of one user, with the version of its last change. A store keeps the newest
//! version of a row and ignores older ones, so that a late write can never take anything back.

#[cfg(feature = "cassandra")]
mod cassandra;
mod entries;
#[cfg(feature = "postgres")]
mod postgres;
mod sqlite;

use std::future::Future;
use std::pin::Pin;

#[cfg(feature = "cassandra")]
pub use cassandra::CassandraRows;
#[cfg(feature = "postgres")]
pub use postgres::PostgresRows;
pub use sqlite::SqliteRows;

use crate::block::ReadState;

/// All read states of one user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Who.
    pub user: u64,
    /// The number of the last change; higher ones are later.
    pub version: u64,
    /// One for each room, in any order.
    pub entries: Vec<ReadState>,
}

/// A store failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store of read states failed to {doing}: {why}")]
pub struct StoreError {
    /// What was tried: "load a row", "save rows".
    pub doing: &'static str,
    /// The store's own words.
    pub why: String,
    /// Whether trying again may help.
    pub retry: Retry,
}

/// Whether trying again may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It may: nothing is known that would keep it from working.
    MayHelp,
    /// It does not: another process has taken the rows over.
    TakenOver,
}

impl StoreError {
    /// A failure after which trying again may help.
    pub fn new(doing: &'static str, why: impl Into<String>) -> Self {
        Self { doing, why: why.into(), retry: Retry::MayHelp }
    }

    #[cfg(any(feature = "postgres", feature = "cassandra"))]
    fn taken_over(doing: &'static str) -> Self {
        let why = "another process has taken the rows over".to_owned();
        Self { doing, why, retry: Retry::TakenOver }
    }
}

/// What a store answers with.
pub type Answer<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>;

/// Keeps rows.
pub trait RowStore: Send + Sync + 'static {
    /// Takes the rows over; called once, before any of the others. Returns a version that is not
    /// below `version` nor below that of any row, and from which this process may count on. What
    /// an earlier process saves from then on is refused as taken over, or at least cannot replace
    /// what this one has saved.
    fn take_over(&self, version: u64) -> Answer<u64>;

    /// The newest row of a user; `None` if there is none.
    fn load(&self, user: u64) -> Answer<Option<Row>>;

    /// Stores rows durably, those with a version above the stored one. After an error some may be
    /// stored; to save them again is harmless.
    fn save(&self, rows: Vec<Row>) -> Answer<()>;
}

/// Versions that one process can give, as bits. A store that several processes reach counts those
/// that took it over in the bits above, so that whoever comes later has the higher versions.
#[cfg(any(feature = "postgres", feature = "cassandra"))]
const VERSION_BITS: u32 = 40;

/// The format of the tables that this version makes and knows.
const FORMAT: i32 = 1;

/// # Errors
/// The tables are of a later version.
fn check_format(found: i32) -> Result<(), StoreError> {
    if found <= FORMAT {
        return Ok(());
    }
    let why = format!("its tables have format {found}, and {FORMAT} is the last one known");
    Err(StoreError::new("open its tables", why))
}
