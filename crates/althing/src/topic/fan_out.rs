//! Brings one event to many subscribers: idle ones run in place, the others get it through their
//! mailbox.
//!
//! Subscribers of one actor type that stand next to each other share one loop in which everything
//! that does not depend on the single actor is done once: the metrics shard, the clock, the guard
//! around panics. What interrupts the loop (a busy subscriber, a handler that waits or panics, a
//! message to be timed) takes the longer way, and then the loop goes on.
//!
//! No panic of a subscriber leaves this file: the others behind it must get their event. And
//! nothing that can panic runs between giving an actor's claim back and turning to the next: a
//! panic there would be taken for the one of an actor that others run by then.

use std::any::type_name;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::chunk::{Delivered, Delivery, Time};
use super::event::{future_bytes, run_event};
use super::published::Published;
use super::share::Share;
use super::subscriber::{Deliver, Listener, Subscriber};
use crate::activation::body::Body;
use crate::activation::commit::Turns;
use crate::activation::current::{self, DEPTH_MAX, Frame, Top};
use crate::activation::fault::{Met, meet_as_event, put_off};
use crate::activation::polling::polling;
use crate::activation::run::Run;
use crate::activation::target::Target;
use crate::actor::EventHandler;
use crate::address::kind::Kind;
use crate::address::place::{AnyPlace, wake};
use crate::address::typed::Place;
use crate::mail::envelope::Envelope;
use crate::mail::in_place::NESTED_BYTES_MAX;
use crate::mail::mailbox::Pushed;
use crate::mail::outbox;
use crate::metrics::step::Step;
use crate::metrics::{Counter, Shard, trace};
use crate::shield::{discard, shielded};

/// Goes from subscriber to subscriber with one body, as long as its share lasts.
pub(super) struct Visitor<'a> {
    body: Option<Body>,
    may_run: bool,
    /// Whether the publisher is a handler, on whose stack others run.
    is_nested: bool,
    share: Share<'a>,
    /// Events that subscribers did not get.
    missed: u64,
}

/// Why a loop over idle subscribers ended.
enum Ended {
    /// At its end, or before one who is not idle.
    Between,
    /// The last one's handler waits, or its actor has something to do: the claim is still held.
    AtWork,
    /// The last one has stopped since it subscribed and lives again: the claim is still held.
    Stopped,
}

/// One loop over idle subscribers of a type. What ran is counted when it is dropped, also if a
/// handler panics.
struct Pass<'a, T> {
    own: Deliver<T>,
    kind: &'a Arc<Kind>,
    shard: Option<&'a Shard>,
    now_s: u32,
    body: &'a Body,
    top: &'a Top,
    event: &'a Arc<Published<T>>,
    /// Subscribers seen to; the last one's claim is held until it is left.
    seen: usize,
    /// How many of them the share has been told of.
    counted: usize,
    /// Whether the last one did not run, because it has stopped since it subscribed.
    has_stopped: bool,
    /// Whether the handler of the last one has ended, and what it told is being handed over.
    has_ended: bool,
}

impl<T> Drop for Pass<'_, T> {
    fn drop(&mut self) {
        if let Some(shard) = self.shard {
            shard.handle_all(self.seen as u32 - u32::from(self.has_stopped));
        }
    }
}

impl<T: Send + Sync + 'static> Pass<'_, T> {
    /// Runs subscribers until one is not idle, or the share is spent.
    ///
    /// # Safety
    /// As `visit`.
    #[inline(always)]
    unsafe fn visit_all<A: EventHandler<T>>(
        &mut self,
        subscribers: &[Subscriber<T>],
        share: &mut Share<'_>,
    ) -> Ended {
        let mut cx = Context::from_waker(Waker::noop());
        while self.counted < subscribers.len() {
            let upto = subscribers.len().min(self.counted + share.until_look());
            for next in &subscribers[self.counted..upto] {
                // SAFETY: our caller's promise.
                if let ControlFlow::Break(ended) = unsafe { self.visit::<A>(next, &mut cx) } {
                    return ended;
                }
            }
            share.count_visits(self.seen - self.counted);
            self.counted = self.seen;
            if share.is_spent() {
                break;
            }
        }
        Ended::Between
    }

