//! Runs a handler on the caller's own task when its actor is idle: no queue, no reply slot, no task switch.
//!
//! The caller takes the mailbox's claim, polls the handler once, and leaves. A handler that waits moves into a task of its
//! own, with a slot made then. Nesting is limited, because each level uses the caller's stack.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::actor::{Actor, Admission, EventHandler};
use crate::body::Running;
use crate::cell::{AnyCell, AsAnyCell, Cell, wake};
use crate::context::Context as ActorContext;
use crate::current;
use crate::dispatch::Dispatch;
use crate::envelope::{Envelope, run_event};
use crate::error::AskError;
use crate::mailbox::{Phase, Refused};
use crate::reply::{Receiver, channel};
use crate::run::Run;
use crate::topic::Published;

/// Handlers run inside each other on one stack; beyond it messages queue.
const DEPTH_MAX: u32 = 8;

/// What became of an ask in place.
pub(crate) enum InPlace<M, R> {
    /// The actor is busy, asleep, or too deep; the message comes back.
    Busy(M),
    /// Done.
    Replied(Result<R, AskError>),
    /// The handler waits; its reply will come here.
    Waits(Receiver<R>),
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivered {
    /// Run in place.
    Ran,
    /// Waits in the mailbox.
    Queued,
    /// The mailbox is full: the subscriber misses this event.
    Missed,
    /// The subscriber has stopped.
    Gone,
}

/// Takes the claim of an idle, started actor with nothing to do.
fn claim<A: Actor>(cell: &Arc<Cell<A>>) -> Option<Run> {
    if current::depth() >= DEPTH_MAX || !cell.header().kind.node.env.is_in_task() {
        return None;
    }
    let mut inner = cell.header().mailbox.lock();
    if !matches!(inner.phase, Phase::Idle)
        || !inner.active
        || inner.closed
        || !inner.is_empty()
        || inner.has_system()
    {
        return None;
    }
    inner.phase = Phase::Running;
    drop(inner);
    Some(Run::serving(cell.as_any_cell()))
}

/// Asks an idle actor on the caller's task.
pub(crate) fn ask<A: Actor, M: Send + 'static, D: Dispatch<A, M>>(
    cell: &Arc<Cell<A>>,
    message: M,
    cx: &mut Context<'_>,
) -> InPlace<M, D::Reply> {
    let Some(run) = claim(cell) else { return InPlace::Busy(message) };
    let path = current::path();
    let current = current::polling(cell.header());
    let outcome = catch_unwind(AssertUnwindSafe(|| start::<A, M, D>(&run, message, path, cx)));
    drop(current);
    match outcome {
        Ok(Begun::Refused(why)) => {
            run.leave();
            InPlace::Replied(Err(why))
        }
        Ok(Begun::Done(receiver)) => {
            run.leave();
            finish(receiver, cell)
        }
        Ok(Begun::Waits(receiver)) => {
            run.spawn();
            InPlace::Waits(receiver)
        }
        Ok(Begun::Stashed(envelope, receiver)) => {
            run.stash(envelope);
            run.leave();
            InPlace::Waits(receiver)
        }
        Err(panic) => {
            run.leave_panicked(&*panic);
            InPlace::Replied(Err(AskError::HandlerPanicked(cell.header().id())))
        }
    }
}

enum Begun<R> {
    Refused(AskError),
    Done(Receiver<R>),
    Waits(Receiver<R>),
    Stashed(Envelope, Receiver<R>),
}

fn finish<A: Actor, M, R>(receiver: Receiver<R>, cell: &Arc<Cell<A>>) -> InPlace<M, R> {
    match receiver.poll(Waker::noop()) {
        Poll::Ready(Ok(reply)) => InPlace::Replied(Ok(reply)),
        Poll::Ready(Err(why)) => {
            InPlace::Replied(Err(why.unwrap_or_else(|| AskError::NoReply(cell.header().id()))))
        }
        // A delayed handler kept the slot.
        Poll::Pending => InPlace::Waits(receiver),
    }
}

fn start<A: Actor, M: Send + 'static, D: Dispatch<A, M>>(
    run: &Run,
    message: M,
    path: Option<Arc<crate::current::AskPath>>,
    cx: &mut Context<'_>,
) -> Begun<D::Reply> {
    let target = run.target();
    let state = target.state.cast::<A>();
    let context = ActorContext::<A>::of(target.body.core());
    // SAFETY: the run holds the claim, the state is there (`active`), the body is empty.
    match unsafe { D::admit(state, &message, context) } {
        Admission::Run => {}
        Admission::Stash => {
            let (reply, receiver) = channel(path);
            return Begun::Stashed(Envelope::new::<A, M, D>(message, reply), receiver);
        }
        Admission::Reject(text) => {
            return Begun::Refused(AskError::Rejected(run.cell.header().id(), text));
        }
    }
    let (mut reply, receiver) = channel::<D::Reply>(path.clone());
    target.body.set_path(path.as_ref());
    // SAFETY: as above; the run keeps the claim until the body is empty.
    let future = unsafe { D::call(state, message, context, &mut reply) };
    match target.body.start(Running::new(reply, future), cx) {
        Poll::Ready(()) => Begun::Done(receiver),
        Poll::Pending => Begun::Waits(receiver),
    }
}

/// Delivers an event: in place if the subscriber is idle, else through its mailbox.
pub(crate) fn deliver<A: EventHandler<T>, T: Send + Sync + 'static>(
    cell: &Arc<Cell<A>>,
    event: &Arc<Published<T>>,
) -> Delivered {
    let Some(run) = claim(cell) else { return enqueue(cell, event) };
    let current = current::polling(cell.header());
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut cx = Context::from_waker(Waker::noop());
        // SAFETY: the run holds the claim of a cell of type `A`, and its body is empty.
        unsafe { run_event::<A, T>(event, run.target(), &mut cx) }
    }));
    drop(current);
    match outcome {
        Ok(Poll::Ready(())) => run.leave(),
        // The task polls it again at once, with a waker that works.
        Ok(Poll::Pending) => run.spawn(),
        Err(panic) => run.leave_panicked(&*panic),
    }
    Delivered::Ran
}

fn enqueue<A: EventHandler<T>, T: Send + Sync + 'static>(
    cell: &Arc<Cell<A>>,
    event: &Arc<Published<T>>,
) -> Delivered {
    let envelope = Envelope::event::<A, T>(event.clone());
    let header = cell.header();
    match header.mailbox.push(envelope, header.kind.len_max) {
        Ok(what) => {
            wake(cell, what);
            Delivered::Queued
        }
        Err(Refused::Full(_)) => Delivered::Missed,
        Err(Refused::Closed(_)) => Delivered::Gone,
    }
}
