//! One way to speak SQL to either database: the calls, values and rows that control transactions,
//! reads and the moving of records are written in.
//!
//! There is one copy of every statement, in SQLite's dialect as far as `dialect` can say it for
//! PostgreSQL too. On SQLite every call is the driver's own call and nothing else; values are the
//! driver's for both, because SQLite knows four kinds of them and PostgreSQL has all four.

mod connection;
mod dialect;
mod error;
mod local;
mod params;
pub(crate) mod postgres;
mod row;
mod rows;
mod transaction;

pub(crate) use connection::Connection;
pub use error::SqlError;
pub(crate) use error::{OptionalExtension, Result, in_full};
pub(crate) use local::Change;
pub(crate) use params::Params;
pub(crate) use row::{Row, Rows};
pub(crate) use rows::Values;
pub(crate) use rusqlite::params;
pub(crate) use transaction::Transaction;
