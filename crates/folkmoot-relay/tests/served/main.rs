//! The relay as its clients and backends see it, over real sockets.

#[path = "../support/mod.rs"]
mod support;

mod api;
mod batch;
mod encrypted_database;
mod encryption;
mod ends;
mod forged;
mod grpc;
mod keys;
mod many_connections;
mod metrics;
mod nonsense;
mod nulls;
mod openapi;
mod phpcent;
mod proxies;
mod rights;
mod sessions;
mod streaming;
mod tags;
mod tls;
mod unidirectional;
