//! An act under way: what a client asks for, and who is told what came of it.

use std::sync::Arc;

use crate::place::{ActSeq, Place, PlayerId};
use crate::rules::{Act, Refusal};
use crate::wire::Outcome;

/// What an act came to, and where it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acted {
    /// Where the player stood before.
    pub from: Place,
    /// For the client.
    pub outcome: Outcome,
}

/// Whoever plays a player; told once or more often of each act, or never if an actor died over it.
pub trait Client: Send + Sync + 'static {
    /// It happened and is durable.
    fn acted(&self, act: &Act, acted: &Acted);
    /// It did not happen.
    fn refused(&self, player: PlayerId, seq: ActSeq, refusal: Refusal);
}

/// An act with its client.
#[derive(Clone)]
pub struct Errand {
    /// What is asked for.
    pub act: Act,
    /// Who asks.
    pub client: Arc<dyn Client>,
}

impl Errand {
    pub(super) fn refuse(&self, refusal: Refusal) {
        self.client.refused(self.act.player, self.act.seq, refusal);
    }
}

impl std::fmt::Debug for Errand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Errand").field(&self.act).finish()
    }
}
