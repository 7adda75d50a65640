//! Who waits for an actor, beyond the edge of a node: the chain of asks that a message carries, and
//! the cycle it would close.
//!
//! On one node a cycle of asks is found by following who waits for whom (`waits`). An ask that
//! leaves the node carries with it who waits for the asker, and who waits for them. The node that
//! gets it follows its own waits from the actor on: if they lead to somebody in the chain, the
//! message would wait for itself, and is refused before it runs.
//!
//! An ask that left the node counts as a wait from its sending on: one that a handler leaves to a
//! task may be taken for a cycle, if the other asks back before the handler has ended.
//!
//! A cycle that three or more nodes close at the same moment, each with a message that the others
//! have not seen, is left to deadlines.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use crate::activation::edge::{Caller, forget_caller};
use crate::activation::{current, waits};
use crate::address::actor_id::ActorId;
use crate::address::place::AnyPlace;
use crate::remote::parcel::CHAIN_LEN_MAX;

/// Actors looked at in search of a cycle, as in `waits`.
const VISITED_MAX: usize = 4_096;

/// A caller's entry with the actor it waits for; removed when this drops.
pub(super) struct Called {
    place: Arc<dyn AnyPlace>,
    id: u64,
}

impl Called {
    /// Notes that the actors of `chain` wait for the one at `place`.
    pub(super) fn from_elsewhere(place: Arc<dyn AnyPlace>, chain: Vec<ActorId>) -> Self {
        let header = place.header();
        let id = header.kind.node.next_serial();
        header.mailbox.lock().extras().callers.insert(id, Caller::Elsewhere(chain.into()));
        Self { place, id }
    }
}

impl Drop for Called {
    fn drop(&mut self) {
        forget_caller(&self.place, self.id);
    }
}

/// The actor polled on this thread, last, and before it those who wait for it, the farthest first.
pub(super) fn of_current() -> Vec<ActorId> {
    current::actor().map_or_else(Vec::new, |actor| of(&actor))
}

/// An actor, last, and before it those who wait for it.
pub(super) fn of(actor: &Arc<dyn AnyPlace>) -> Vec<ActorId> {
    let mut chain = vec![actor.header().id()];
    let mut seen = HashSet::from([actor.header().serial()]);
    let mut next = VecDeque::from([actor.clone()]);
    while let Some(place) = next.pop_front()
        && chain.len() < CHAIN_LEN_MAX
    {
        for caller in callers_of(&place) {
            match caller {
                Caller::Here(place) => {
                    if seen.insert(place.header().serial()) {
                        chain.push(place.header().id());
                        next.push_back(place);
                    }
                }
                Caller::Elsewhere(ids) => chain.extend(ids.iter().rev().cloned()),
            }
        }
    }
    chain.truncate(CHAIN_LEN_MAX);
    chain.reverse();
    chain
}

/// The cycle that an ask of `to` would close if the actors of `chain` wait for its reply.
pub(super) fn cycle(to: &Arc<dyn AnyPlace>, chain: &[ActorId]) -> Option<Vec<ActorId>> {
    let mut seen = HashSet::from([to.header().serial()]);
    let mut next = VecDeque::from([(to.clone(), vec![to.header().id()])]);
    while let Some((place, path)) = next.pop_front()
        && seen.len() < VISITED_MAX
    {
        let waits = waits::awaited_places(&place);
        let is_waiting = !waits.is_empty() || place.header().mailbox.lock().is_elsewhere();
        let id = place.header().id();
        // An actor of this node that waits no more has given its ask up since the message was sent.
        if is_waiting && let Some(at) = chain.iter().position(|other| *other == id) {
            return Some(chain[at..].iter().cloned().chain(path).collect());
        }
        for awaited in waits {
            if seen.insert(awaited.header().serial()) {
                let mut path = path.clone();
                path.push(awaited.header().id());
                next.push_back((awaited, path));
            }
        }
    }
    None
}

fn callers_of(place: &Arc<dyn AnyPlace>) -> Vec<Caller> {
    let mut callers: Vec<_> = {
        let inner = place.header().mailbox.lock();
        inner.extras.iter().flat_map(|extras| extras.callers.values().cloned()).collect()
    };
    callers.extend(current::asker_of(place.header().serial()).map(Caller::Here));
    callers
}
