//! The named workloads of the benchmark, written once over the [`System`] trait.
//!
//! Althing and every Rust peer implement the trait, so both sides of a comparison run the same
//! loop, the same clock and the same checks. Owns: what is timed, when the clock stops, what is
//! verified. Never: knows a concrete actor library, or repeats rounds (the harness does, one
//! process each).

mod allocs;
mod ask;
mod block_on;
mod command;
mod contended;
mod countdown;
mod lifecycle;
mod measure;
mod memory;
mod publish;
mod repeat;
mod system;
mod tally;
mod tell;

pub use allocs::{CountingAllocator, allocations_during};
pub use command::{Arguments, main, main_with};
pub use countdown::{Countdown, Unfinished};
pub use measure::{Budget, Sample, median_ns, percentile_ns};
pub use repeat::Repeat;
pub use system::{MAILBOX, Mailbox, System, on_worker};
pub use tally::Tally;
