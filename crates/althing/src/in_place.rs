//! Runs a handler on the caller's own task when its actor is idle: no queue, no reply slot, no task switch.
//!
//! The caller claims the quiet mailbox, polls the handler once, and leaves. A handler that waits moves into a task of its
//! own, with a slot made then. Nesting is limited, because each level uses the caller's stack.

use std::any::type_name;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tracing::Span;

use crate::actor::{Actor, Admission, EventHandler};
use crate::body::{Body, Running};
use crate::cell::{AnyCell, AsAnyCell, Cell, Header, wake};
use crate::context::Context as ActorContext;
use crate::current;
use crate::dispatch::Dispatch;
use crate::envelope::{Envelope, Target, run_event};
use crate::error::AskError;
use crate::mailbox::Pushed;
use crate::metrics::{Counter, Timed};
use crate::reply::{Receiver, ReplyTo, channel};
use crate::run::Run;
use crate::topic::Published;
use crate::trace;

/// Handlers run inside each other on one stack; beyond it messages queue.
pub(crate) const DEPTH_MAX: u32 = 8;

/// What became of an ask in place.
pub(crate) enum InPlace<M, R> {
    /// The actor is busy, asleep, or too deep; the message comes back.
    Busy(M),
    /// Done.
    Replied(Result<R, AskError>),
    /// The handler waits; its reply will come here.
    Waits(Receiver<R>),
}

/// How a handler began.
enum Begun<R> {
    Done(R),
    Refused(AskError),
    Waits(Receiver<R>),
    /// The handler ended and something else keeps the reply slot.
    Kept(Receiver<R>),
    Stashed(Envelope, Receiver<R>),
}

/// Asks an idle actor on the caller's task.
#[inline]
pub(crate) fn ask<A: Actor, M: Send + 'static, D: Dispatch<A, M>>(
    cell: &Arc<Cell<A>>,
    message: M,
    cx: &mut Context<'_>,
) -> InPlace<M, D::Reply> {
    let header = cell.header();
    if current::depth() >= DEPTH_MAX
        || !header.kind.node.env.is_in_task()
        || !header.mailbox.try_claim()
    {
        return InPlace::Busy(message);
    }
    let place: *const Cell<A> = Arc::as_ptr(cell);
    let body = Body::take(place);
    let actor = untyped(cell);
    let guard = current::polling(&actor);
    let timed = header.kind.begin_message(type_name::<M>);
    header.mailbox.add_to_tally(1);
    let span = trace::span_in_place(header, type_name::<M>);
    let entered = span.as_ref().map(Span::enter);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let target = Target { state: cell.state(), body: &body, header };
        begin::<A, M, D>(cell, target, message, cx)
    }));
    drop(entered);
    drop(guard);
    match outcome {
        Ok(Begun::Done(reply)) => {
            end_timing(header, timed);
            leave(cell, body);
            InPlace::Replied(Ok(reply))
        }
        Ok(Begun::Refused(why)) => {
            header.kind.metrics.count(Counter::Rejected);
            end_timing(header, timed);
            leave(cell, body);
            InPlace::Replied(Err(why))
        }
        Ok(Begun::Kept(receiver)) => {
            end_timing(header, timed);
            leave(cell, body);
            InPlace::Waits(receiver)
        }
        Ok(Begun::Waits(receiver)) => {
            body.time(timed);
            body.trace(span);
            Run::take_over(cell.as_any_cell(), body).spawn();
            InPlace::Waits(receiver)
        }
        Ok(Begun::Stashed(envelope, receiver)) => {
            header.kind.metrics.shard().inspect(|shard| shard.unhandle(1));
            Run::take_over(cell.as_any_cell(), body).stash_and_spawn(envelope);
            InPlace::Waits(receiver)
        }
        Err(panic) => {
            Run::take_over(cell.as_any_cell(), body).recover(&*panic);
            InPlace::Replied(Err(AskError::HandlerPanicked(header.id())))
        }
    }
}

/// The same reference without its type and without counting it.
#[inline]
fn untyped<A: Actor>(cell: &Arc<Cell<A>>) -> ManuallyDrop<Arc<dyn AnyCell>> {
    let cell: *const Cell<A> = Arc::as_ptr(cell);
    let cell: *const dyn AnyCell = cell;
    // SAFETY: the pointer is an `Arc`'s, which outlives this one; `ManuallyDrop` leaves its count alone.
    ManuallyDrop::new(unsafe { Arc::from_raw(cell) })
}

