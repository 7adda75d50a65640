//! Whether messages come in: they do, the actor has stopped for good, it lives on another node, or
//! its place is known to nobody.

use super::{Inner, Pushed};

/// Whether messages come in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Gate {
    Open,
    /// The actor takes no more messages.
    Closed,
    /// As `Closed`, and its last life has ended.
    Ended,
    /// The actor lives on another node, where its messages have to go.
    Elsewhere,
    /// The directory has let the place go, whose name leads to another one from then on.
    Forgotten,
}

impl Gate {
    #[cold]
    pub(super) fn refusal(self) -> Pushed {
        match self {
            Self::Open | Self::Closed | Self::Ended | Self::Forgotten => Pushed::Closed,
            Self::Elsewhere => Pushed::Elsewhere,
        }
    }
}

/// Where something for an actor was sent. What comes from another node is for the actor that is
/// here, or about to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    Here,
    Elsewhere,
}

impl Inner {
    /// Why no message can be queued, if so.
    pub(crate) fn refusal(&self) -> Option<Pushed> {
        (self.gate != Gate::Open).then(|| self.gate.refusal())
    }

    /// Whether the actor takes no more messages.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.gate, Gate::Closed | Gate::Ended)
    }

    /// Takes no more messages from now on.
    pub(crate) fn shut(&mut self) {
        if self.gate != Gate::Ended {
            self.gate = Gate::Closed;
        }
    }

    /// Whether the actor lives on another node.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.gate == Gate::Elsewhere
    }

    /// Has messages go to another node from now on. Nothing may wait here.
    pub(crate) fn send_elsewhere(&mut self) {
        debug_assert!(
            self.queue.is_empty() && self.lanes.is_empty(),
            "what waits is shipped first"
        );
        self.gate = Gate::Elsewhere;
    }

    /// Takes messages here again, after `send_elsewhere`.
    pub(crate) fn come_here(&mut self) {
        if self.gate == Gate::Elsewhere {
            self.gate = Gate::Open;
        }
    }
}
