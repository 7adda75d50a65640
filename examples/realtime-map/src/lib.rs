//! A real-time map of vehicles on Althing: MQTT in, one actor per vehicle, HTTP and server-sent
//! events out.
//!
//! The road of a position: `feed` (MQTT) → `hfp` (read) → `vehicle` (the twin's actor) →
//! `geofence`, `organization`, and the topic of its cell → `viewport` (one per open map) → `http`.
//! `store` keeps vehicles that sleep. `broker` and `simulator` make the program whole without
//! anything else installed.

mod app;
mod broker;
mod chaos;
mod city;
mod clock;
mod counters;
mod digits;
mod feed;
mod fence;
mod geo;
mod geofence;
mod hfp;
mod http;
mod load;
mod mqtt_url;
mod organization;
mod overview;
mod publisher;
mod simulator;
mod store;
mod vehicle;
mod viewport;
mod world;

pub use app::{Broker, Map, Settings};
pub use city::{City, CityError};
pub use clock::{format_timestamp, unix_ms};
pub use load::{Load, LoadReport, run as run_load};
pub use mqtt_url::{MqttUrl, MqttUrlError};
pub use publisher::Publisher;
