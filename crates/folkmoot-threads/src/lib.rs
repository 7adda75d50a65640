//! Threads beside those that serve sockets, and how the system's scheduler treats them where all
//! processors are busy.

mod quiet_thread;
mod scheduling;

pub use quiet_thread::{Panic, QuietThread};
pub use scheduling::{lower_priority, run_soon};
