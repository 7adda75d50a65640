//! Real servers that a test starts for itself, and that end with it.
//!
//! They listen on an address of this machine only, keep everything in a temporary directory, and
//! panic with what is missing rather than let a test pass without them.

mod cache;
mod cassandra;
mod etcd;
mod kafka;
mod maven;
mod one_process;
mod postgres;
mod process;
mod watcher;

pub use cassandra::CassandraServer;
pub use etcd::EtcdServer;
pub use kafka::{KafkaGuard, KafkaServer};
pub use postgres::PostgresServer;
