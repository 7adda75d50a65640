//! Runs a handler on the caller's own task when its actor is idle: no queue, no reply slot, no task
//! switch.
//!
//! The caller claims the quiet mailbox, polls the handler once, and leaves. A handler that waits
//! moves into a task of its own, with a slot made then. Nesting is limited, because each level uses
//! the caller's stack.

use std::any::type_name;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tracing::Span;

use crate::activation::body::Body;
use crate::activation::commit::Turns;
use crate::activation::context::Context as ActorContext;
use crate::activation::current::{self, DEPTH_MAX, Frame};
use crate::activation::fault::{put_off, refused_by_fault};
use crate::activation::message::Running;
use crate::activation::polling::polling;
use crate::activation::run::Run;
use crate::activation::target::Target;
use crate::activation::waits::{self, Waiting};
use crate::actor::{Actor, Admission};
use crate::address::place::{AnyPlace, AsAnyPlace, Header};
use crate::address::typed::Place;
use crate::error::AskError;
use crate::mail::access::Access;
use crate::mail::dispatch::Dispatch;
use crate::mail::envelope::Envelope;
use crate::mail::reply::{Receiver, ReplyTo, channel};
use crate::metrics::step::Step;
use crate::metrics::{Counter, trace};
use crate::node::env::Fault;
use crate::shield::{discard, drop_payload};

/// Futures up to this size are built inside another handler: eight of them, each with its copies in
/// an unoptimised build, take a quarter of a usual stack of 2 MiB.
pub(crate) const NESTED_BYTES_MAX: usize = 16 * 1024;
/// Asks in place that count as one operation of tokio's cooperative budget: looking at it costs as
/// much as a tenth of an ask.
const ASKS_PER_OPERATION: u32 = 16;

thread_local! {
    static ASKS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// Makes a task that does nothing but ask in place yield now and then, as tokio's own operations
/// do.
#[inline]
pub(crate) fn poll_budget(cx: &mut Context<'_>) -> Poll<()> {
    let asks = ASKS.get().wrapping_add(1);
    ASKS.set(asks);
    if !asks.is_multiple_of(ASKS_PER_OPERATION) {
        return Poll::Ready(());
    }
    tokio::task::coop::poll_proceed(cx).map(|spent| spent.made_progress())
}

/// The size of a handler's future, which is built on the caller's stack first.
#[inline]
fn future_bytes<A: Actor, M: Send + 'static, D: Dispatch<A, M>>() -> usize {
    fn returned<S, M, C, R, F>(_: &impl FnOnce(*mut S, M, *mut C, &mut R) -> F) -> usize {
        size_of::<F>()
    }
    let call = |state: *mut A,
                message: M,
                context: *mut ActorContext<A>,
                reply: &mut ReplyTo<D::Reply>| {
        // SAFETY: never called; only its type is looked at.
        unsafe { D::call(state, message, context, reply) }
    };
    returned(&call)
}

/// What became of an ask in place.
pub(crate) enum InPlace<M, R> {
    /// The actor is busy, asleep, or too deep; the message comes back.
    Busy(M),
    /// Done.
    Replied(R),
    /// There will be no reply.
    Failed(Box<AskError>),
    /// The handler waits; its reply will come here.
    Waits(Receiver<R>, Option<Waiting>),
}

/// How a handler began. Small, because it is copied on its way: what seldom happens is boxed.
enum Begun<R> {
    Done(R),
    Refused(Box<AskError>),
    Waits(Receiver<R>),
    /// The handler ended and something else keeps the reply slot.
    Kept(Receiver<R>),
    Stashed(Box<Envelope>, Receiver<R>),
    /// A simulation wants it to begin later.
    PutOff(Box<(Envelope, Duration)>, Receiver<R>),
}

