//! Sends messages of the runtime to an actor, here or on another node.

use std::sync::Arc;

use crate::address::place::{AnyPlace, wake};
use crate::mail::extras::System;
use crate::mail::mailbox::{Sent, SystemPush};
use crate::remote::outgoing::ship_system;

/// Sends a system message; returns whether the actor still exists.
pub(crate) fn send_system(place: &Arc<dyn AnyPlace>, message: System) -> bool {
    send_system_from(place, message, Sent::Here)
}

/// As `send_system`; what comes from another node is not sent on.
pub(crate) fn send_system_from(place: &Arc<dyn AnyPlace>, message: System, from: Sent) -> bool {
    let header = place.header();
    let what = match header.mailbox.push_system(message, from) {
        SystemPush::Queued(what) => what,
        SystemPush::Ended => return false,
        SystemPush::Elsewhere(message) => {
            ship_system(place, message);
            return true;
        }
    };
    header.call_attention();
    wake(place, what);
    true
}
