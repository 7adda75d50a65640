//! Folkmoot, a self-hosted chat server: rooms, direct messages, a durable store, one binary.
//!
//! Reading order equals data order: bytes come in at `gateway`, go through `session` to `room`
//! and `user`, and end in [`storage`]; events come back as publications through topics.

mod accept;
mod account;
mod attachment;
mod config;
mod deletion;
mod demo;
mod gateway;
mod http;
mod lane;
mod limits;
mod metrics;
mod publication;
mod pulse;
mod rate_limit;
mod recovery;
mod registration;
mod room;
mod search;
mod server;
mod service;
mod session;
mod setup;
pub mod storage;
mod tail;
mod user;
mod wire;

pub use accept::client_address::Network;
pub use accept::tls::TlsError;
pub use config::{Config, ConfigError, Flags, RegistrationFlag};
pub use service::{Running, StartError, start};
