//! Accounts that act together against one: whatever they do within the limits, the one can still
//! sign in, read and write.

mod clock_steps;
mod collusion;
mod crowds;
mod deletion_races;
mod direct_messages;
mod edges;
pub(crate) mod full_disk;
mod half_open;
mod killed;
mod silent_sockets;
mod two_devices;
