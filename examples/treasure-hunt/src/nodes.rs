//! The hunt on several nodes: players and regions are durable actors of a cluster, each on one of
//! its nodes, kept in PostgreSQL.
//!
//! A region's journal is the log: an event is in it once, fenced by the epoch in which the region's
//! node has it. A player keeps its last event and the act that is under way. It writes the act down
//! before it asks a region, so that whoever comes after it asks the same again and nothing else;
//! and the region answers an act that it has settled with what came of it. So an act has one event,
//! whichever node dies in between.
//!
//! `rules`, `map`, `wire` and the page are those of one node.

mod bytes;
mod cluster;
mod connection;
mod player;
mod realm;
mod recount;
mod region;
mod seed;
mod serve;
mod session;

pub use cluster::Cluster;
pub use recount::recount;
pub use serve::{NodeServer, Options};
