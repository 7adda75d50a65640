//! Brings one event to many subscribers: idle ones run in place, the others get it through their mailbox.
//!
//! Subscribers of one actor type that stand next to each other share one loop in which everything that does not depend on the single actor is
//! done once: the metrics shard, the clock, the guard around panics. What interrupts the loop (a busy subscriber, a handler that waits or
//! panics, a message to be timed) takes the longer way, and then the loop goes on.

use std::any::type_name;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::actor::EventHandler;
use crate::actor_id::ActorId;
use crate::body::Body;
use crate::cell::{AnyCell, AsAnyCell, Cell, Header, wake};
use crate::current::{self, Frame};
use crate::env::Fault;
use crate::envelope::{Envelope, Target, run_event};
use crate::in_place::{DEPTH_MAX, end_timing};
use crate::mailbox::Pushed;
use crate::metrics::{Counter, Shard};
use crate::observe::Step;
use crate::outbox;
use crate::run::Run;
use crate::topic::{Published, Sequence};
use crate::trace;

/// One subscription of an actor.
pub(crate) struct Subscriber<T> {
    pub(crate) id: u64,
    since: Sequence,
    cell: Arc<dyn AnyCell>,
    deliver: Deliver<T>,
}

/// Delivers to as many subscribers from the first on as have this same function, which is made for their actor type; returns how many
/// that were. Those who have stopped are added to the list.
///
/// # Safety
/// There is a first subscriber, and it has this function.
type Deliver<T> =
    unsafe fn(&mut Visitor, &[Subscriber<T>], &Arc<Published<T>>, &mut Vec<u64>) -> usize;

impl<T: Send + Sync + 'static> Subscriber<T> {
    pub(crate) fn new<A: EventHandler<T>>(id: u64, since: Sequence, cell: &Arc<Cell<A>>) -> Self {
        Self { id, since, cell: cell.as_any_cell(), deliver: deliver::<A, T> }
    }

    fn misses(&self, event: &Published<T>) -> bool {
        event.sequence <= self.since
    }
}

/// Brings `event` to all; returns the subscribers that have stopped.
pub(crate) fn deliver_to_all<T: Send + Sync + 'static>(
    visitor: &mut Visitor,
    subscribers: &[Subscriber<T>],
    event: &Arc<Published<T>>,
) -> Vec<u64> {
    let mut gone = Vec::new();
    let mut rest = subscribers;
    while let Some(first) = rest.first() {
        // SAFETY: the function is the first one's own.
        let seen = unsafe { (first.deliver)(visitor, rest, event, &mut gone) };
        rest = &rest[seen..];
    }
    gone
}

/// Goes from subscriber to subscriber with one body.
pub(crate) struct Visitor {
    body: Option<Body>,
    may_run: bool,
}

/// # Safety
/// As `Deliver`.
unsafe fn deliver<A: EventHandler<T>, T: Send + Sync + 'static>(
    visitor: &mut Visitor,
    subscribers: &[Subscriber<T>],
    event: &Arc<Published<T>>,
    gone: &mut Vec<u64>,
) -> usize {
    let own = subscribers[0].deliver;
    let is_own =
        |seen: usize| subscribers.get(seen).is_some_and(|next| ptr::fn_addr_eq(next.deliver, own));
    let mut seen = 0;
    while is_own(seen) {
        // SAFETY: subscribers with the first one's function have cells of type `A`, as it has.
        seen += unsafe { visitor.run_idle::<A, T>(&subscribers[seen..], event) };
        if is_own(seen) {
            let next = &subscribers[seen];
            // SAFETY: as above.
            if !next.misses(event) && !unsafe { visitor.deliver_one::<A, T>(&next.cell, event) } {
                gone.push(next.id);
            }
            seen += 1;
        }
    }
    seen
}

/// Why a loop over idle subscribers ended.
enum Ended {
    /// At its end, or before one who is not idle.
    Between,
    /// The last one's handler waits, or its actor has something to do: the claim is still held.
    AtWork,
    /// A simulation wants the last one's handler to begin later: the claim is still held.
    PutOff(Duration),
}

