//! The time that all processes of this machine agree about.

use rustix::time::{ClockId, clock_gettime};

/// Microseconds since the machine started.
pub(crate) type Micros = i64;

pub(crate) fn now() -> Micros {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
}