/// Asks an idle actor on the caller's task.
#[expect(
    clippy::too_many_lines,
    reason = "one way from claim to leave; its parts share a dozen values"
)]
#[inline]
pub(crate) fn ask<A: Actor, M: Send + 'static, D: Dispatch<A, M>>(
    place: &Arc<Place<A>>,
    message: M,
    cx: &mut Context<'_>,
) -> InPlace<M, D::Reply> {
    let header = place.header();
    let kind = &*header.kind;
    let depth = current::depth();
    if A::TURNS == Turns::Held
        || depth >= DEPTH_MAX
        || (depth > 0 && future_bytes::<A, M, D>() > NESTED_BYTES_MAX)
        || !kind.node.env.is_in_task()
        || !claim(header, depth)
    {
        return InPlace::Busy(message);
    }
    let pointer: *const Place<A> = Arc::as_ptr(place);
    let body = Body::take(pointer);
    let actor = untyped(place);
    // One look at one flag, because a handler may be shorter than what would be looked at.
    let is_seen = kind.keeps_senders;
    if is_seen {
        header.observe_in_place(type_name::<M>);
    }
    let guard = polling(&actor, Frame::Asked);
    let began_s = kind.node.coarse_s();
    let timed = kind.begin_message(type_name::<M>);
    header.mailbox.add_to_tally(1);
    let span = if is_seen { trace::span_in_place(header, type_name::<M>) } else { None };
    let entered = span.as_ref().map(Span::enter);
    // Written where it is read: to copy what was just written in smaller pieces stalls the
    // processor.
    let mut begun = None;
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let target = Target { state: place.state(), body: &body, header };
        if is_seen {
            begin_in_view::<A, M, D>(place, target, message, cx, &mut begun);
        } else {
            begin::<A, M, D>(place, target, message, cx, &mut begun);
        }
    }));
    drop(entered);
    drop(guard);
    let now_s = kind.node.coarse_s();
    if now_s != began_s {
        // It may have held its asker's thread for long: the next ask goes through the mailbox,
        // where deadlines hold, and learns anew.
        kind.quick.forget(type_name::<M>);
    }
    if let Err(panic) = caught {
        Run::take_over(place.as_any_place(), body).recover(&*panic);
        drop_payload(panic);
        // The reply, if what panicked was a drop after it was made.
        discard("dropping a reply", begun);
        return InPlace::Failed(Box::new(AskError::HandlerPanicked(header.id())));
    }
    match begun.expect("a handler that did not panic has begun") {
        Begun::Done(reply) => {
            header.kind.end_timing_of(timed);
            leave(place, body, now_s);
            InPlace::Replied(reply)
        }
        Begun::Refused(why) => {
            kind.metrics.count(Counter::Rejected);
            header.kind.end_timing_of(timed);
            leave(place, body, now_s);
            InPlace::Failed(why)
        }
        Begun::Kept(receiver) => {
            header.kind.end_timing_of(timed);
            leave(place, body, now_s);
            InPlace::Waits(receiver, None)
        }
        Begun::Waits(receiver) => {
            body.time(timed);
            body.trace(span);
            // Turns the claim into a run, so that no asker waits for the end of this handler.
            drop(header.mailbox.lock());
            let place = place.as_any_place();
            let waiting =
                if depth > 0 { waits::begin_late(&place, receiver.awaited()) } else { None };
            let take_over = match D::ACCESS {
                Access::Exclusive => Run::take_over_waiting,
                Access::Shared => Run::take_over_reading,
            };
            take_over(place, body, type_name::<M>).spawn();
            InPlace::Waits(receiver, waiting)
        }
        Begun::Stashed(envelope, receiver) => {
            kind.metrics.shard().inspect(|shard| shard.unhandle(1));
            Run::take_over(place.as_any_place(), body).stash_and_spawn(*envelope);
            InPlace::Waits(receiver, None)
        }
        Begun::PutOff(later, receiver) => {
            let (envelope, delay) = *later;
            put_off(place.as_any_place(), body, envelope, delay);
            InPlace::Waits(receiver, None)
        }
    }
}

/// Claims an idle actor. A task waits a little for another asker, because queueing costs more; a
/// handler does not: the actor may be claimed further down on its own stack.
#[inline]
fn claim(header: &Header, depth: u32) -> bool {
    let may_wait = depth == 0 && !header.kind.keeps_senders;
    if may_wait { header.mailbox.claim_soon() } else { header.mailbox.try_claim() }
}

/// Tells a simulation what became of a message.
#[cold]
fn observe<R>(header: &Header, begun: &Begun<R>) {
    header.observe(match begun {
        Begun::Done(_) | Begun::Kept(_) => Step::Ran,
        Begun::Refused(why) => match &**why {
            AskError::Rejected(_, text) => Step::Refused(text),
            _ => return,
        },
        Begun::Waits(_) => Step::Waits,
        Begun::Stashed(..) => Step::Stashed,
        // Its fault was told already.
        Begun::PutOff(..) => return,
    });
}