    /// Runs the next subscriber if it is idle and of this pass's type; `Continue` once its claim is
    /// given back.
    ///
    /// # Safety
    /// Cells of subscribers with the function `own` are of type `A`.
    #[inline(always)]
    unsafe fn visit<A: EventHandler<T>>(
        &mut self,
        next: &Subscriber<T>,
        cx: &mut Context<'_>,
    ) -> ControlFlow<Ended> {
        let Listener::Actor(place) = &next.listener else {
            return ControlFlow::Break(Ended::Between);
        };
        if !ptr::fn_addr_eq(next.deliver, self.own) {
            return ControlFlow::Break(Ended::Between);
        }
        let pointer: *const Place<A> = Arc::as_ptr(place).cast();
        // SAFETY: the function tells the type; the subscriber keeps the place alive.
        let header = unsafe { &*pointer }.header();
        if !Arc::ptr_eq(&header.kind, self.kind) || !header.mailbox.try_claim() {
            return ControlFlow::Break(Ended::Between);
        }
        self.seen += 1;
        self.top.turn_to(place);
        self.body.turn_to(pointer);
        if header.stops() != next.stops {
            self.has_stopped = true;
            return ControlFlow::Break(Ended::Stopped);
        }
        header.mailbox.add_to_tally(1);
        header.touch_at(self.now_s);
        // SAFETY: the pointer is valid.
        let target = Target { state: unsafe { &*pointer }.state(), body: self.body, header };
        // SAFETY: the claim of a place of type `A` is ours, the body is empty, and our caller keeps
        // the event.
        let poll = unsafe { run_event::<A, T>(self.event, target, cx) };
        if poll.is_pending() || self.body.stops() {
            return ControlFlow::Break(Ended::AtWork);
        }
        if outbox::is_open() {
            self.has_ended = true;
            // Before leaving, because it may panic.
            outbox::boundary(1);
            self.has_ended = false;
        }
        if !header.mailbox.try_leave() {
            return ControlFlow::Break(Ended::AtWork);
        }
        ControlFlow::Continue(())
    }
}

impl<'a> Visitor<'a> {
    /// A visitor on the calling thread; `is_in_task` tells whether handlers may run in place here.
    pub(super) fn new(is_in_task: bool, share: Share<'a>) -> Self {
        let depth = current::depth();
        let may_run = is_in_task && depth < DEPTH_MAX;
        Self { body: None, may_run, is_nested: depth > 0, share, missed: 0 }
    }

