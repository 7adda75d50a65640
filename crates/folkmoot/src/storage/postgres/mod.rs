//! PostgreSQL in the place of the log and of SQLite: one session that writes, a few that read.
//!
//! There is no log of our own. Records that wait are applied together in one transaction by the same
//! code that moves the embedded store's log, and acknowledged once it is committed; PostgreSQL's own
//! log makes that durable. Control transactions take turns with them on the one session that
//! writes, so there is one order of everything, as there is in the embedded store.
//!
//! ```text
//! append ─▶ log/queue ─▶ appends ──┐
//! control/ ────────────▶ controls ─┴─▶ database (claimed by one server, or by each node of one) ─▶ load/
//! ```

pub(crate) mod address;
pub(crate) mod appends;
pub(crate) mod claim;
pub(crate) mod controls;
pub(crate) mod database;
mod fence;
pub(crate) mod open;
pub(crate) mod schema;
