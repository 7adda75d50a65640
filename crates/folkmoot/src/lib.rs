//! Folkmoot, a self-hosted chat server: rooms, direct messages, a durable store, one binary.
//!
//! Reading order equals data order: bytes come in at the gateway and end in [`storage`].

pub mod storage;
