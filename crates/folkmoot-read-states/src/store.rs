//! Where rows live for good: a trait, and SQLite as its embedded implementation.
//!
//! A row is everything of one user, with the version of its last change. A store keeps the newest
//! version of a row and ignores older ones, so that a late write can never take anything back.

mod sqlite;

use std::future::Future;
use std::pin::Pin;

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
}

/// What a store answers with.
pub type Answer<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>;

/// Keeps rows.
pub trait RowStore: Send + Sync + 'static {
    /// The newest row of a user; `None` if there is none.
    fn load(&self, user: u64) -> Answer<Option<Row>>;

    /// Stores rows durably, those with a version above the stored one. All or none.
    fn save(&self, rows: Vec<Row>) -> Answer<()>;

    /// The highest version of all rows; 0 if there are none.
    fn version_max(&self) -> Answer<u64>;
}
