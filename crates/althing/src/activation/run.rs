//! Runs one actor while it has something to do: start it, run its messages in batches, stop it.
//!
//! A `Run` holds the mailbox's claim from `schedule` (or a run in place) until it finds the queue
//! empty under the lock. It is a future of its own task; a run that suspends keeps the claim, so
//! that nothing overlaps with the handler that waits. Invariant: state and core are touched only
//! while no body holds a future, except by that future.

mod commits;
mod failure;
mod refill;
mod scheduled;
mod serve;
mod system;

use std::collections::VecDeque;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::activation::body::Body;
use crate::activation::current::{self, DEPTH_MAX, Frame};
use crate::activation::ending::{Keeps, abandon, end_life};
use crate::activation::polling::polling;
use crate::activation::turn::Commits;
use crate::activation::waits;
use crate::address::place::{AnyPlace, Header, Hook};
use crate::error::ActorError;
use crate::mail::batch::Batch;
use crate::mail::envelope::Envelope;
use crate::metrics::step::Step;
use crate::metrics::{Counter, MessageName};
use crate::node::env::{Env, Task};
use crate::remote::cluster::Location;
use crate::remote::following::{self, Followed};
use crate::shield::{discard, discard_some, drop_payload, shielded, text_of};
use crate::stop_reason::StopReason;

/// Between two looks whether a handler still has a lane to an actor that leaves: longer than most
/// handlers take.
const LANES_PAUSE: Duration = Duration::from_millis(1);

/// A scheduled actor.
pub(crate) struct Run {
    // In this order: a hook in `stage` borrows from `body`, and all of them borrow from `place`.
    stage: Stage,
    body: Body,
    reads: Vec<Body>,
    batch: Batch,
    /// Messages run that the mailbox has not been told of.
    untallied: u32,
    /// Messages run since waiting senders were last called up.
    uncalled: u32,
    /// Messages run since the mailbox was last looked into.
    ran_in_batch: u32,
    /// A write that waits for the reads before it.
    held_back: Option<Envelope>,
    /// Messages of high priority that came while a batch was at hand.
    urgent: VecDeque<Envelope>,
    /// Whether the message that is held back has met its fault, if there is one in store for it.
    has_met_fault: bool,
    /// The message of the last handler that waited.
    waited_with: Option<MessageName>,
    /// Whether the life stopped itself before it served.
    refuses_waiting: bool,
    /// Turns that are not durable yet, where they are held.
    commits: Option<Box<Commits>>,
    /// How many hold the actor.
    holds: u32,
    /// Whether the present pause is one between a failure and the restart after it.
    backs_off: bool,
    /// After how many more messages to stop, and why.
    stop_after: Option<(usize, StopReason)>,
    /// Whether somebody asked for a stop once more, after messages that this life does not run.
    stops_again: bool,
    /// Whether the claim is still ours; if it is when the run is dropped, its runtime has dropped
    /// it unfinished.
    has_claim: bool,
    place: Arc<dyn AnyPlace>,
}

enum Stage {
    Begin,
    Starting(Hook),
    Pausing(Task),
    Serving,
    /// Nothing runs until everybody who held the actor lets it go on.
    Held,
    Hooking(Hook),
    Stopping(Hook, StopReason),
    /// The state and what waited are gone to where the actor lives now; the end comes when no
    /// handler has a lane to here any more.
    Leaving(Task, StopReason),
}

/// How serving ended.
enum Served {
    Suspended,
    Yielded,
    Idle,
    /// Run the hook, then end.
    Stop(StopReason),
    /// End without a hook.
    End(StopReason),
    /// A handler failed the actor, or a child did, whose failure counts as the actor's own.
    Failed(ActorError),
    /// The stage changed.
    Changed,
}

impl Run {
    /// Starts a task for an actor whose claim was just taken.
    pub(crate) fn schedule(place: Arc<dyn AnyPlace>) {
        let node = place.header().kind.node.clone();
        node.env.spawn(scheduled::Scheduled::new(place));
    }

    /// A run of an actor whose claim was just taken.
    pub(crate) fn new(place: Arc<dyn AnyPlace>) -> Self {
        let body = Body::take(Arc::as_ptr(&place));
        Self::with_body(place, body, Stage::Begin)
    }

