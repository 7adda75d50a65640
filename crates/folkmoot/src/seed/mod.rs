//! `folkmoot seed`: fills a data directory with people, rooms of any size and what was said in
//! them, to try a server of the size one expects before anybody depends on it.
//!
//! People and memberships go in by the ten thousand, messages down the same road as all others. The
//! same plan gives the same people, rooms and texts each time; only ids differ.

mod names;
mod plan;
mod write;

pub use plan::{PlanError, RoomPlan, SeedFlags, SeedPlan};
pub use write::{SeedError, Seeded, seed};