/// Counts what ran, also if a handler panics.
struct Count<'a> {
    ran: u32,
    shard: Option<&'a Shard>,
}

impl Drop for Count<'_> {
    fn drop(&mut self) {
        if let Some(shard) = self.shard {
            shard.handle_all(self.ran);
        }
    }
}

impl Visitor {
    /// A visitor on the calling thread; `is_in_task` tells whether handlers may run in place here.
    pub(crate) fn new(is_in_task: bool) -> Self {
        Self { body: None, may_run: is_in_task && current::depth() < DEPTH_MAX }
    }

    /// Runs subscribers in place, from the first on, as long as they have its function, are idle, and nothing else comes up; returns how
    /// many have been seen to.
    ///
    /// # Safety
    /// The first cell is of type `A`, and so are those of the same function.
    unsafe fn run_idle<A: EventHandler<T>, T: Send + Sync + 'static>(
        &mut self,
        subscribers: &[Subscriber<T>],
        event: &Arc<Published<T>>,
    ) -> usize {
        let Subscriber { cell: first, deliver: own, .. } = &subscribers[0];
        let kind = &first.header().kind;
        if !self.may_run || kind.tracing.is_on() {
            return 0;
        }
        let shard = kind.metrics.shard();
        let untimed = shard.map_or(u32::MAX, Shard::until_event_sample) as usize;
        let now_s = kind.node.coarse_s();
        let is_simulated = kind.node.env.is_simulated();
        let from = first.header().sender_if_simulated();
        let body = self.body.take().unwrap_or_else(|| Body::take(Arc::as_ptr(first)));
        let guard = current::polling(first, Frame::Alone);
        let mut count = Count { ran: 0, shard };
        let mut seen = 0;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut cx = Context::from_waker(Waker::noop());
            for subscriber in &subscribers[..untimed.min(subscribers.len())] {
                if subscriber.misses(event) {
                    seen += 1;
                    continue;
                }
                if !ptr::fn_addr_eq(subscriber.deliver, *own) {
                    return Ended::Between;
                }
                let place: *const Cell<A> = Arc::as_ptr(&subscriber.cell).cast();
                // SAFETY: the function is the first one's, so the type is; the subscriber keeps the cell alive.
                let header = unsafe { &*place }.header();
                if !Arc::ptr_eq(&header.kind, kind) || !header.mailbox.try_claim() {
                    return Ended::Between;
                }
                seen += 1;
                count.ran += 1;
                current::turn_to(&subscriber.cell);
                body.retarget(place);
                header.mailbox.add_to_tally(1);
                header.touch_at(now_s);
                if is_simulated {
                    match meet_fault::<T>(header, from.as_ref()) {
                        Ok(()) => {}
                        Err(Met::Delay(delay)) => return Ended::PutOff(delay),
                        Err(Met::Refusal) if header.mailbox.try_leave() => continue,
                        Err(Met::Refusal) => return Ended::AtWork,
                    }
                }
                // SAFETY: the pointer is valid.
                let target = Target { state: unsafe { &*place }.state(), body: &body, header };
                // SAFETY: the claim of a cell of type `A` is ours, and the body is empty.
                let poll = unsafe { run_event::<A, T>(event, target, &mut cx) };
                if is_simulated {
                    header.observe(if poll.is_pending() { Step::Waits } else { Step::Ran });
                }
                if poll.is_pending() || body.stops() || !header.mailbox.try_leave() {
                    return Ended::AtWork;
                }
                outbox::boundary(1);
            }
            Ended::Between
        }));
        drop(count);
        drop(guard);
        match outcome {
            Ok(Ended::Between) => self.body = Some(body),
            // A handler that waits is polled again at once, with a waker that works.
            Ok(Ended::AtWork) => Run::take_over(subscribers[seen - 1].cell.clone(), body).spawn(),
            Ok(Ended::PutOff(delay)) => {
                put_off::<A, T>(&subscribers[seen - 1].cell, body, event, delay);
            }
            Err(panic) => {
                Run::take_over(subscribers[seen - 1].cell.clone(), body).recover(&*panic);
            }
        }
        seen
    }

    /// Delivers to one subscriber, whatever it is at: in place if it is idle, else through its mailbox. Returns whether it still exists.
    ///
    /// # Safety
    /// `cell` is a `Cell<A>`.
    unsafe fn deliver_one<A: EventHandler<T>, T: Send + Sync + 'static>(
        &mut self,
        cell: &Arc<dyn AnyCell>,
        event: &Arc<Published<T>>,
    ) -> bool {
        let header = cell.header();
        if !self.may_run || !header.mailbox.try_claim() {
            return enqueue::<A, T>(cell, header, event);
        }
        let body = self.body.take().unwrap_or_else(|| Body::take(Arc::as_ptr(cell)));
        body.retarget(Arc::as_ptr(cell));
        let from = header.sender_if_simulated();
        let guard = current::polling(cell, Frame::Alone);
        let timed = header.kind.begin_message(type_name::<Published<T>>);
        header.mailbox.add_to_tally(1);
        let span = trace::span_in_place(header, type_name::<Published<T>>);
        let entered = span.as_ref().map(tracing::Span::enter);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            if header.kind.node.env.is_simulated() {
                match meet_fault::<T>(header, from.as_ref()) {
                    Ok(()) => {}
                    Err(Met::Delay(delay)) => return Err(delay),
                    Err(Met::Refusal) => return Ok(Poll::Ready(())),
                }
            }
            let target = Target { state: cell.state(), body: &body, header };
            let mut cx = Context::from_waker(Waker::noop());
            // SAFETY: the claim of a cell of type `A` is ours, and the body is empty.
            let poll = unsafe { run_event::<A, T>(event, target, &mut cx) };
            header.observe(if poll.is_pending() { Step::Waits } else { Step::Ran });
            Ok(poll)
        }));
        drop(entered);
        drop(guard);
        header.touch();
        let outcome = match outcome {
            Ok(Ok(poll)) => Ok(poll),
            Ok(Err(delay)) => {
                put_off::<A, T>(cell, body, event, delay);
                return true;
            }
            Err(panic) => Err(panic),
        };
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
            Ok(_) => Run::take_over(cell.clone(), body).spawn(),
            Err(panic) => Run::take_over(cell.clone(), body).recover(&*panic),
        }
        true
    }
}

