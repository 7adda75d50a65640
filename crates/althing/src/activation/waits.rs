//! Who waits for whom: a cycle of asks would wait until its deadlines, so one of its asks fails at
//! once, with the path, before its message has run.
//!
//! An actor whose handler asks records an edge to whom it asks, under its own mailbox's lock,
//! before the message is sent. The edge counts as a wait once the handler is suspended with the ask
//! unanswered: until then it may still end, and leave the ask to a task. Cycles are looked for
//! twice: by an ask that is about to be sent, which then is not sent, and by an actor that has just
//! been suspended, which fails an ask of the cycle whose message has not begun. Of those that
//! suspend at the same moment at least one sees the whole cycle, because each counts its own edges
//! before it looks. In a cycle of waits one such ask always exists: the last one sent.
//!
//! An edge whose reply has come no longer counts, nor one whose handler has ended, nor one whose
//! ask is polled elsewhere. One whose ask was handed on leads to the actor that has it now; a reply
//! that an actor has kept is its own to give, in whatever task it has put it.
//!
//! The rule is careful rather than clever: reads that could overlap count as waiting too, because a
//! write queued between them would not let them.

use std::collections::HashMap;
use std::sync::Arc;

use crate::activation::current;
use crate::activation::edge::{Caller, Edge, Owed};
use crate::address::actor_id::ActorId;
use crate::address::place::AnyPlace;
use crate::error::AskError;

/// Actors looked at in search of a cycle: a larger tangle of waits is left to its deadlines.
const VISITED_MAX: usize = 4_096;

/// Removes an edge when the wait ends.
pub(crate) struct Waiting {
    from: Arc<dyn AnyPlace>,
    id: u64,
}

impl Waiting {
    /// Whether the ask is polled by somebody else than the handler that began it.
    pub(crate) fn has_moved(&self) -> bool {
        !current::is(self.from.header().serial())
    }
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
    reply: Arc<dyn Owed>,
) -> Result<Option<Waiting>, Vec<ActorId>> {
    let Some(waiting) = record(&to, reply.clone()) else { return Ok(None) };
    match cycle(&waiting.from, vec![Wait { id: waiting.id, to, reply }]) {
        None => Ok(Some(waiting)),
        Some(cycle) => Err(cycle.path_from(0)),
    }
}

/// As `begin`, for a message that is on its way already, or whose handler has begun.
pub(crate) fn begin_late(to: &Arc<dyn AnyPlace>, reply: Arc<dyn Owed>) -> Option<Waiting> {
    record(to, reply)
}

/// Has the edges of an actor count whose handler is suspended, and breaks up the cycles that they
/// close.
#[cold]
pub(crate) fn suspended(place: &Arc<dyn AnyPlace>) {
    let mut inner = place.header().mailbox.lock();
    inner.extras().waits.values_mut().for_each(|edge| edge.counts = true);
    drop(inner);
    while let Some(cycle) = cycle(place, waits_of(place)) {
        if !cycle.break_up() {
            break;
        }
    }
}

/// Whose replies the actor's handlers wait for.
pub(crate) fn awaited_by(place: &Arc<dyn AnyPlace>) -> Vec<ActorId> {
    waits_of(place).iter().map(|wait| wait.to.header().id()).collect()
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

/// Whose replies the actor's handlers wait for, or may be about to.
pub(crate) fn awaited_places(place: &Arc<dyn AnyPlace>) -> Vec<Arc<dyn AnyPlace>> {
    edges_of(place, |_| true).into_iter().map(|wait| wait.to).collect()
}

fn record(to: &Arc<dyn AnyPlace>, reply: Arc<dyn Owed>) -> Option<Waiting> {
    let from = current::actor()?;
    let header = from.header();
    let id = header.kind.node.next_serial();
    let called = header.kind.node.cluster.is_some().then_some(id);
    if called.is_some() {
        // So that an ask that leaves the node can say who waits for it.
        let caller = Caller::Here(from.clone());
        to.header().mailbox.lock().extras().callers.insert(id, caller);
    }
    let edge = Edge { to: to.clone(), reply, called, counts: false };
    header.mailbox.lock().extras().waits.insert(id, edge);
    // The runner forgets the edge once the handler has ended, even if the ask lives on elsewhere.
    header.call_attention();
    Some(Waiting { from, id })
}

/// An edge, as a search sees it.
struct Wait {
    /// Later waits have higher numbers.
    id: u64,
    to: Arc<dyn AnyPlace>,
    reply: Arc<dyn Owed>,
}

/// Waits that lead from an actor back to it, each from where the one before it leads.
struct Cycle(Vec<Wait>);

impl Cycle {
    /// The actors, from the one that waits by `self.0[first]` around to it again.
    fn path_from(&self, first: usize) -> Vec<ActorId> {
        let len = self.0.len();
        (0..=len).map(|step| self.0[(first + len - 1 + step) % len].to.header().id()).collect()
    }

    /// Fails the latest ask whose message has not begun. Returns whether the cycle is broken, by us
    /// or by others.
    fn break_up(&self) -> bool {
        let mut latest_first: Vec<_> = (0..self.0.len()).collect();
        latest_first.sort_by_key(|at| std::cmp::Reverse(self.0[*at].id));
        latest_first.into_iter().any(|at| {
            let reply = &self.0[at].reply;
            reply.is_settled() || reply.refuse(AskError::Cycle(self.path_from(at)))
        })
    }
}

/// How a search came to an actor.
struct Step {
    /// From whom, by serial.
    from: u64,
    wait: Wait,
}

/// Searches from `start` along `first`, each actor once.
fn cycle(start: &Arc<dyn AnyPlace>, first: Vec<Wait>) -> Option<Cycle> {
    let home = start.header().serial();
    let mut steps = HashMap::new();
    let mut at = vec![(home, first)];
    while let Some((from, waits)) = at.pop() {
        for wait in waits {
            let next = wait.to.header().serial();
            if next == home {
                return Some(trace_back(from, home, wait, steps));
            }
            if steps.len() < VISITED_MAX && !steps.contains_key(&next) {
                let onward = waits_of(&wait.to);
                if !onward.is_empty() {
                    // Nearly never.
                    steps.insert(next, Step { from, wait });
                    at.push((next, onward));
                }
            }
        }
    }
    None
}

fn trace_back(mut at: u64, home: u64, last: Wait, mut steps: HashMap<u64, Step>) -> Cycle {
    let mut waits = vec![last];
    while at != home
        && let Some(step) = steps.remove(&at)
    {
        waits.push(step.wait);
        at = step.from;
    }
    waits.reverse();
    Cycle(waits)
}

/// Whom an actor waits for now.
fn waits_of(place: &Arc<dyn AnyPlace>) -> Vec<Wait> {
    edges_of(place, |edge| edge.counts)
}

fn edges_of(place: &Arc<dyn AnyPlace>, counts: impl Fn(&Edge) -> bool) -> Vec<Wait> {
    let mut waits: Vec<_> = {
        let inner = place.header().mailbox.lock();
        let edges = inner.extras.iter().flat_map(|extras| &extras.waits);
        edges
            .filter(|(_, edge)| counts(edge))
            .map(|(id, edge)| Wait { id: *id, to: edge.to.clone(), reply: edge.reply.clone() })
            .collect()
    };
    waits.retain(|wait| !wait.reply.is_settled());
    for wait in &mut waits {
        if let Some(other) = wait.reply.owed_by() {
            wait.to = other;
        }
    }
    waits
}
