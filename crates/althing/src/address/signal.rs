//! Sends messages of the runtime to an actor, here or on another node.

use std::sync::Arc;

use crate::address::place::{AnyPlace, wake};
use crate::mail::extras::{Extras, System};
use crate::mail::mailbox::{Sent, SystemPush};
use crate::remote::outgoing::ship_system;

/// Sends a system message; returns whether the actor still exists.
pub(crate) fn send_system(place: &Arc<dyn AnyPlace>, message: System) -> bool {
    send_system_from(place, message, Sent::Here)
}

/// As `send_system`; what comes from another node is not sent on.
pub(crate) fn send_system_from(place: &Arc<dyn AnyPlace>, message: System, from: Sent) -> bool {
    pushed(place, place.header().mailbox.push_system(message, from))
}

/// As `send_system`, if what the actor keeps for the life that is there says that it is for that.
pub(crate) fn send_system_if(
    place: &Arc<dyn AnyPlace>,
    message: System,
    belongs: impl FnOnce(&mut Extras) -> bool,
) {
    pushed(place, place.header().mailbox.push_system_if(message, belongs));
}

fn pushed(place: &Arc<dyn AnyPlace>, push: SystemPush) -> bool {
    let what = match push {
        SystemPush::Queued(what) => what,
        SystemPush::Ended => return false,
        SystemPush::Elsewhere(message) => {
            ship_system(place, message);
            return true;
        }
    };
    place.header().call_attention();
    wake(place, what);
    true
}
