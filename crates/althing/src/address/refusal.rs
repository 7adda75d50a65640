//! What becomes of messages that an actor does not take any more: whoever asked hears of it, tells
//! are counted.

use std::sync::Arc;

use crate::address::place::AnyPlace;
use crate::error::AskError;
use crate::mail::envelope::Envelope;
use crate::metrics::Counter;
use crate::shield::shielded;

/// Drops messages that a stopped actor does not take any more; whoever asked hears of it, tells are
/// counted.
pub(crate) fn refuse(place: &Arc<dyn AnyPlace>, refused: Vec<Envelope>) {
    for envelope in refused {
        refuse_one(place, envelope, AskError::Stopped(place.header().id()));
    }
}

/// As `refuse`, with a reason.
pub(crate) fn refuse_one(place: &Arc<dyn AnyPlace>, envelope: Envelope, why: AskError) {
    if !envelope.is_tick() {
        place.header().kind.metrics.count(Counter::Refused);
    }
    // Those behind must hear of their end too.
    shielded("dropping a refused message", || envelope.reject(why));
}