#[inline]
fn begin<A: Actor, M: Send + 'static, D: Dispatch<A, M>>(
    cell: &Arc<Cell<A>>,
    target: Target<'_>,
    message: M,
    cx: &mut Context<'_>,
) -> Begun<D::Reply> {
    let state = target.state.cast::<A>();
    let context = ActorContext::<A>::of(target.body.core());
    // SAFETY: our caller holds the claim, a quiet mailbox's actor has its state, the body is empty.
    match unsafe { D::admit(state, &message, context) } {
        Admission::Run => {}
        Admission::Stash => {
            let (reply, receiver) = channel();
            return Begun::Stashed(Envelope::new::<A, M, D>(message, reply), receiver);
        }
        Admission::Reject(text) => {
            return Begun::Refused(AskError::Rejected(cell.header().id(), text));
        }
    }
    let (mut reply, kept) = if D::KEEPS_REPLY {
        let (reply, receiver) = channel();
        (reply, Some(receiver))
    } else {
        (ReplyTo::nowhere(), None)
    };
    // SAFETY: as above; the claim is kept until the body is empty.
    let future = unsafe { D::call(state, message, context, &mut reply) };
    target.body.start_then(Running::new(reply, future), cx, |running, poll| {
        match (poll, running.output.take(), kept) {
            (Poll::Ready(()), Some(output), _) => Begun::Done(output),
            (Poll::Ready(()), None, Some(kept)) => Begun::Kept(kept),
            (Poll::Pending, _, Some(kept)) => Begun::Waits(kept),
            (_, _, None) => {
                let (reply, receiver) = channel();
                running.reply = reply;
                Begun::Waits(receiver)
            }
        }
    })
}

#[inline]
fn end_timing(header: &Header, timed: Option<Timed>) {
    if let Some(timed) = timed {
        header.kind.end_timing(timed);
    }
}

/// Gives the claim back after a handler that ended, or has a task see to what came meanwhile.
#[inline]
fn leave<A: Actor>(cell: &Arc<Cell<A>>, body: Body) {
    let header = cell.header();
    header.touch();
    if body.stops() || !header.mailbox.try_leave() {
        Run::take_over(cell.as_any_cell(), body).spawn();
    }
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

/// Goes from subscriber to subscriber with one body.
pub(crate) struct Visitor {
    body: Option<Body>,
    may_run: bool,
}

impl Visitor {
    /// A visitor on the calling thread; `may_run` tells whether handlers may run in place here.
    pub(crate) fn new(is_in_task: bool) -> Self {
        Self { body: None, may_run: is_in_task && current::depth() < DEPTH_MAX }
    }

    /// Delivers an event: in place if the subscriber is idle, else through its mailbox. `cell` is of type `A`.
    ///
    /// # Safety
    /// `cell` is a `Cell<A>`.
    pub(crate) unsafe fn deliver<A: EventHandler<T>, T: Send + Sync + 'static>(
        &mut self,
        cell: &Arc<dyn AnyCell>,
        event: &Arc<Published<T>>,
    ) -> Delivered {
        let header = cell.header();
        if !self.may_run || !header.mailbox.try_claim() {
            return enqueue::<A, T>(cell, event);
        }
        let body = self.body.take().unwrap_or_else(|| Body::take(Arc::as_ptr(cell)));
        body.retarget(Arc::as_ptr(cell));
        let guard = current::polling(cell);
        let timed = header.kind.begin_message(type_name::<Published<T>>);
        header.mailbox.add_to_tally(1);
        let span = trace::span_in_place(header, type_name::<Published<T>>);
        let entered = span.as_ref().map(Span::enter);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let target = Target { state: cell.state(), body: &body, header };
            let mut cx = Context::from_waker(Waker::noop());
            // SAFETY: the claim of a cell of type `A` is ours, and the body is empty.
            unsafe { run_event::<A, T>(event, target, &mut cx) }
        }));
        drop(entered);
        drop(guard);
        header.touch();
        match outcome {
            Ok(Poll::Ready(())) => end_timing(header, timed),
            Ok(Poll::Pending) => {
                body.time(timed);
                body.trace(span);
            }
            Err(_) => {}
        }
        match outcome {
            Ok(Poll::Ready(())) if !body.stops() && header.mailbox.try_leave() => {
                self.body = Some(body);
            }
            // A handler that waits is polled again at once, with a waker that works.
            Ok(_) => Run::take_over(cell.clone(), body).spawn(),
            Err(panic) => Run::take_over(cell.clone(), body).recover(&*panic),
        }
        Delivered::Ran
    }
}

fn enqueue<A: EventHandler<T>, T: Send + Sync + 'static>(
    cell: &Arc<dyn AnyCell>,
    event: &Arc<Published<T>>,
) -> Delivered {
    let header = cell.header();
    let sender = header.sender();
    let event = event.clone();
    let envelope = || Envelope::event::<A, T>(event).sent_from(sender);
    match header.mailbox.push(header.kind.len_max, envelope) {
        Pushed::Queued(what) => {
            wake(cell, what);
            Delivered::Queued
        }
        Pushed::Full => {
            header.kind.metrics.count(Counter::Missed);
            Delivered::Missed
        }
        Pushed::Closed => Delivered::Gone,
    }
}
