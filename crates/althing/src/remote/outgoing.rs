//! The way out for what is no message: parcels that are made already, and what concerns an actor's
//! life.
//!
//! A node watches for all its actors at once: the actor's own node keeps a list of nodes, and each
//! of those tells its watchers itself.

use std::sync::Arc;

use crate::address::actor_id::Incarnation;
use crate::address::place::AnyPlace;
use crate::address::tie::TieNumber;
use crate::mail::extras::{Extras, System};
use crate::mail::mailbox::Inner;
use crate::remote::parcel::{Cargo, Control, Parcel};
use crate::stop_reason::StopReason;

/// Ships a system message for an actor that lives elsewhere; what means nothing there is dropped.
pub(crate) fn ship_system(place: &Arc<dyn AnyPlace>, message: System) {
    let control = match message {
        System::Start => Control::Start,
        System::Stop(_) => Control::Stop,
        System::Kill => Control::Kill,
        System::Fail(StopReason::Linked(other)) => Control::Linked { other },
        // These go to actors whose state is here.
        System::Terminated(..)
        | System::Fail(_)
        | System::ChildFailed(_)
        | System::Restart
        | System::Seal(_)
        | System::Resume(_)
        | System::Freeze(_)
        | System::Thaw
        | System::Depart
        | System::Fence(_) => return,
    };
    ship(place, None, control);
}

/// Asks the actor's node to tell this one when its life ends. Whoever watches or awaits that is on
/// the place's list already, with a lower number.
pub(crate) fn ship_watch(place: &Arc<dyn AnyPlace>, sleepers_too: bool) {
    let node = place.header().kind.node.incarnation.0;
    let number = TieNumber::next().number();
    ship(place, None, Control::Watch { node, sleepers_too, number });
}

/// The number up to which nobody here watches an actor of another node or awaits its end any more, if
/// nobody does. Taken under the lock: whoever begins to do so later has a higher one.
pub(crate) fn left_by_all(inner: &Inner) -> Option<TieNumber> {
    let is_needed = |extras: &Extras| extras.is_watched() || !extras.stop_waiters.is_empty();
    let is_left = inner.is_elsewhere() && !inner.extras.as_deref().is_some_and(is_needed);
    is_left.then(TieNumber::next)
}

/// Has the actor's node tell this one no more of the end of lives that were watched up to then.
pub(crate) fn ship_unwatch(place: &Arc<dyn AnyPlace>, until: Option<TieNumber>) {
    let Some(until) = until else { return };
    let node = place.header().kind.node.incarnation.0;
    ship(place, None, Control::Unwatch { node, number: until.number() });
}

/// Tells nodes of an end, each with the number of its last watch.
pub(crate) fn ship_end(
    place: &Arc<dyn AnyPlace>,
    nodes: impl IntoIterator<Item = (Incarnation, u64)>,
    reason: &StopReason,
) {
    for (node, number) in nodes {
        ship(place, Some(node), Control::Ended { reason: reason.clone(), number });
    }
}

/// Sends a parcel that was made before.
pub(crate) fn send(place: &Arc<dyn AnyPlace>, parcel: Parcel) {
    if let Some(cluster) = &place.header().kind.node.cluster {
        cluster.send(parcel);
    }
}

fn ship(place: &Arc<dyn AnyPlace>, node: Option<Incarnation>, control: Control) {
    let header = place.header();
    if let Some(cluster) = &header.kind.node.cluster {
        cluster.send(Parcel { to: header.id(), node, cargo: Cargo::Control(control) });
    }
}
