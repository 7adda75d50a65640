//! What waits for an actor that has left follows it to where it lives now.
//!
//! Order: what waited here is shipped before the first message that a sender ships itself, because
//! the mailbox sends elsewhere only once it is empty.

use std::sync::Arc;

use crate::address::place::AnyPlace;
use crate::mail::envelope::Envelope;
use crate::remote::ancestors;
use crate::remote::cluster::Location;
use crate::remote::outgoing::{ship_system, ship_watch};
use crate::remote::parcel::{Cargo, Parcel};
use crate::shield::wake_all;

/// Has the node where an actor lives now know that it is watched from here, or its end awaited.
pub(crate) fn watch_on(place: &Arc<dyn AnyPlace>) {
    let inner = place.header().mailbox.lock();
    let extras = inner.extras.as_ref().filter(|_| inner.is_elsewhere());
    let is_watched = extras.is_some_and(|it| it.is_watched());
    let is_awaited = extras.is_some_and(|it| !it.stop_waiters.is_empty());
    drop(inner);
    if is_watched {
        ship_watch(place, false);
    }
    if is_awaited {
        ship_watch(place, true);
    }
}

/// Whether an actor has gone to where it lives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Followed {
    /// It lives here.
    Stays,
    /// A handler has a lane to here: what it still writes would come behind what others send
    /// elsewhere. The caller keeps the claim and tries again.
    NotYet,
    /// Its mailbox sends elsewhere.
    Gone,
}

/// Ships what waits for an actor whose state is gone, and has its mailbox send elsewhere from then
/// on, unless it lives here. The caller holds the claim.
pub(crate) fn follow(place: &Arc<dyn AnyPlace>, waiting: &mut Vec<Envelope>) -> Followed {
    let header = place.header();
    if header.location() != Some(Location::Elsewhere) {
        return Followed::Stays;
    }
    // What a guard put aside came first.
    let mut first = header.mailbox.lock().take_put_aside();
    first.append(waiting);
    ship_all(place, first);
    loop {
        let mut inner = header.mailbox.lock();
        let rest = inner.take_queue();
        if rest.is_empty() {
            if inner.has_lanes() {
                return Followed::NotYet;
            }
            inner.send_elsewhere();
            let system = inner.take_travelling();
            // There is no line here any more: they send to where it lives now.
            let wakers = inner.call_all();
            drop(inner);
            system.into_iter().for_each(|message| ship_system(place, message));
            wake_all(wakers);
            return Followed::Gone;
        }
        drop(inner);
        ship_all(place, rest);
    }
}

/// Ships envelopes to where their actor lives.
pub(crate) fn ship_all(place: &Arc<dyn AnyPlace>, envelopes: Vec<Envelope>) {
    let header = place.header();
    let Some(cluster) = &header.kind.node.cluster else { return };
    let mut chain = ancestors::of(place);
    chain.pop();
    for envelope in envelopes {
        let Some(mut message) = envelope.repack(header) else { continue };
        if message.reply.is_some() {
            message.chain.clone_from(&chain);
        }
        let to = header.id();
        cluster.send_on(Parcel { to, node: None, cargo: Cargo::Message(message) });
    }
}
