//! The relay reads a backend's database.

#[path = "../kill_support/mod.rs"]
mod kill_support;
#[path = "../support/mod.rs"]
mod support;

mod cdc;
mod changed_tables;
mod changes;
mod full_disk;
mod large_rows;
mod outbox;
mod outbox_tables;
mod set_aside;
mod slots;
