//! What happens when a life ends: who hears of it, what becomes of waiting messages, and whether the cell lives on.
//!
//! A named actor with a factory survives its lives: messages that came meanwhile, and those its guards had put aside, start the next.
//! Any other cell closes. Everybody who waits for the end hears of it before a refused message is dropped: its drop may panic.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Waker;

use crate::actor::{StopReason, Terminated};
use crate::cell::{AnyCell, send_system};
use crate::envelope::Envelope;
use crate::error::AskError;
use crate::extras::{Extras, System};
use crate::mailbox::Phase;
use crate::metrics::Counter;

/// Ends a life whose state is gone already. `Continue`: messages wait, the claim is kept for the next life.
pub(crate) fn end_life(
    cell: &Arc<dyn AnyCell>,
    waiting: Vec<Envelope>,
    reason: &StopReason,
) -> ControlFlow<()> {
    let header = cell.header();
    let is_virtual = header.key().is_some() && cell.is_rebuildable();
    let keeps_messages =
        is_virtual && matches!(reason, StopReason::Passivated | StopReason::Requested);

    let mut inner = header.mailbox.lock();
    let was_active = std::mem::replace(&mut inner.active, false);
    let mut refused = waiting;
    let mut wakers = Vec::new();
    let mut next = ControlFlow::Break(());
    if keeps_messages {
        // What a guard put aside came first.
        let mut kept =
            inner.extras.as_mut().map_or_else(Vec::new, |extras| std::mem::take(&mut extras.stash));
        kept.append(&mut refused);
        inner.put_back(kept);
        if *reason == StopReason::Requested {
            // The subscriptions end here: no event of theirs starts another life.
            refused = inner.take_events();
        }
        if !inner.is_empty() {
            next = ControlFlow::Continue(());
        }
    } else if is_virtual {
        refused.append(&mut inner.take_queue());
        inner.hold(0, header.mailbox.tally());
        wakers = inner.call_up(header.kind.len_max);
    } else {
        let (queue, waiters) = inner.close();
        refused.extend(queue);
        wakers = waiters;
    }
    if next.is_break() {
        inner.phase = Phase::Idle;
    }
    inner.count_end();
    if *reason != StopReason::Passivated {
        header.count_stop();
    }
    if *reason != StopReason::Requested {
        inner.extras();
    }
    let farewell = inner.extras.as_mut().map(|extras| farewell(extras, reason, was_active));
    let closed = inner.closed;
    let parent = inner.extras.as_mut().and_then(|extras| extras.parent.take());
    drop(inner);
    if let Some(parent) = parent {
        leave_parent(&parent, cell);
    }
    if was_active {
        header.kind.metrics.count(Counter::Stopped);
    }

    wakers.into_iter().for_each(Waker::wake);
    if let Some(farewell) = farewell {
        refused.extend(farewell.say(cell, reason));
    }
    if closed {
        header.kind.node.directory.forget(cell);
    }
    for envelope in refused {
        let refuse = || envelope.reject(rejection(header.id(), reason));
        // The panic hook has told of it; those behind must hear of their end too.
        let _ = catch_unwind(AssertUnwindSafe(refuse));
    }
    next
}

fn leave_parent(parent: &Arc<dyn AnyCell>, child: &Arc<dyn AnyCell>) {
    let mut inner = parent.header().mailbox.lock();
    let children = &mut inner.extras().children;
    if let Some(place) = children.iter().position(|other| Arc::ptr_eq(other, child)) {
        // Keeps the order, which rest-for-one needs.
        children.remove(place);
    }
}

/// Those who must hear of an end.
struct Farewell {
    wakers: Vec<Waker>,
    watchers: Vec<Arc<dyn AnyCell>>,
    fellows: Vec<Arc<dyn AnyCell>>,
    stash: Vec<Envelope>,
}

fn farewell(extras: &mut Extras, reason: &StopReason, was_active: bool) -> Farewell {
    extras.stopped = Some(reason.clone());
    extras.suspended = None;
    extras.deferred.clear();
    extras.system.clear();
    let passivated = *reason == StopReason::Passivated && was_active;
    let mut fellows = std::mem::take(&mut extras.children);
    let mut watchers = Vec::new();
    if !passivated {
        fellows.append(&mut extras.linked);
        watchers = std::mem::take(&mut extras.watchers);
    }
    Farewell {
        wakers: std::mem::take(&mut extras.stop_waiters),
        watchers,
        fellows,
        stash: std::mem::take(&mut extras.stash),
    }
}

impl Farewell {
    /// Tells them; returns the messages that nobody will run any more.
    fn say(self, cell: &Arc<dyn AnyCell>, reason: &StopReason) -> Vec<Envelope> {
        let id = cell.header().id();
        for watcher in self.watchers {
            let news = Terminated { id: id.clone(), reason: reason.clone() };
            send_system(&watcher, System::Terminated(news));
        }
        for fellow in self.fellows {
            send_system(&fellow, System::Fail(StopReason::Linked(id.clone())));
        }
        self.wakers.into_iter().for_each(Waker::wake);
        self.stash
    }
}

fn rejection(id: crate::actor_id::ActorId, reason: &StopReason) -> AskError {
    match reason {
        StopReason::NotStarted(error) => AskError::NotStarted(id, error.clone()),
        _ => AskError::Stopped(id),
    }
}
