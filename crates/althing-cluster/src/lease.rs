//! How long a node may serve, and when the authority may give its buckets away.
//!
//! The two never agree on a clock. The node counts from the moment *before* it sent a renewal, the
//! authority from the moment it took it, which is later; and the authority waits longer. Clocks
//! may run at rates that differ by one percent, and need not agree on anything else.

use std::collections::VecDeque;
use std::time::Duration;

/// Renewals without an answer that a node remembers.
const UNANSWERED_MAX: usize = 16;

/// The times of a lease; the authority decides them and tells every node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    /// How long one renewal lasts.
    pub(crate) lease: Duration,
}

impl Timing {
    /// Time between renewals: several may be lost.
    pub(crate) fn renew_every(self) -> Duration {
        self.lease / 4
    }

    /// What the node gives up at the end for its own slowness, and the evictor adds.
    fn margin(self) -> Duration {
        self.lease / 12
    }

    /// How long a node serves after it has sent a renewal that was answered.
    pub(crate) fn serves(self) -> Duration {
        self.lease - self.margin()
    }

    /// How long a candidate has the lead after it has asked for it, by the store's clock. A new
    /// leader is found, and every member has renewed, before the first lease has run out.
    pub(crate) fn leads(self) -> Duration {
        self.lease / 3
    }

    /// How often a candidate looks whether the lead is free.
    pub(crate) fn look_every(self) -> Duration {
        self.leads() / 8
    }

    /// How long a leader believes in the lead, counted from before it asked for it.
    pub(crate) fn believes(self) -> Duration {
        self.leads() - self.leads() / 20
    }

    /// How long the authority waits after the last renewal it took.
    pub(crate) fn evicts_after(self) -> Duration {
        self.lease + self.lease / 100 + self.margin()
    }
}

/// A node's own lease.
#[derive(Debug)]
pub(crate) struct Lease {
    timing: Timing,
    counter: u64,
    /// Renewals under way and when they were sent.
    sent: VecDeque<(u64, Duration)>,
    until: Duration,
}

impl Lease {
    pub(crate) fn new(timing: Timing) -> Self {
        Self { timing, counter: 0, sent: VecDeque::new(), until: Duration::ZERO }
    }

    pub(crate) fn renew_every(&self) -> Duration {
        self.timing.renew_every()
    }

    /// The number for a renewal that is sent after `now` was read.
    pub(crate) fn renew(&mut self, now: Duration) -> u64 {
        self.counter += 1;
        if self.sent.len() == UNANSWERED_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back((self.counter, now));
        self.counter
    }

    /// The authority has taken a renewal.
    pub(crate) fn renewed(&mut self, counter: u64) {
        while let Some((number, at)) = self.sent.pop_front() {
            if number == counter {
                self.until = self.until.max(at + self.timing.serves());
            }
            if number >= counter {
                return;
            }
        }
    }

    /// Until when the node may serve.
    pub(crate) fn until(&self) -> Duration {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Lease, Timing};
    use crate::LEASE_DEFAULT;

    const TIMING: Timing = Timing { lease: Duration::from_secs(6) };

    #[test]
    fn a_lease_counts_from_before_the_renewal_was_sent() {
        let mut lease = Lease::new(TIMING);
        let first = lease.renew(Duration::from_secs(100));
        let second = lease.renew(Duration::from_secs(102));
        assert_eq!(lease.until(), Duration::ZERO, "nothing was answered");
        lease.renewed(second);
        assert_eq!(lease.until(), Duration::from_millis(107_500));
        lease.renewed(first);
        assert_eq!(lease.until(), Duration::from_millis(107_500), "an answer that came late");
    }

    #[test]
    fn a_node_stops_before_it_is_evicted_though_its_clock_is_slow() {
        // One second of this node's clock is 1.01 seconds of the authority's.
        let served = TIMING.serves().mul_f64(1.01);
        assert!(served + Duration::from_millis(900) < TIMING.evicts_after());
        let default = Timing { lease: LEASE_DEFAULT };
        let served = default.serves().mul_f64(1.01);
        assert!(served + Duration::from_millis(750) < default.evicts_after());
    }
}
