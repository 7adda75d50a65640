//! What a simulation does to messages that are about to run: they panic, begin later, or are
//! refused.
//!
//! Nothing here runs outside a simulation. A fault strikes where the handler would begin, under the
//! actor's claim, so that what follows is what follows a handler that panics or a message that
//! comes late.

use std::sync::Arc;
use std::time::Duration;

use crate::activation::body::Body;
use crate::activation::run::Run;
use crate::address::actor_id::ActorId;
use crate::address::place::{AnyPlace, Header};
use crate::error::AskError;
use crate::mail::envelope::Envelope;
use crate::metrics::MessageName;
use crate::node::env::Fault;

/// What a simulation does to an event that is about to run.
pub(crate) enum Met {
    Delay(Duration),
    Refusal,
}

/// Tells a simulation that the actor takes an event in place, and lets its fault happen.
pub(crate) fn meet_as_event(
    header: &Header,
    from: Option<&ActorId>,
    event: MessageName,
) -> Result<(), Met> {
    header.observe_in_place_from(from, event);
    match header.fault(event) {
        Fault::None => Ok(()),
        Fault::Panic => panic!("a fault of the simulation"),
        Fault::Delay(delay) => Err(Met::Delay(delay)),
        Fault::Refuse => Err(Met::Refusal),
    }
}

/// Has a message whose actor was claimed run later.
#[cold]
pub(crate) fn put_off(place: Arc<dyn AnyPlace>, body: Body, envelope: Envelope, delay: Duration) {
    let header = place.header();
    let (envelope, pause) =
        (envelope.sent_from(header.sender()), header.kind.node.env.sleep(delay));
    let mut run = Run::take_over(place, body);
    run.put_off(envelope, pause);
    run.spawn();
}

/// What an asker hears whose message a simulation refuses.
pub(crate) fn refused_by_fault(header: &Header) -> AskError {
    AskError::Rejected(header.id(), "a fault of the simulation".into())
}