    /// Takes over a claim under which `body` was used in place.
    pub(crate) fn take_over(place: Arc<dyn AnyPlace>, body: Body) -> Self {
        if body.is_empty() {
            // Before anybody else runs: what a handler that has ended left to a task is no wait of
            // the actor any more.
            waits::forget(&place);
        }
        Self::with_body(place, body, Stage::Serving)
    }

    /// As `take_over`, with a handler of that message in the body, which waits.
    pub(crate) fn take_over_waiting(
        place: Arc<dyn AnyPlace>,
        body: Body,
        message: MessageName,
    ) -> Self {
        let mut run = Self::take_over(place, body);
        run.waited_with = Some(message);
        run
    }

    /// As `take_over_waiting`, with a read, beside which others may run.
    pub(crate) fn take_over_reading(
        place: Arc<dyn AnyPlace>,
        body: Body,
        message: MessageName,
    ) -> Self {
        let fresh = Body::take(Arc::as_ptr(&place));
        let mut run = Self::with_body(place, fresh, Stage::Serving);
        run.reads.push(body);
        run.waited_with = Some(message);
        run
    }

    #[inline]
    fn with_body(place: Arc<dyn AnyPlace>, body: Body, stage: Stage) -> Self {
        Self {
            stage,
            body,
            reads: Vec::new(),
            batch: Batch::default(),
            untallied: 0,
            uncalled: 0,
            ran_in_batch: 0,
            held_back: None,
            has_met_fault: false,
            waited_with: None,
            refuses_waiting: false,
            backs_off: false,
            urgent: VecDeque::new(),
            commits: None,
            holds: 0,
            stop_after: None,
            stops_again: false,
            has_claim: true,
            place,
        }
    }

    /// Stops an idle actor whose claim was just taken.
    pub(crate) fn stopping(place: Arc<dyn AnyPlace>, reason: StopReason) -> Self {
        let mut run = Self::new(place);
        run.stop_after = Some((0, reason));
        run
    }

    /// Ends the actor's life without hooks.
    pub(crate) fn end(mut self, reason: StopReason) {
        // Messages keep nobody alive who is not merely asked to stop.
        let _ = self.finish(reason);
    }

    /// Starts an actor whose claim was just taken, as `run_now` does.
    pub(crate) fn start_now(place: Arc<dyn AnyPlace>) {
        Self::new(place).run_now();
    }

    /// Stops an idle actor whose claim was just taken, as `run_now` does.
    pub(crate) fn stop_now(place: Arc<dyn AnyPlace>, reason: StopReason) {
        Self::stopping(place, reason).run_now();
    }

    /// Runs on the calling thread as far as that goes without waiting, then in a task.
    #[inline]
    pub(crate) fn run_now(mut self) {
        if current::depth() >= DEPTH_MAX {
            return self.spawn();
        }
        let is_away = !self.place.header().kind.node.env.is_entered();
        if is_away && !Env::may_enter() {
            return self.spawn();
        }
        let place = is_away.then(|| self.place.clone());
        let entered = place.as_ref().and_then(|place| place.header().kind.node.env.enter());
        let mut cx = Context::from_waker(std::task::Waker::noop());
        // Whatever waits is polled again at once in the task, with a waker that works.
        if Pin::new(&mut self).poll(&mut cx).is_pending() {
            self.spawn();
        }
        drop(entered);
    }

    /// Goes on in a task.
    pub(crate) fn spawn(self) {
        let node = self.place.header().kind.node.clone();
        node.env.spawn(self);
    }

