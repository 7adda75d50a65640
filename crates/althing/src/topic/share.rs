//! How much one deliverer does before it leaves the rest to others: a time limit and a number of
//! events.
//!
//! The clock is read after a growing number of visits, because reading it costs as much as two
//! visits to idle subscribers.

use crate::node::shared::NodeShared;

/// How long a publisher delivers itself before a worker gets the rest: about what it costs to wake
/// one.
const PUBLISHER_NS: u64 = 20_000;
/// How long a worker delivers before it lets its thread's other tasks run: what a task may take at
/// a time without being noticed.
const WORKER_NS: u64 = 100_000;
/// Events of one share. Only where time stands still, as in tests, is this reached before the time
/// is up.
const EVENTS_MAX: u32 = 1_024;
/// Events that a publisher delivers, whatever time it takes, in a chunk that is far behind: more
/// than it adds.
const HELP_EVENTS: u32 = 2;

/// Visits before the first look at the clock, and after slow ones.
const STRETCH_MIN: usize = 8;
/// Visits between two looks: a microsecond with idle subscribers.
const STRETCH_MAX: usize = 128;
/// A stretch that took longer holds slow handlers.
const SLOW_NS: u64 = 4_000;

/// What is left of a deliverer's time.
pub(super) struct Share<'a> {
    node: &'a NodeShared,
    looked_ns: u64,
    ends_ns: u64,
    events: u32,
    stretch: usize,
    until_look: usize,
    is_spent: bool,
}

impl<'a> Share<'a> {
    pub(super) fn of_publisher(node: &'a NodeShared) -> Self {
        let now_ns = node.clock_ns();
        Self::new(node, now_ns, now_ns.saturating_add(PUBLISHER_NS), EVENTS_MAX)
    }

    pub(super) fn of_worker(node: &'a NodeShared) -> Self {
        let now_ns = node.clock_ns();
        Self::new(node, now_ns, now_ns.saturating_add(WORKER_NS), EVENTS_MAX)
    }

    /// For a chunk that is far behind.
    pub(super) fn of_helper(node: &'a NodeShared) -> Self {
        Self::new(node, 0, u64::MAX, HELP_EVENTS)
    }

    fn new(node: &'a NodeShared, looked_ns: u64, ends_ns: u64, events: u32) -> Self {
        let is_spent = false;
        let (stretch, until_look) = (STRETCH_MIN, STRETCH_MIN);
        Self { node, looked_ns, ends_ns, events, stretch, until_look, is_spent }
    }

    /// The topic's node.
    #[inline]
    pub(super) fn node(&self) -> &NodeShared {
        self.node
    }

    #[inline]
    pub(super) fn is_spent(&self) -> bool {
        self.is_spent
    }

    /// Visits that may be made before they are counted.
    #[inline]
    pub(super) fn until_look(&self) -> usize {
        self.until_look
    }

    /// Counts visits, at most as many as `until_look` says.
    #[inline]
    pub(super) fn count_visits(&mut self, visits: usize) {
        self.until_look -= visits;
        if self.until_look == 0 {
            self.look();
        }
    }

    /// Counts an event that has been delivered to all.
    #[inline]
    pub(super) fn count_event(&mut self) {
        self.events -= 1;
        self.is_spent |= self.events == 0;
    }

    fn look(&mut self) {
        if self.ends_ns == u64::MAX {
            self.until_look = STRETCH_MAX;
            return;
        }
        let now_ns = self.node.clock_ns();
        let was_slow = now_ns.saturating_sub(self.looked_ns) > SLOW_NS;
        self.stretch = if was_slow { STRETCH_MIN } else { STRETCH_MAX.min(self.stretch * 4) };
        self.looked_ns = now_ns;
        self.until_look = self.stretch;
        self.is_spent |= now_ns >= self.ends_ns;
    }
}
