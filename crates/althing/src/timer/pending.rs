//! A timer as its actor keeps it: data beside the mailbox, not a closure in the wheel.
//!
//! The wheel knows only which actor to tell and the timer's number. When it is due, a tick is
//! queued; the message is made when the tick runs, by the actor itself, so that a clone that panics
//! is the actor's own failure and nobody else's. A life takes its timers along when it ends, and
//! ticks without a timer do nothing.

use std::time::Duration;

use crate::mail::access::Access;
use crate::mail::awaited::Awaited;
use crate::mail::envelope::Envelope;
use crate::metrics::MessageName;
use crate::timer::wheel::EntryId;

/// Whether a timer brings an unloaded actor back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wakes {
    /// It ends when its actor is unloaded.
    No,
    /// It outlives unloading, and starts the actor when it is due.
    Yes,
}

/// Makes a timer's message, and tells when its handler has ended if the timer wants to know.
pub(crate) type Make = Box<dyn FnMut() -> Made + Send>;

/// A timer's message, ready to run.
pub(crate) struct Made {
    pub(crate) envelope: Envelope,
    pub(crate) ended: Option<Box<dyn Awaited>>,
}

/// A timer that is still to fire.
pub(crate) struct PendingTimer {
    /// Where the wheel keeps it.
    pub(crate) entry: Option<EntryId>,
    /// `None`: it fires once.
    pub(crate) period: Option<Duration>,
    pub(crate) wakes: Wakes,
    pub(crate) access: Access,
    pub(crate) name: MessageName,
    /// Away while the message is being made.
    pub(crate) make: Option<Make>,
    /// Whether a tick waits in the mailbox.
    pub(crate) is_queued: bool,
    /// The last tick's handler.
    pub(crate) last: Option<Box<dyn Awaited>>,
}

impl PendingTimer {
    pub(crate) fn survives_passivation(&self) -> bool {
        self.wakes == Wakes::Yes
    }

    /// Whether the actor must stay in memory for it: a message that comes once would be lost.
    pub(crate) fn keeps_awake(&self) -> bool {
        self.period.is_none() && self.wakes == Wakes::No
    }

    /// Whether a tick may be queued now: one whose predecessor has not ended is left out.
    pub(crate) fn may_tick(&self) -> bool {
        !self.is_queued && self.last.as_ref().is_none_or(|last| last.is_settled())
    }
}
