//! The durable store: log segments in front of SQLite, one data directory, no actor in sight.
//!
//! Nothing is acknowledged before it is on disk. This module never calls an actor.

pub mod ids;

pub use ids::{DeviceId, Lsn, Offset, RoomId, Seq, TimeMs, UserId, WriteEpoch};
