//! The chat server as workloads use it: the release build as a process of its own, on a directory
//! that was filled or is empty; single clients, and many of them by `folkmoot load`.

mod client;
mod nodes;
mod report;
mod server;

pub(super) use client::Client;
pub(super) use nodes::Nodes;
pub(super) use server::{Freed, Server, example, filled};
