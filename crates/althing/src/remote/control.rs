//! What concerns an actor's life and not its mailbox, between nodes: start, stop, kill, watching,
//! and the news of an end.
//!
//! A node watches for all its actors at once: the actor's own node keeps a list of nodes, and each
//! of those tells its watchers itself.

use std::sync::Arc;

use althing_macros::Wire;

use super::{Cargo, Parcel};
use crate::activation::ending;
use crate::actor::StopReason;
use crate::address::actor_id::{ActorId, Incarnation};
use crate::address::actor_ref::request_stop;
use crate::address::place::{AnyPlace, send_system_from};
use crate::mail::extras::System;
use crate::mail::mailbox::Sent;

/// Something about an actor's life that another node wants or tells.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[wire(crate = crate)]
#[non_exhaustive]
pub enum Control {
    /// Activate it.
    Start,
    /// Run what waits, then stop.
    Stop,
    /// End at once.
    Kill,
    /// Tell this node when the life ends; at once if it sleeps and `sleepers_too`.
    Watch {
        /// The node that wants to know.
        node: u64,
        /// Whether an actor that sleeps counts as one whose life has ended.
        sleepers_too: bool,
    },
    /// Tell this node no more.
    Unwatch {
        /// The node.
        node: u64,
    },
    /// The life that was watched has ended.
    Ended {
        /// Why.
        reason: StopReason,
    },
    /// An actor linked to it has stopped.
    Linked {
        /// That actor.
        other: ActorId,
    },
}

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

/// Asks the actor's node to tell this one when its life ends.
pub(crate) fn ship_watch(place: &Arc<dyn AnyPlace>, sleepers_too: bool) {
    let node = place.header().kind.node.incarnation.0;
    ship(place, None, Control::Watch { node, sleepers_too });
}

/// Tells nodes that watched of an end.
pub(crate) fn ship_end(place: &Arc<dyn AnyPlace>, nodes: Vec<Incarnation>, reason: &StopReason) {
    for node in nodes {
        ship(place, Some(node), Control::Ended { reason: reason.clone() });
    }
}

fn ship(place: &Arc<dyn AnyPlace>, node: Option<Incarnation>, control: Control) {
    let header = place.header();
    if let Some(cluster) = &header.kind.node.cluster {
        cluster.send(Parcel { to: header.id(), node, cargo: Cargo::Control(control) });
    }
}

/// Does what another node wants of an actor of this one, or hears what it tells about one of its
/// own.
pub(super) fn obey(place: &Arc<dyn AnyPlace>, control: Control) {
    match control {
        Control::Start => _ = send_system_from(place, System::Start, Sent::Elsewhere),
        Control::Stop => {
            if let Some(run) = request_stop(place, StopReason::Requested, Sent::Elsewhere) {
                run.spawn();
            }
        }
        Control::Kill => ending::kill(place, Sent::Elsewhere),
        Control::Linked { other } => {
            let message = System::Fail(StopReason::Linked(other));
            send_system_from(place, message, Sent::Elsewhere);
        }
        Control::Watch { node, sleepers_too } => watch(place, Incarnation(node), sleepers_too),
        Control::Unwatch { node } => {
            if let Some(extras) = &mut place.header().mailbox.lock().extras {
                extras.nodes_watching.remove(&Incarnation(node));
            }
        }
        Control::Ended { reason } => ending::hear_of_end(place, &reason),
    }
}

fn watch(place: &Arc<dyn AnyPlace>, node: Incarnation, sleepers_too: bool) {
    let mut inner = place.header().mailbox.lock();
    let has_ended = inner.has_ended() || (sleepers_too && inner.is_asleep());
    let reason = inner.extras.as_ref().and_then(|extras| extras.stopped.clone());
    if !has_ended {
        inner.extras().nodes_watching.insert(node);
        return;
    }
    // Released before telling: the cluster is foreign.
    drop(inner);
    ship_end(place, vec![node], &reason.unwrap_or(StopReason::Requested));
}
