//! The way in for what concerns an actor's life and not its mailbox: start, stop, kill, watching,
//! and the news of an end.

use std::sync::Arc;

use crate::activation::ending;
use crate::activation::stopping::request_stop;
use crate::address::actor_id::{ActorId, Incarnation};
use crate::address::place::AnyPlace;
use crate::address::signal::send_system_from;
use crate::address::tie::TieNumber;
use crate::mail::extras::System;
use crate::mail::mailbox::Sent;
use crate::node::shared::Node;
use crate::remote::departure::forget_lost;
use crate::remote::outgoing::ship_end;
use crate::remote::parcel::Control;
use crate::stop_reason::StopReason;

impl Node {
    /// Whether actors of this node watch that one or are linked with it.
    pub fn watches(&self, id: &ActorId) -> bool {
        let Ok(place) = self.place_of(id) else { return false };
        let inner = place.header().mailbox.lock();
        inner.extras.as_ref().is_some_and(|extras| extras.is_watched())
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
        Control::Watch { node, sleepers_too, number } => {
            watch(place, (Incarnation(node), number), sleepers_too);
        }
        Control::Unwatch { node, number } => unwatch(place, Incarnation(node), number),
        Control::Ended { reason, number } => {
            ending::hear_of_end(place, &reason, TieNumber::of_number(number));
        }
    }
}

fn unwatch(place: &Arc<dyn AnyPlace>, node: Incarnation, number: u64) {
    if let Some(extras) = &mut place.header().mailbox.lock().extras
        && extras.nodes_watching.get(&node).is_some_and(|last| *last <= number)
    {
        extras.nodes_watching.remove(&node);
    }
}

fn watch(place: &Arc<dyn AnyPlace>, (node, number): (Incarnation, u64), sleepers_too: bool) {
    // One without a name hears of lost nodes by nothing else.
    forget_lost(place);
    let mut inner = place.header().mailbox.lock();
    let has_ended = inner.has_ended();
    if !(has_ended || sleepers_too && inner.sleeps_now()) {
        let last = inner.extras().nodes_watching.entry(node).or_default();
        *last = number.max(*last);
        return;
    }
    // Of one that sleeps the next life is watched: only who awaits an end hears that there is none.
    let reason = if has_ended { inner.last_end() } else { StopReason::Passivated };
    // Released before telling: the cluster is foreign.
    drop(inner);
    ship_end(place, [(node, number)], &reason);
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll};

    use super::*;
    use crate::actor::Actor;
    use crate::epoch::Epoch;
    use crate::remote::cluster::{Cluster, Location};
    use crate::remote::parcel::Parcel;

    /// Has that other node only.
    struct Only(Incarnation);

    impl Cluster for Only {
        fn locate(&self, _: &ActorId) -> Location {
            Location::Here(Epoch(1))
        }

        fn poll_room(&self, _: &ActorId, _: &mut Context<'_>) -> Poll<()> {
            Poll::Ready(())
        }

        fn send(&self, _: Parcel) {}

        fn has(&self, node: Incarnation) -> bool {
            node == self.0
        }
    }

    struct Seen;

    impl Actor for Seen {
        const NAME: &'static str = "test.seen";
    }

    #[tokio::test]
    async fn an_actor_without_a_name_forgets_lost_nodes_when_another_one_watches_it() {
        let node = Node::builder("home").cluster(Arc::new(Only(Incarnation(1)))).build();
        let seen = node.spawn(Seen);
        let place = node.place_of(&seen.id()).expect("it is here");
        (1..1_000).for_each(|other| watch(&place, (Incarnation(other), 1), false));
        let inner = place.header().mailbox.lock();
        let watching = inner.extras.as_ref().map(|extras| extras.nodes_watching.keys().copied());
        let watching: Vec<_> = watching.into_iter().flatten().collect();
        assert_eq!(watching, [Incarnation(1), Incarnation(999)], "the last one has just come");
    }
}
