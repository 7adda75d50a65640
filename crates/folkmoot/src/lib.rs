//! Folkmoot, a self-hosted chat server: rooms, direct messages, a durable store, one binary.
//!
//! Reading order equals data order: bytes come in at `gateway`, go through `session` to `room`
//! and `user`, and end in [`storage`]; events come back as publications through topics.

mod account;
mod attachment;
pub mod backup;
#[cfg(test)]
mod bytes_kept;
mod chat;
pub mod check;
pub mod cluster;
mod config;
mod connection;
mod deletion;
mod demo;
mod gateway;
mod goodbye;
mod http;
mod limits;
pub mod load;
mod metrics;
pub mod migrate;
mod nodes;
mod open_rooms;
mod ports;
mod progress;
mod pulse;
mod rate_limit;
pub mod read_states;
pub mod relay;
pub mod retention;
mod room;
mod rounds;
mod search;
pub mod seed;
mod server;
mod service;
mod session;
mod settings;
mod setup;
mod sorted_map;
pub mod storage;
mod stream;
mod text;
mod user;
mod wire;

pub use config::{ClusterFlags, Config, ConfigError, Flags, NodeRole, RegistrationFlag, StoreText};
pub use folkmoot_gateway::{Network, TlsError};
pub use nodes::NodeError;
pub use service::{Running, StartError, start};
