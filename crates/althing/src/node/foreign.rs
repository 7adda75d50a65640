//! Addresses of anonymous actors that other nodes started: found by identity, kept as long as
//! somebody holds them.
//!
//! Named actors need none of this: their address is in the directory, wherever they live.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::address::actor_id::{ActorId, Incarnation};
use crate::address::kind::Kind;
use crate::address::place::AnyPlace;

/// Addresses after which those that nobody holds any more are looked for.
const SWEEP_FROM: usize = 1_024;

#[derive(Default)]
pub(crate) struct Foreign {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    places: HashMap<ActorId, Weak<dyn AnyPlace>>,
    kinds: HashMap<(TypeId, Incarnation), Arc<Kind>>,
    sweep_at: usize,
}

impl Foreign {
    /// Takes all kinds out: they keep their node in memory.
    pub(crate) fn take(&self) -> Vec<Arc<Kind>> {
        self.known.lock().kinds.drain().map(|(_, kind)| kind).collect()
    }

    /// Those that somebody holds.
    pub(crate) fn held(&self) -> Vec<Arc<dyn AnyPlace>> {
        self.known.lock().places.values().filter_map(Weak::upgrade).collect()
    }

    /// The address of an actor, made if there is none; one that is made after the node `is_shut` is
    /// kept by nobody.
    pub(crate) fn get_or_make(
        &self,
        id: &ActorId,
        of: (TypeId, Incarnation),
        is_shut: impl FnOnce() -> bool,
        kind: impl FnOnce() -> Kind,
        place: impl FnOnce(Arc<Kind>) -> Arc<dyn AnyPlace>,
    ) -> Arc<dyn AnyPlace> {
        if let Some(place) = self.known(id) {
            return place;
        }
        let known_kind = self.known.lock().kinds.get(&of).cloned();
        // Made without the lock: the options of its type are foreign.
        let kind = known_kind.unwrap_or_else(|| Arc::new(kind()));
        let mut known = self.known.lock();
        if let Some(place) = known.places.get(id).and_then(Weak::upgrade) {
            return place;
        }
        if is_shut() {
            drop(known);
            return place(kind);
        }
        let kind = known.kinds.entry(of).or_insert(kind).clone();
        let place = place(kind);
        place.header().mailbox.lock().send_elsewhere();
        known.places.insert(id.clone(), Arc::downgrade(&place));
        if known.places.len() > known.sweep_at.max(SWEEP_FROM) {
            known.places.retain(|_, place| place.strong_count() > 0);
            // A node that has gone leaves no kinds behind, and neither does one that never was.
            known.kinds.retain(|_, kind| Arc::strong_count(kind) > 1);
            known.sweep_at = known.places.len() * 2;
        }
        place
    }

    /// The address of an actor, if somebody holds it.
    pub(crate) fn known(&self, id: &ActorId) -> Option<Arc<dyn AnyPlace>> {
        self.known.lock().places.get(id).and_then(Weak::upgrade)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::{Context, Poll};

    use super::SWEEP_FROM;
    use crate::actor::Actor;
    use crate::address::actor_id::{ActorId, Incarnation, KindName, Origin};
    use crate::node::shared::Node;
    use crate::remote::cluster::{Cluster, Location};
    use crate::remote::parcel::Parcel;

    struct Away;

    impl Cluster for Away {
        fn locate(&self, _: &ActorId) -> Location {
            Location::Elsewhere
        }

        fn poll_room(&self, _: &ActorId, _: &mut Context<'_>) -> Poll<()> {
            Poll::Ready(())
        }

        fn send(&self, _: Parcel) {}
    }

    struct Stranger;

    impl Actor for Stranger {
        const NAME: &'static str = "test.stranger";
    }

    #[tokio::test]
    async fn nodes_that_nobody_knows_any_more_leave_no_kinds_behind() {
        let node = Node::builder("home").cluster(Arc::new(Away)).build();
        let stranger = |n| {
            let origin = Origin { node: Incarnation(n), serial: u64::MAX, slot: u32::MAX };
            ActorId::anonymous(KindName::new(Stranger::NAME), origin)
        };
        let kept = node.resolve::<Stranger>(&stranger(u64::MAX)).expect("there is a cluster");
        for n in 0..10 * SWEEP_FROM as u64 {
            drop(node.resolve::<Stranger>(&stranger(n)).expect("there is a cluster"));
        }
        let known = node.shared().holdings().foreign.known.lock();
        assert!(known.places.len() <= 2 * SWEEP_FROM && known.kinds.len() <= 2 * SWEEP_FROM);
        drop(known);
        assert!(node.resolve(&stranger(u64::MAX)).is_some_and(|again| kept == again));
    }
}