/// Lets a simulation's fault happen.
#[cold]
fn meet_fault<A: Actor, M: Send + 'static, D: Dispatch<A, M>>(
    header: &Header,
    fault: Fault,
    message: M,
) -> Begun<D::Reply> {
    let delay = match fault {
        Fault::None => Duration::ZERO,
        Fault::Panic => panic!("a fault of the simulation"),
        Fault::Refuse => {
            let refused = Begun::Refused(Box::new(refused_by_fault(header)));
            observe(header, &refused);
            return refused;
        }
        Fault::Delay(delay) => delay,
    };
    let (reply, receiver) = channel();
    Begun::PutOff(Box::new((Envelope::new::<A, M, D>(message, reply), delay)), receiver)
}

/// The same reference without its type and without counting it.
#[inline]
fn untyped<A: Actor>(place: &Arc<Place<A>>) -> ManuallyDrop<Arc<dyn AnyPlace>> {
    let place: *const Place<A> = Arc::as_ptr(place);
    let place: *const dyn AnyPlace = place;
    // SAFETY: the pointer is an `Arc`'s, which outlives this one; `ManuallyDrop` leaves its count
    // alone.
    ManuallyDrop::new(unsafe { Arc::from_raw(place) })
}

/// Begins, with a simulation's faults and before its eyes.
#[cold]
fn begin_in_view<A: Actor, M: Send + 'static, D: Dispatch<A, M>>(
    place: &Arc<Place<A>>,
    target: Target<'_>,
    message: M,
    cx: &mut Context<'_>,
    begun: &mut Option<Begun<D::Reply>>,
) {
    let header = place.header();
    let is_simulated = header.kind.node.env.is_simulated();
    if is_simulated {
        let fault = header.fault(type_name::<M>);
        if fault != Fault::None {
            *begun = Some(meet_fault::<A, M, D>(header, fault, message));
            return;
        }
    }
    begin::<A, M, D>(place, target, message, cx, begun);
    if is_simulated {
        begun.iter().for_each(|begun| observe(header, begun));
    }
}

/// Begins; `begun` is set unless the handler panics.
#[inline(always)]
fn begin<A: Actor, M: Send + 'static, D: Dispatch<A, M>>(
    place: &Arc<Place<A>>,
    target: Target<'_>,
    message: M,
    cx: &mut Context<'_>,
    begun: &mut Option<Begun<D::Reply>>,
) {
    let state = target.state.cast::<A>();
    let context = ActorContext::<A>::of(target.body.core());
    // SAFETY: our caller holds the claim, a quiet mailbox's actor has its state, the body is empty.
    match unsafe { D::admit(state, &message, context) } {
        Admission::Run => {}
        Admission::Stash => {
            let (reply, receiver) = channel();
            let envelope = Box::new(Envelope::new::<A, M, D>(message, reply));
            *begun = Some(Begun::Stashed(envelope, receiver));
            return;
        }
        Admission::Reject(why) => {
            let why = Box::new(AskError::Rejected(place.header().id(), why));
            *begun = Some(Begun::Refused(why));
            // Nobody's handler runs: a drop that panics is not the actor's failure.
            discard("dropping a refused message", message);
            return;
        }
    }
    let (mut reply, kept) = if D::KEEPS_REPLY {
        let (reply, receiver) = channel();
        reply.begin();
        reply.owe();
        (reply, Some(receiver))
    } else {
        (ReplyTo::nowhere(), None)
    };
    // SAFETY: as above; the claim is kept until the body is empty.
    let future = unsafe { D::call(state, message, context, &mut reply) };
    target.body.start_then(Running::new(reply, future, D::reply_of), cx, |running, poll| {
        *begun = Some(match (poll, running.output.take(), kept) {
            (Poll::Ready(()), Some(output), _) => Begun::Done(output),
            (Poll::Ready(()), None, Some(kept)) => Begun::Kept(kept),
            (Poll::Pending, _, Some(kept)) => Begun::Waits(kept),
            (_, _, None) => {
                let (reply, receiver) = channel();
                reply.begin();
                running.reply = reply;
                Begun::Waits(receiver)
            }
        });
    });
}

/// Gives the claim back after a handler that ended, or has a task see to what came meanwhile.
#[inline(always)]
fn leave<A: Actor>(place: &Arc<Place<A>>, body: Body, now_s: u32) {
    let header = place.header();
    header.touch_at(now_s);
    if body.stops() || !header.mailbox.try_leave() {
        go_on(place.as_any_place(), body);
    }
}

/// Has a task see to what an actor has to do, whose claim is held.
#[cold]
fn go_on(place: Arc<dyn AnyPlace>, body: Body) {
    Run::take_over(place, body).spawn();
}
