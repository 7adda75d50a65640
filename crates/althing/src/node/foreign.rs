//! Addresses of anonymous actors that other nodes started: found by identity, kept as long as somebody holds them.
//!
//! Named actors need none of this: their address is in the directory, wherever they live.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::NodeShared;
use crate::actor::Actor;
use crate::address::actor_id::{ActorId, Incarnation, Key, Origin};
use crate::address::kind::Kind;
use crate::address::place::{AnyPlace, Header, Place};

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
}

impl NodeShared {
    /// The place of another node's anonymous actor, made if there is none; `None` where there is no cluster.
    pub(crate) fn foreign<A: Actor>(self: &Arc<Self>, id: &ActorId) -> Option<Arc<dyn AnyPlace>> {
        self.cluster.as_ref()?;
        let origin = id.place_of_birth()?;
        let mut known = self.foreign.known.lock();
        if let Some(place) = known.places.get(id).and_then(Weak::upgrade) {
            return Some(place);
        }
        let kind = known
            .kinds
            .entry((TypeId::of::<A>(), origin.node))
            .or_insert_with(|| Arc::new(Kind::of_foreigners::<A>(self.clone(), origin.node)));
        let place = Place::<A>::new(Header::new(kind.clone(), Some(key_of(origin))), None, None);
        place.header().mailbox.lock().send_elsewhere();
        let place: Arc<dyn AnyPlace> = Arc::new(place);
        known.places.insert(id.clone(), Arc::downgrade(&place));
        if known.places.len() > known.sweep_at.max(SWEEP_FROM) {
            known.places.retain(|_, place| place.strong_count() > 0);
            known.sweep_at = known.places.len() * 2;
        }
        Some(place)
    }

    /// The place of another node's anonymous actor, if somebody holds its address.
    pub(crate) fn known_foreign(&self, id: &ActorId) -> Option<Arc<dyn AnyPlace>> {
        self.foreign.known.lock().places.get(id).and_then(Weak::upgrade)
    }
}

/// What stands in for a key in such a place.
fn key_of(origin: Origin) -> Key {
    format!("{}.{}", origin.serial, origin.slot).into()
}

/// Reads it back.
pub(crate) fn origin_of(key: &str, node: Incarnation) -> Origin {
    let (serial, slot) = key.split_once('.').unwrap_or((key, "0"));
    Origin { node, serial: serial.parse().unwrap_or(0), slot: slot.parse().unwrap_or(0) }
}