    fn advance(&mut self, header: &Header, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let served = match &mut self.stage {
                Stage::Serving => self.serve(header, cx),
                _ => self.advance_hook(cx),
            };
            let end = match served {
                Served::Suspended | Served::Yielded => return Poll::Pending,
                Served::Idle => return Poll::Ready(()),
                Served::Changed => continue,
                Served::Stop(reason) => {
                    self.stop(reason);
                    continue;
                }
                Served::Failed(error) => {
                    tracing::error!(actor = %header.id(), error = text_of(&error), "actor failed");
                    if self.supervise(error).is_break() {
                        return Poll::Ready(());
                    }
                    continue;
                }
                Served::End(reason) => reason,
            };
            if self.finish(end).is_break() {
                return Poll::Ready(());
            }
        }
    }

    /// Polls what is neither a message nor an event: start, pause, hooks, stop.
    fn advance_hook(&mut self, cx: &mut Context<'_>) -> Served {
        let is_turn = matches!(self.stage, Stage::Hooking(_));
        if is_turn && let Some(served) = self.settle_turns(cx) {
            return served;
        }
        let holding = if is_turn { self.hold_turn() } else { None };
        let outcome = match &mut self.stage {
            Stage::Begin | Stage::Serving => return self.begin(),
            Stage::Held => {
                self.look_again();
                return self.suspend(cx);
            }
            Stage::Starting(hook) | Stage::Hooking(hook) | Stage::Stopping(hook, _) => {
                hook.as_mut().poll(cx)
            }
            Stage::Pausing(pause) => pause.as_mut().poll(cx).map(Ok),
            Stage::Leaving(pause, reason) => {
                if pause.as_mut().poll(cx).is_pending() {
                    // Nothing is looked at: whatever comes is for who lives elsewhere.
                    return Served::Suspended;
                }
                return Served::End(reason.clone());
            }
        };
        let Poll::Ready(outcome) = outcome else {
            self.pause_turn(holding, false);
            if self.backs_off {
                self.look_again();
            }
            return self.suspend(cx);
        };
        let stage = std::mem::replace(&mut self.stage, Stage::Begin);
        if is_turn {
            // The hook borrows the state, of which `commit` takes a copy.
            drop(stage);
            self.stage = Stage::Serving;
            self.pause_turn(holding, true);
            return Served::Changed;
        }
        match stage {
            Stage::Starting(_) => match outcome {
                // It has never served: what waits is not its to keep, or it would start again for
                // it.
                Ok(()) if self.body.stops() => return self.stopped_in_start(),
                Ok(()) => self.started(),
                Err(error) => return Served::End(StopReason::NotStarted(error)),
            },
            Stage::Stopping(_, StopReason::Restarting) => self.rebuild(Duration::ZERO),
            Stage::Stopping(_, reason) => return Served::End(reason),
            Stage::Hooking(_)
            | Stage::Pausing(_)
            | Stage::Begin
            | Stage::Serving
            | Stage::Held
            | Stage::Leaving(..) => {}
        }
        Served::Changed
    }

    /// Begins to serve, or to start first; a kill that came before is an end without a life.
    fn begin(&mut self) -> Served {
        self.backs_off = false;
        let inner = self.place.header().mailbox.lock();
        let is_killed = inner.is_killed();
        let is_active = inner.is_active();
        drop(inner);
        let header = self.place.header();
        if !self.may_go_on() && !is_killed {
            self.stage = Stage::Held;
            return Served::Changed;
        }
        if is_active {
            self.stage = Stage::Serving;
            return Served::Changed;
        }
        if is_killed {
            return Served::End(StopReason::Killed);
        }
        match header.location() {
            None => {}
            Some(Location::Here(epoch) | Location::Arriving(epoch)) => header.set_epoch(epoch),
            Some(Location::Elsewhere) => return Served::End(StopReason::Moved),
        }
        // SAFETY: the claim is ours; `stage` is dropped before `body` and `place` lose what the
        // hook borrows.
        let hook = unsafe { self.place.clone().start(self.body.core()) };
        self.stage = Stage::Starting(hook);
        Served::Changed
    }

    fn started(&mut self) {
        self.stage = Stage::Serving;
        let header = self.place.header();
        header.mailbox.lock().begin_presence();
        header.kind.metrics.count(Counter::Started);
        header.observe(Step::Started);
    }

    fn stopped_in_start(&mut self) -> Served {
        self.started();
        self.refuses_waiting = true;
        Served::Changed
    }

    fn stop(&mut self, reason: StopReason) {
        if reason != StopReason::Restarting && self.has_turns() {
            // What they let out must not be lost with the state: nothing more runs until they are
            // durable.
            self.stop_after = Some((0, reason));
            self.stage = Stage::Serving;
            return;
        }
        // SAFETY: the claim is ours; no handler is left (reads have ended, the body is empty).
        let hook = unsafe { self.place.stopping(self.body.core(), reason.clone()) };
        self.stage = Stage::Stopping(hook, reason);
    }

    /// Ends a life. `Break`: the run is over; `Continue`: the next life has something to do.
    fn finish(&mut self, reason: StopReason) -> ControlFlow<()> {
        self.put_stop_back(&reason);
        let mut waiting = self.clear_out();
        self.holds = 0;
        let leaves = match reason {
            StopReason::Moved | StopReason::Fenced => following::follow(&self.place, &mut waiting),
            _ => Followed::Stays,
        };
        if leaves == Followed::NotYet {
            let pause = self.place.header().kind.node.env.sleep(LANES_PAUSE);
            self.stage = Stage::Leaving(pause, reason);
            return ControlFlow::Continue(());
        }
        let keeps =
            if std::mem::take(&mut self.refuses_waiting) { Keeps::Nothing } else { Keeps::Waiting };
        let next = end_life(&self.place, waiting, &reason, keeps);
        if leaves == Followed::Gone {
            following::watch_on(&self.place);
        }
        self.has_claim = next.is_continue();
        discard("dropping the cause of an end", reason);
        next
    }

    /// Drops what is left of a life, whatever panics on the way; returns the messages that had been
    /// taken out of the mailbox.
    fn clear_out(&mut self) -> Vec<Envelope> {
        self.drop_futures();
        // SAFETY: no future is left that could use the state.
        shielded("dropping a state", || unsafe { self.place.clear() });
        self.stop_after = None;
        self.backs_off = false;
        let mut waiting = Vec::new();
        if self.held() > 0 {
            waiting.extend(self.held_back.take());
            waiting.extend(self.urgent.drain(..));
            waiting.append(&mut self.batch.rest());
        }
        self.batch.recycle();
        waiting
    }

    /// Drops hooks and handlers, which borrow the state.
    fn drop_futures(&mut self) {
        while let Some(read) = self.reads.pop() {
            shielded("dropping a handler", || read.clear());
        }
        self.drop_handler();
    }

    /// Drops the hook, or the handler that is not among the reads under way.
    fn drop_handler(&mut self) {
        self.abort_turns();
        let stage = std::mem::replace(&mut self.stage, Stage::Begin);
        if !matches!(stage, Stage::Begin | Stage::Serving) {
            shielded("dropping a hook", || drop(stage));
        }
        if !self.body.is_empty() {
            self.drop_body(Body::clear);
        }
        if self.reads.is_empty() && self.place.header().has_attention() {
            // No handler is left that could wait, whoever has the ask that it began.
            waits::forget(&self.place);
        }
        // SAFETY: the body is empty.
        let unheard = unsafe { &*self.body.core() }.take_stop();
        discard_some("dropping what a handler had failed with", unheard);
        self.has_met_fault = false;
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.has_claim {
            return;
        }
        // Its task was dropped, with its runtime or in a crash: nobody else will ever run this.
        self.has_claim = false;
        let mut left = Self::new(self.place.clone());
        std::mem::swap(&mut left, self);
        abandon(Box::new(move || {
            let waiting = left.clear_out();
            let _ = end_life(&left.place, waiting, &StopReason::Killed, Keeps::Nothing);
        }));
    }
}

impl Future for Run {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        // SAFETY: an `Arc` that is read and never dropped: it counts nothing, and `this` keeps its
        // own, which nobody replaces.
        let place = ManuallyDrop::new(unsafe { ptr::read(&raw const this.place) });
        let _current = polling(&place, Frame::Alone);
        let _polled = place.header().kind.metrics.polling(place.header().place());
        loop {
            match catch_unwind(AssertUnwindSafe(|| this.advance(place.header(), cx))) {
                Ok(poll) => {
                    if poll.is_ready() {
                        this.has_claim = false;
                    }
                    return poll;
                }
                Err(panic) => {
                    let next = this.panicked(&*panic);
                    drop_payload(panic);
                    if next.is_break() {
                        return Poll::Ready(());
                    }
                }
            }
        }
    }
}
