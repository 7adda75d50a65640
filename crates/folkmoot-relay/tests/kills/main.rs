//! The relay is killed.

#[path = "../kill_support/mod.rs"]
mod kill_support;
#[path = "../support/mod.rs"]
mod support;

mod kill;
mod kill_broadcast;
mod kill_smaller;
