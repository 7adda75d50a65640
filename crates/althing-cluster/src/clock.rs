//! The clock that leases are counted by: it goes on while the machine sleeps and nobody sets it.
//!
//! `Instant` stops in suspend on Linux, and the wall clock steps. Either would let a node serve
//! after its lease has run out.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Time since the machine started, its sleep included.
pub(crate) fn now() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}
