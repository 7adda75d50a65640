//! Who supervises whom: the actors in memory with their parents and children, their restarts and
//! what they failed with last.
//!
//! Each actor is looked at under its own mailbox's lock. The tree is no cut through time: a child
//! may have come or gone between two looks.

use std::collections::HashSet;
use std::sync::Arc;

use crate::activation::supervision::Failure;
use crate::address::actor_id::ActorId;
use crate::address::place::{AnyPlace, Header};
use crate::metrics::inspection::{Inspector, VISITS_MAX};

/// Parents told above an actor that is found: deeper than trees are.
const ANCESTORS_MAX: usize = 32;

/// An actor in the tree of supervision.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Supervised {
    /// Who it is.
    pub id: ActorId,
    /// Who started it as a child.
    pub parent: Option<ActorId>,
    /// Its children, whether they are told too or not.
    pub children: usize,
    /// Whether it has its state in memory.
    pub is_active: bool,
    /// How often it was restarted since the node has had it in memory.
    pub restarts: u32,
    /// What it failed with last.
    pub last_failure: Option<Failure>,
}

/// What was found of the tree of supervision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tree {
    /// The actors that were found and the parents above them, in the order in which they were made:
    /// a parent comes before its children.
    pub actors: Vec<Supervised>,
    /// Actors that would have been found too, had there been room.
    pub left: usize,
}

impl Inspector {
    /// The actors whose kind or key holds `text`, `limit` at most, with the parents above them. An
    /// empty `text` finds all that have a parent or children, or have failed.
    ///
    /// Visits every actor of the node and locks its mailbox for a moment.
    pub fn tree(&self, text: &str, limit: usize) -> Tree {
        let mut found: Vec<Arc<dyn AnyPlace>> = Vec::new();
        let mut left = 0;
        self.node().holdings().directory.sample(VISITS_MAX, |place| {
            let header = place.header();
            let is_wanted = match text {
                "" => is_related(header),
                text => holds(header, text),
            };
            if is_wanted && found.len() < limit {
                found.push(place.clone());
            } else {
                left += usize::from(is_wanted);
            }
        });
        let all = with_ancestors(found);
        let mut actors: Vec<_> =
            all.iter().map(|place| (place.header().serial(), tell(place))).collect();
        actors.sort_by_key(|(serial, _)| *serial);
        Tree { actors: actors.into_iter().map(|(_, actor)| actor).collect(), left }
    }
}

fn is_related(header: &Header) -> bool {
    let inner = header.mailbox.lock();
    inner.extras.as_ref().is_some_and(|extras| {
        extras.parent.is_some() || !extras.children.is_empty() || !extras.restarts.is_empty()
    })
}

pub(super) fn holds(header: &Header, text: &str) -> bool {
    let in_key = header.key().is_some_and(|key| key.contains(text));
    // The whole name last: it has to be made.
    in_key
        || header.kind.id.as_str().contains(text)
        || (text.contains(['/', '#']) && header.id().to_string().contains(text))
}

fn parent_of(place: &Arc<dyn AnyPlace>) -> Option<Arc<dyn AnyPlace>> {
    let inner = place.header().mailbox.lock();
    inner.extras.as_ref()?.parent.clone()
}

/// Adds the parents above each, once.
fn with_ancestors(found: Vec<Arc<dyn AnyPlace>>) -> Vec<Arc<dyn AnyPlace>> {
    let mut known: HashSet<_> = found.iter().map(|place| place.header().serial()).collect();
    let mut above = Vec::new();
    for place in &found {
        let mut next = parent_of(place);
        for _ in 0..ANCESTORS_MAX {
            let Some(parent) = next.filter(|parent| known.insert(parent.header().serial())) else {
                break;
            };
            next = parent_of(&parent);
            above.push(parent);
        }
    }
    above.extend(found);
    above
}

fn tell(place: &Arc<dyn AnyPlace>) -> Supervised {
    let header = place.header();
    let inner = header.mailbox.lock();
    let is_active = inner.is_active();
    let extras = inner.extras.as_ref();
    let parent = extras.and_then(|extras| extras.parent.clone());
    let children = extras.map_or(0, |extras| extras.children.len());
    let restarts = extras.map_or(0, |extras| extras.restarts.total());
    let last_failure = extras.and_then(|extras| extras.restarts.last());
    drop(inner);
    // Named after the lock, and so that a last reference to the parent goes after it.
    let parent = parent.map(|parent| parent.header().id());
    Supervised { id: header.id(), parent, children, is_active, restarts, last_failure }
}
