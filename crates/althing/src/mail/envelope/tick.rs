//! The envelope of a timer that is due, as a mailbox sees it: it names the timer.
//!
//! Layout: the payload is a `Tick` in place.

use super::{Envelope, Sort};
use crate::metrics::MessageName;
use crate::timer::id::TimerId;

/// A timer that is due, and the name of its message.
#[derive(Clone, Copy)]
pub(crate) struct Tick {
    pub(crate) timer: TimerId,
    pub(crate) name: MessageName,
}

impl Envelope {
    pub(crate) fn is_tick(&self) -> bool {
        self.table.sort == Sort::Tick
    }

    /// The timer, if this is its tick.
    pub(crate) fn timer(&self) -> Option<TimerId> {
        self.as_tick().map(|tick| tick.timer)
    }

    /// The name of the timer's message, if this is a tick.
    pub(super) fn tick_name(&self) -> Option<MessageName> {
        self.as_tick().map(|tick| tick.name)
    }

    fn as_tick(&self) -> Option<Tick> {
        // SAFETY: the table says that the payload is a `Tick`, which fits in place and is `Copy`.
        self.is_tick().then(|| unsafe { self.payload.as_ptr().cast::<Tick>().read() })
    }
}
