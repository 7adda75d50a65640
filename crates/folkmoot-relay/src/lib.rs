//! Channels for a backend that has users and messages already, and wants only the last step: what
//! was published there reaches everybody who is subscribed here, in order, once.
//!
//! Speaks Centrifugo's client protocol and its server API, so that its SDKs and server libraries
//! work unmodified. A way through the code: `settings` and `rules` say what a channel allows,
//! `session` answers clients, `api` answers backends, and both ask `channels`, the actors that own
//! all channels; `stream` is one channel's numbered history. Where a relay has several nodes,
//! `channels::owner` has the histories, `channels` the subscribers of one node, and `nodes` the way
//! between them.

mod api;
mod cdc;
mod channels;
mod claims;
mod connection;
mod durable;
mod emulation;
mod epoch;
mod feed;
mod fossil;
mod inner;
#[cfg(feature = "kafka")]
mod kafka;
mod metrics;
mod name;
mod nodes;
mod outbox;
mod overrides;
mod owners;
mod payload;
mod people;
mod proxy;
mod question;
mod rules;
mod server;
mod session;
mod settings;
mod strays;
mod stream;
mod tags;
mod token;
mod unidirectional;
mod version;

pub use durable::DiskError;
pub use nodes::NodeError;
pub use server::{Relay, StartError, start, start_as_node};
pub use settings::{Settings, SettingsError};