    /// Whether subscribers of that type and node may run in place.
    #[inline]
    fn may_run<A: EventHandler<T>, T: Send + Sync + 'static>(&self, kind: &Kind) -> bool {
        self.may_run
            && A::TURNS != Turns::Held
            && !(self.is_nested && future_bytes::<A, T>() > NESTED_BYTES_MAX)
            // Of another node than the topic's, whose runtime may be another one, too.
            && (ptr::eq(&raw const *kind.node, self.share.node()) || kind.node.env.is_in_task())
    }

    /// Events that subscribers did not get since the last call.
    pub(super) fn take_missed(&mut self) -> u64 {
        std::mem::take(&mut self.missed)
    }

    pub(super) fn has_time(&self) -> bool {
        !self.share.is_spent()
    }

    /// Brings an event to its subscribers as far as the share reaches.
    pub(super) fn bring<T: Send + Sync + 'static>(
        &mut self,
        delivery: &Delivery<'_, Subscriber<T>, Arc<Published<T>>>,
    ) -> (Delivered, Time) {
        if delivery.skipped > 0 {
            count_skipped(delivery);
            self.missed += delivery.skipped * delivery.subscribers.len() as u64;
        }
        let all = delivery.subscribers;
        // Who came later has a later position: those who get the event stand in front.
        let subscribers = match all.last() {
            Some(last) if last.misses(delivery.event) => {
                &all[..all.partition_point(|subscriber| !subscriber.misses(delivery.event))]
            }
            _ => all,
        };
        let mut gone = Vec::new();
        let mut seen = 0;
        while let Some(first) = subscribers.get(seen)
            && self.has_time()
        {
            // SAFETY: the function is the first one's own.
            seen +=
                unsafe { (first.deliver)(self, &subscribers[seen..], delivery.event, &mut gone) };
        }
        if seen == subscribers.len() {
            seen = all.len();
            self.share.count_event();
        }
        let time = if self.has_time() { Time::Left } else { Time::Up };
        (Delivered { seen, gone }, time)
    }

    /// Runs subscribers in place, from the first on, as long as they have its function, are idle,
    /// and nothing else comes up; returns how many have been seen to.
    ///
    /// # Safety
    /// The first place is of type `A`, and so are those of the same function.
    unsafe fn run_idle<A: EventHandler<T>, T: Send + Sync + 'static>(
        &mut self,
        subscribers: &[Subscriber<T>],
        event: &Arc<Published<T>>,
        gone: &mut Vec<u64>,
    ) -> usize {
        let Subscriber { listener: Listener::Actor(first), deliver: own, .. } = &subscribers[0]
        else {
            return 0;
        };
        let kind = &first.header().kind;
        if !self.may_run::<A, T>(kind) || kind.tracing.is_on() || kind.node.env.is_simulated() {
            return 0;
        }
        let shard = kind.metrics.shard();
        let untimed = shard.map_or(u32::MAX, Shard::until_event_sample) as usize;
        let upto = untimed.min(subscribers.len());
        let now_s = kind.node.coarse_s();
        let body = self.body.take().unwrap_or_else(|| Body::take(Arc::as_ptr(first)));
        let guard = polling(first, Frame::Alone);
        let (share, own, body_ref) = (&mut self.share, *own, &body);
        let (outcome, seen, has_ended) = current::with_top(|top| {
            let mut pass = Pass {
                own,
                kind,
                shard,
                now_s,
                body: body_ref,
                top,
                event,
                seen: 0,
                counted: 0,
                has_stopped: false,
                has_ended: false,
            };
            // SAFETY: our caller's promise.
            let visit = || unsafe { pass.visit_all::<A>(&subscribers[..upto], share) };
            let outcome = catch_unwind(AssertUnwindSafe(visit));
            share.count_visits(pass.seen - pass.counted);
            (outcome, pass.seen, pass.has_ended)
        });
        shielded("handing over what subscribers told", || drop(guard));
        match outcome {
            Ok(Ended::Between) => self.body = Some(body),
            outcome => {
                let last = &subscribers[seen - 1];
                if matches!(outcome, Ok(Ended::Stopped)) {
                    gone.push(last.id);
                }
                let Listener::Actor(place) = &last.listener else { return seen };
                let message = type_name::<Published<T>>;
                resume(
                    Run::take_over_waiting(place.clone(), body, message),
                    outcome.err(),
                    has_ended,
                );
            }
        }
        seen
    }

    /// Delivers to one subscriber, whatever it is at: in place if it is idle, else through its
    /// mailbox. Returns whether it is still subscribed.
    ///
    /// # Safety
    /// `place` is a `Place<A>`.
    unsafe fn deliver_one<A: EventHandler<T>, T: Send + Sync + 'static>(
        &mut self,
        place: &Arc<dyn AnyPlace>,
        stops: u32,
        event: &Arc<Published<T>>,
    ) -> bool {
        let header = place.header();
        if !self.may_run::<A, T>(&header.kind) || !header.mailbox.try_claim() {
            return enqueue::<A, T>(place, stops, event, &mut self.missed);
        }
        let body = self.body.take().unwrap_or_else(|| Body::take(Arc::as_ptr(place)));
        body.retarget(Arc::as_ptr(place));
        if header.stops() != stops {
            Run::take_over(place.clone(), body).spawn();
            return false;
        }
        let from = header.sender_if_simulated();
        let guard = polling(place, Frame::Alone);
        let timed = header.kind.begin_message(type_name::<Published<T>>);
        header.mailbox.add_to_tally(1);
        let span = trace::span_in_place(header, type_name::<Published<T>>);
        let entered = span.as_ref().map(tracing::Span::enter);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            if header.kind.node.env.is_simulated() {
                match meet_as_event(header, from.as_ref(), type_name::<Published<T>>) {
                    Ok(()) => {}
                    Err(Met::Delay(delay)) => return Err(delay),
                    Err(Met::Refusal) => return Ok(Poll::Ready(())),
                }
            }
            let target = Target { state: place.state(), body: &body, header };
            let mut cx = Context::from_waker(Waker::noop());
            // SAFETY: the claim of a place of type `A` is ours, the body is empty, and our caller
            // keeps the event.
            let poll = unsafe { run_event::<A, T>(event, target, &mut cx) };
            header.observe(if poll.is_pending() { Step::Waits } else { Step::Ran });
            Ok(poll)
        }));
        drop(entered);
        shielded("handing over what a subscriber told", || drop(guard));
        header.touch();
        match outcome {
            Ok(Err(delay)) => {
                put_off(place.clone(), body, Envelope::event::<A, T>(event.clone()), delay);
            }
            Ok(Ok(Poll::Ready(()))) => {
                header.kind.end_timing_of(timed);
                if !body.stops() && header.mailbox.try_leave() {
                    self.body = Some(body);
                } else {
                    Run::take_over(place.clone(), body).spawn();
                }
            }
            Ok(Ok(Poll::Pending)) => {
                body.time(timed);
                body.trace(span);
                let message = type_name::<Published<T>>;
                Run::take_over_waiting(place.clone(), body, message).spawn();
            }
            Err(panic) => resume(Run::take_over(place.clone(), body), Some(panic), false),
        }
        true
    }
}

