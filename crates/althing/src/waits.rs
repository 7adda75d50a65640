//! Who waits for whom: a cycle of asks would wait until its deadlines, so it fails at once and names its path.
//!
//! An actor whose handler awaits a reply records an edge to whom it asked, under its own mailbox's lock. Before it waits, it follows the
//! edges from there; if they lead back, the ask fails. Two that close a cycle at the same moment both record before they look, so at
//! least one of them sees it. An edge whose reply has come no longer counts.
//!
//! The rule is careful rather than clever: reads that could overlap count as waiting too, because a write queued between them would
//! not let them.

use std::sync::Arc;

use crate::actor_id::ActorId;
use crate::cell::{AnyCell, Header};
use crate::current;

/// Longest path followed: a longer chain of actors that wait for each other is left to its deadlines.
const PATH_LEN_MAX: usize = 64;

/// A reply that is being waited for.
pub(crate) trait Awaited: Send + Sync {
    /// Whether it has come, or will not.
    fn is_settled(&self) -> bool;
}

/// One handler's wait, as its actor's mailbox keeps it.
pub(crate) struct Edge {
    id: u64,
    to: Arc<dyn AnyCell>,
    reply: Arc<dyn Awaited>,
}

/// Removes an edge when the wait ends.
pub(crate) struct Waiting {
    from: Arc<dyn AnyCell>,
    id: u64,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut inner = self.from.header().mailbox.lock();
        if let Some(extras) = &mut inner.extras {
            extras.waits.retain(|edge| edge.id != self.id);
        }
    }
}

/// Records that the actor polled on this thread, if any, waits for `reply` from `to`.
///
/// # Errors
/// The cycle that this would close, from the actor around to it again.
pub(crate) fn begin(
    to: Arc<dyn AnyCell>,
    reply: Arc<dyn Awaited>,
) -> Result<Option<Waiting>, Vec<ActorId>> {
    let Some(from) = current::actor() else { return Ok(None) };
    let mut path = vec![from.clone()];
    let id = {
        let mut inner = from.header().mailbox.lock();
        let waits = &mut inner.extras().waits;
        let id = waits.last().map_or(0, |edge| edge.id + 1);
        waits.push(Edge { id, to: to.clone(), reply });
        id
    };
    let waiting = Waiting { from: from.clone(), id };
    if leads_back(to, &from, &mut path) {
        return Err(path.iter().chain([&from]).map(|cell| cell.header().id()).collect());
    }
    Ok(Some(waiting))
}

/// Whose replies the actor's handlers wait for.
pub(crate) fn awaited_by(header: &Header) -> Vec<ActorId> {
    let cells: Vec<_> = {
        let inner = header.mailbox.lock();
        let waits = inner.extras.iter().flat_map(|extras| &extras.waits);
        waits.filter(|edge| !edge.reply.is_settled()).map(|edge| edge.to.clone()).collect()
    };
    cells.iter().map(|cell| cell.header().id()).collect()
}

fn leads_back(
    at: Arc<dyn AnyCell>,
    start: &Arc<dyn AnyCell>,
    path: &mut Vec<Arc<dyn AnyCell>>,
) -> bool {
    if Arc::ptr_eq(&at, start) {
        return true;
    }
    if path.len() >= PATH_LEN_MAX || path.iter().any(|seen| Arc::ptr_eq(seen, &at)) {
        return false;
    }
    let next: Vec<_> = {
        let inner = at.header().mailbox.lock();
        let waits = inner.extras.iter().flat_map(|extras| &extras.waits);
        waits.filter(|edge| !edge.reply.is_settled()).map(|edge| edge.to.clone()).collect()
    };
    path.push(at);
    if next.into_iter().any(|next| leads_back(next, start, path)) {
        return true;
    }
    path.pop();
    false
}
