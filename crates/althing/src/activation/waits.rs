//! Who waits for whom: a cycle of asks would wait until its deadlines, so it fails at once and
//! names its path.
//!
//! An actor whose handler asks records an edge to whom it asks, under its own mailbox's lock,
//! before the message is sent; a handler that runs in place on its asker's thread is found on that
//! thread's stack instead. Then it follows the edges from there, and if they lead back, the ask
//! fails before anybody has seen its message. Two that close a cycle at the same moment both record
//! before they look, so at least one of them sees it. An edge whose reply has come no longer
//! counts, nor one whose handler has ended: the ask was moved elsewhere, to a task for instance.
//!
//! The rule is careful rather than clever: reads that could overlap count as waiting too, because a
//! write queued between them would not let them.

use std::collections::HashMap;
use std::sync::Arc;

use crate::activation::current;
use crate::activation::edge::{Caller, Edge};
use crate::address::actor_id::ActorId;
use crate::address::place::AnyPlace;
use crate::error::AskError;
use crate::mail::awaited::Awaited;

/// Actors looked at in search of a cycle: a larger tangle of waits is left to its deadlines.
const VISITED_MAX: usize = 4_096;

/// Removes an edge when the wait ends.
pub(crate) struct Waiting {
    from: Arc<dyn AnyPlace>,
    id: u64,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut inner = self.from.header().mailbox.lock();
        let edge = inner.extras.as_mut().and_then(|extras| extras.waits.remove(&self.id));
        // Released before dropping: the last reference to an actor may go.
        drop(inner);
        drop(edge);
    }
}

/// Records that the actor polled on this thread, if any, is about to wait for `reply` from `to`,
/// whose message is not yet sent.
///
/// # Errors
/// The cycle that this would close, from the actor around to it again.
pub(crate) fn begin(
    to: Arc<dyn AnyPlace>,
    reply: Arc<dyn Awaited>,
) -> Result<Option<Waiting>, Vec<ActorId>> {
    let Some(waiting) = record(&to, reply) else { return Ok(None) };
    match cycle(&waiting.from, to) {
        None => Ok(Some(waiting)),
        Some(cycle) => Err(cycle.path()),
    }
}

/// As `begin`, for a message whose handler has begun and waits now. If that closes a cycle, the ask
/// that leads back to the actor fails instead: its message waits for this handler, so it has not
/// run.
pub(crate) fn begin_late(to: &Arc<dyn AnyPlace>, reply: Arc<dyn Awaited>) -> Option<Waiting> {
    let waiting = record(to, reply)?;
    while let Some(cycle) = cycle(&waiting.from, to.clone()) {
        let path = cycle.path();
        match cycle.last {
            Some(last) if !last.is_settled() => last.refuse(AskError::Cycle(path)),
            _ => break,
        }
    }
    Some(waiting)
}

/// Whose replies the actor's handlers wait for.
pub(crate) fn awaited_by(place: &Arc<dyn AnyPlace>) -> Vec<ActorId> {
    waits_of(place).iter().map(|(to, _)| to.header().id()).collect()
}

/// Forgets the waits of handlers that have ended. The caller holds the actor's claim, and no
/// handler of it is left.
pub(crate) fn forget(place: &Arc<dyn AnyPlace>) {
    let mut inner = place.header().mailbox.lock();
    let waits = inner.extras.as_mut().map(|extras| std::mem::take(&mut extras.waits));
    // Released before dropping, as above.
    drop(inner);
    drop(waits);
}

/// Whose replies the actor's handlers wait for.
pub(crate) fn awaited_places(place: &Arc<dyn AnyPlace>) -> Vec<Arc<dyn AnyPlace>> {
    waits_of(place).into_iter().map(|(to, _)| to).collect()
}

fn record(to: &Arc<dyn AnyPlace>, reply: Arc<dyn Awaited>) -> Option<Waiting> {
    let from = current::actor()?;
    let header = from.header();
    let id = header.kind.node.next_serial();
    let called = header.kind.node.cluster.is_some().then_some(id);
    if called.is_some() {
        // So that an ask that leaves the node can say who waits for it.
        let caller = Caller::Here(from.clone());
        to.header().mailbox.lock().extras().callers.insert(id, caller);
    }
    header.mailbox.lock().extras().waits.insert(id, Edge { to: to.clone(), reply, called });
    // The runner forgets the edge once the handler has ended, even if the ask lives on elsewhere.
    header.call_attention();
    Some(Waiting { from, id })
}

/// Waits that lead from an actor back to it.
struct Cycle {
    actors: Vec<Arc<dyn AnyPlace>>,
    /// The ask that leads back; `None` if it runs in place.
    last: Option<Arc<dyn Awaited>>,
}

impl Cycle {
    fn path(&self) -> Vec<ActorId> {
        self.actors.iter().chain(self.actors.first()).map(|place| place.header().id()).collect()
    }
}

/// A step of the search: who it came from, by serial.
struct Step {
    place: Arc<dyn AnyPlace>,
    from: u64,
}

/// Searches breadth first, each actor once.
fn cycle(start: &Arc<dyn AnyPlace>, first: Arc<dyn AnyPlace>) -> Option<Cycle> {
    let home = start.header().serial();
    if first.header().serial() == home {
        return Some(Cycle { actors: vec![start.clone()], last: None });
    }
    if waits_of(&first).is_empty() {
        // Nearly always.
        return None;
    }
    let mut came_from =
        HashMap::from([(first.header().serial(), Step { place: first.clone(), from: home })]);
    let mut at = vec![first];
    while let Some(place) = at.pop() {
        let serial = place.header().serial();
        for (to, reply) in waits_of(&place) {
            let next = to.header().serial();
            if next == home {
                return Some(Cycle { actors: path(start, serial, &came_from), last: reply });
            }
            if came_from.len() < VISITED_MAX && !came_from.contains_key(&next) {
                came_from.insert(next, Step { place: to.clone(), from: serial });
                at.push(to);
            }
        }
    }
    None
}

/// Whom an actor waits for, and by which ask; none if it runs in place.
type Wait = (Arc<dyn AnyPlace>, Option<Arc<dyn Awaited>>);

/// Whom an actor waits for now.
fn waits_of(place: &Arc<dyn AnyPlace>) -> Vec<Wait> {
    let mut waits: Vec<_> = {
        let inner = place.header().mailbox.lock();
        let edges = inner.extras.iter().flat_map(|extras| extras.waits.values());
        edges.map(|edge| (edge.to.clone(), Some(edge.reply.clone()))).collect()
    };
    waits.retain(|(_, reply)| reply.as_ref().is_some_and(|reply| !reply.is_settled()));
    waits.extend(current::asked_by(place.header().serial()).map(|to| (to, None)));
    waits
}

fn path(
    start: &Arc<dyn AnyPlace>,
    last: u64,
    steps: &HashMap<u64, Step>,
) -> Vec<Arc<dyn AnyPlace>> {
    let home = start.header().serial();
    let mut path = Vec::new();
    let mut at = last;
    while at != home
        && let Some(step) = steps.get(&at)
    {
        path.push(step.place.clone());
        at = step.from;
    }
    path.push(start.clone());
    path.reverse();
    path
}