/// Goes on with an actor whose claim is still held, in a task: with its handler that waits, with
/// what has come meanwhile, or with what supervision says about a panic.
#[cold]
fn resume(run: Run, panic: Option<Box<dyn std::any::Any + Send>>, has_ended: bool) {
    match panic {
        // A handler that waits is polled again at once, with a waker that works.
        None => run.spawn(),
        Some(panic) => {
            if has_ended {
                // What panicked was the drop of a message that a subscriber had told somebody.
                run.spawn();
            } else {
                // What supervision drops may panic again.
                shielded("the end of a subscriber that panicked", || run.recover(&*panic));
            }
            discard("what a subscriber panicked with", panic);
        }
    }
}

/// # Safety
/// As `Deliver`.
pub(super) unsafe fn deliver_to_actors<A: EventHandler<T>, T: Send + Sync + 'static>(
    visitor: &mut Visitor<'_>,
    subscribers: &[Subscriber<T>],
    event: &Arc<Published<T>>,
    gone: &mut Vec<u64>,
) -> usize {
    let own = subscribers[0].deliver;
    let is_own =
        |seen: usize| subscribers.get(seen).is_some_and(|next| ptr::fn_addr_eq(next.deliver, own));
    let mut seen = 0;
    while is_own(seen) && visitor.has_time() {
        // SAFETY: subscribers with the first one's function have places of type `A`, as it has.
        seen += unsafe { visitor.run_idle::<A, T>(&subscribers[seen..], event, gone) };
        if !visitor.has_time() || !is_own(seen) {
            break;
        }
        let next = &subscribers[seen];
        seen += 1;
        visitor.share.count_visits(1);
        let Listener::Actor(place) = &next.listener else { continue };
        // SAFETY: as above.
        if !unsafe { visitor.deliver_one::<A, T>(place, next.stops, event) } {
            gone.push(next.id);
        }
    }
    seen
}

/// # Safety
/// None is needed; the type is that of `deliver_to_actors`.
pub(super) unsafe fn deliver_to_streams<T: Send + Sync + 'static>(
    visitor: &mut Visitor<'_>,
    subscribers: &[Subscriber<T>],
    event: &Arc<Published<T>>,
    _gone: &mut Vec<u64>,
) -> usize {
    let mut seen = 0;
    while let Some(next) = subscribers.get(seen)
        && let Listener::Stream(buffer) = &next.listener
        && visitor.has_time()
    {
        visitor.missed += u64::from(buffer.push(event.clone()));
        seen += 1;
        visitor.share.count_visits(1);
    }
    seen
}

/// Queues the event; returns whether the actor is still subscribed. One whose mailbox is full
/// misses it, which is counted.
fn enqueue<A: EventHandler<T>, T: Send + Sync + 'static>(
    place: &Arc<dyn AnyPlace>,
    stops: u32,
    event: &Arc<Published<T>>,
    missed: &mut u64,
) -> bool {
    let header = place.header();
    let sender = header.sender();
    let event = event.clone();
    let is_subscribed = || header.stops() == stops;
    let envelope = || Envelope::event::<A, T>(event).sent_from(sender);
    let wake = |what| {
        shielded("the waker of a subscriber", || wake(place, what));
    };
    match header.mailbox.push_if(is_subscribed, header.kind.len_max, envelope, wake) {
        Pushed::Queued => {}
        Pushed::Full => {
            *missed += 1;
            header.kind.metrics.count(Counter::Missed);
        }
        // An event is not sent on: a topic is subscribed to on the subscriber's own node.
        Pushed::Closed | Pushed::Elsewhere => return false,
    }
    true
}

/// Counts events that had to go before these subscribers could get them.
#[cold]
fn count_skipped<T>(delivery: &Delivery<'_, Subscriber<T>, Arc<Published<T>>>) {
    for subscriber in delivery.subscribers {
        if let Listener::Actor(place) = &subscriber.listener {
            place.header().kind.metrics.count_many(Counter::Missed, delivery.skipped);
        }
    }
}
