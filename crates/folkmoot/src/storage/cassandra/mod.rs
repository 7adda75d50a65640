//! Cassandra in the place of the log: what a transaction did is an entry there before anybody is
//! answered, and SQLite in the data directory is an index of it that can be made anew.
//!
//! Records that wait are applied together in one transaction of the index, as are control
//! transactions that wait; its entry is written while the transaction is open, and only then the
//! transaction is committed. So the index never has what the log lacks, and what it lacks itself is
//! applied at the next start. The whole index is written as a snapshot from time to time, and the
//! entries before it are deleted.
//!
//! ```text
//! append ─▶ log/queue ─▶ appends ──┐
//! control/ ────────────▶ controls ─┴─▶ database ─▶ log ─▶ Cassandra
//!                                        └─▶ index.sqlite ─▶ load/
//! ```

pub(crate) mod address;
mod appends;
pub(crate) mod beside;
mod controls;
mod database;
mod entry;
pub(crate) mod filling;
mod index;
mod keeper;
mod log;
mod names;
pub(crate) mod open;
mod session;
mod snapshot;
mod tables;