/// What a simulation does to an event that is about to run.
enum Met {
    Delay(Duration),
    Refusal,
}

/// Tells a simulation that the actor takes an event in place, and lets its fault happen.
fn meet_fault<T: Send + Sync + 'static>(
    header: &Header,
    from: Option<&ActorId>,
) -> Result<(), Met> {
    header.observe_in_place_from(from, type_name::<Published<T>>);
    match header.fault(type_name::<Published<T>>) {
        Fault::None => Ok(()),
        Fault::Panic => panic!("a fault of the simulation"),
        Fault::Delay(delay) => Err(Met::Delay(delay)),
        Fault::Refuse => Err(Met::Refusal),
    }
}

/// Has an event whose subscriber was claimed run later.
#[cold]
fn put_off<A: EventHandler<T>, T: Send + Sync + 'static>(
    cell: &Arc<dyn AnyCell>,
    body: Body,
    event: &Arc<Published<T>>,
    delay: Duration,
) {
    let header = cell.header();
    let mut run = Run::take_over(cell.clone(), body);
    let envelope = Envelope::event::<A, T>(event.clone()).sent_from(header.sender());
    run.put_off(envelope, header.kind.node.env.sleep(delay));
    run.spawn();
}

/// Queues the event; returns whether the subscriber still exists. One whose mailbox is full misses it.
fn enqueue<A: EventHandler<T>, T: Send + Sync + 'static>(
    cell: &Arc<dyn AnyCell>,
    header: &Header,
    event: &Arc<Published<T>>,
) -> bool {
    let sender = header.sender();
    let event = event.clone();
    let envelope = || Envelope::event::<A, T>(event).sent_from(sender);
    match header.mailbox.push(header.kind.len_max, envelope, |what| wake(cell, what)) {
        Pushed::Queued => {}
        Pushed::Full => header.kind.metrics.count(Counter::Missed),
        Pushed::Closed => return false,
    }
    true
}
