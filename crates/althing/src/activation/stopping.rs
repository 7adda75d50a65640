//! How an actor is asked to stop: it takes no more messages, and if it is idle, its claim goes to
//! the run that stops it.

use std::sync::Arc;

use crate::activation::ending::close_for_good;
use crate::activation::run::Run;
use crate::address::place::AnyPlace;
use crate::address::signal::send_system_from;
use crate::mail::claim::{Guard, Value};
use crate::mail::extras::System;
use crate::mail::mailbox::{Inner, Phase, Sent};
use crate::mail::outbox;
use crate::stop_reason::StopReason;

/// Asks an actor to stop after what waits; an actor that has no later life takes no more messages.
/// One that sleeps has nothing to stop. Returns the run that stops an idle actor: the caller
/// decides where it runs.
#[must_use]
pub(crate) fn request_stop(
    place: &Arc<dyn AnyPlace>,
    reason: StopReason,
    from: Sent,
) -> Option<Run> {
    let (_, is_idle) = begin_stop(place);
    if is_idle {
        return Some(Run::stopping(place.clone(), reason));
    }
    send_system_from(place, System::Stop(reason), from);
    None
}

/// Has an actor that has no later life take no more messages. Returns which life to wait for,
/// and whether it was idle: then its claim is the caller's, who stops it.
pub(crate) fn begin_stop(place: &Arc<dyn AnyPlace>) -> (u32, bool) {
    // What the caller has told it before comes before its end.
    outbox::hand_over();
    let mut inner = place.header().mailbox.lock();
    let (life, is_idle) = (inner.life_to_await(), inner.is_quiet());
    close_for_good(place, &mut inner);
    if is_idle {
        inner.phase = Phase::Running;
    }
    (life, is_idle)
}

/// Takes the claim of a quiet actor, whose mailbox is locked, for the run that stops it.
pub(crate) fn claim_to_stop(
    place: &Arc<dyn AnyPlace>,
    mut inner: Guard<'_, Inner>,
    reason: StopReason,
) -> Run {
    close_for_good(place, &mut inner);
    inner.phase = Phase::Running;
    drop(inner);
    Run::stopping(place.clone(), reason)
}
