//! The log: append-only segments that make a record durable before anything else knows of it.
//!
//! Callers put encoded records into the `queue`; one thread, the `writer`, takes all that is there,
//! writes it at once, syncs once and wakes everybody. The mover reads behind it through a
//! `tail_reader`. The bytes are in [`segment`]. Nothing here knows SQLite or what a record means.

pub(crate) mod append_times;
pub(crate) mod disk;
mod pieces;
pub(crate) mod queue;
pub mod segment;
pub(crate) mod segments;
pub(crate) mod tail_reader;
pub(crate) mod writer;

#[cfg(test)]
mod tests;
