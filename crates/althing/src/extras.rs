//! What few actors need at any moment, in a box of its own beside the mailbox: system messages, other priorities, senders that wait, relatives,
//! the stash. An actor that is back to none of it gives the box back.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use crate::actor::{StopReason, Terminated};
use crate::cell::AnyCell;
use crate::envelope::Envelope;
use crate::guard::Bucket;
use crate::line::WaitingSenders;
use crate::supervision::Restarts;
use crate::waits::Edge;

/// What few actors need at any moment.
#[derive(Default)]
pub(crate) struct Extras {
    pub(crate) system: VecDeque<System>,
    /// System messages that wait for a handler to end; before `system` in order.
    pub(crate) deferred: VecDeque<System>,
    /// Wakes a runner that waits for messages.
    pub(crate) parked: Option<Waker>,
    /// Wakes a runner whose handler waits; for system messages only.
    pub(crate) suspended: Option<Waker>,
    pub(crate) high: VecDeque<Envelope>,
    pub(crate) low: VecDeque<Envelope>,
    /// Senders that wait for room.
    pub(crate) room: WaitingSenders,
    pub(crate) stop_waiters: Vec<Waker>,
    pub(crate) watchers: Vec<Arc<dyn AnyCell>>,
    pub(crate) linked: Vec<Arc<dyn AnyCell>>,
    pub(crate) children: Vec<Arc<dyn AnyCell>>,
    pub(crate) parent: Option<Arc<dyn AnyCell>>,
    pub(crate) stash: Vec<Envelope>,
    pub(crate) restarts: Restarts,
    /// Replies that handlers of the actor wait for.
    pub(crate) waits: Vec<Edge>,
    pub(crate) buckets: Vec<Bucket>,
    /// Why the last life ended, where that was not a plain stop.
    pub(crate) stopped: Option<StopReason>,
}

impl Extras {
    /// Whether nothing is in them that anybody could come back for.
    pub(crate) fn is_blank(&self) -> bool {
        self.system.is_empty()
            && self.deferred.is_empty()
            && self.high.is_empty()
            && self.low.is_empty()
            && self.room.is_unused()
            && self.stop_waiters.is_empty()
            && self.watchers.is_empty()
            && self.linked.is_empty()
            && self.children.is_empty()
            && self.parent.is_none()
            && self.stash.is_empty()
            && self.restarts.is_empty()
            && self.waits.is_empty()
            && self.buckets.is_empty()
            && self.stopped.is_none()
    }
}

/// Messages of the runtime to an actor.
pub(crate) enum System {
    /// Activate without a message.
    Start,
    /// Run what waits, then stop.
    Stop(StopReason),
    /// Drop everything now.
    Kill,
    /// A watched actor stopped.
    Terminated(Terminated),
    /// A linked or parent actor stopped.
    Fail(StopReason),
    /// A child escalated its failure.
    ChildFailed,
    /// A sibling failed and the parent restarts this one with it.
    Restart,
}
