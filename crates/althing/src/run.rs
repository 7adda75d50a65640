//! Runs one actor while it has something to do: start it, run its messages in batches, stop it.
//!
//! A `Run` holds the mailbox's claim from `schedule` (or a run in place) until it finds the queue empty under the lock. It is
//! a future of its own task; a run that suspends keeps the claim, so that nothing overlaps with the handler that waits.
//! Invariant: state and core are touched only while no body holds a future, except by that future.

use std::collections::VecDeque;
use std::future::Future;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::actor::StopReason;
use crate::batch::Batch;
use crate::body::Body;
use crate::cell::{AnyCell, Header, Hook};
use crate::current;
use crate::dispatch::Access;
use crate::env::{Fault, Simulation};
use crate::envelope::{Envelope, Started, Target};
use crate::error::AskError;
use crate::in_place;
use crate::mailbox::{Phase, System};
use crate::metrics::{Counter, Shard};
use crate::outbox;

/// Messages after which held ones are released to waiting senders: small enough to keep them going, large enough that the
/// lock costs nothing.
const RELEASE_EVERY: u32 = 64;

/// A scheduled actor.
pub(crate) struct Run {
    // Before `cell`, because the futures inside borrow from it.
    pub(crate) body: Body,
    pub(crate) reads: Vec<Body>,
    pub(crate) stage: Stage,
    batch: Batch,
    /// A write that waits for the reads before it.
    held_back: Option<Envelope>,
    /// Messages of high priority that came while a batch was at hand.
    urgent: VecDeque<Envelope>,
    /// After how many more messages to stop, and why.
    stop_after: Option<(usize, StopReason)>,
    pub(crate) cell: Arc<dyn AnyCell>,
}

pub(crate) enum Stage {
    Begin,
    Starting(Hook),
    Pausing(Pin<Box<dyn Future<Output = ()> + Send>>),
    Serving,
    Hooking(Hook),
    Stopping(Hook, StopReason),
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
    /// A child's failure counts as the actor's own.
    Failed,
    /// The stage changed.
    Changed,
}

impl Run {
    /// Starts a task for an actor whose claim was just taken.
    pub(crate) fn schedule(cell: Arc<dyn AnyCell>) {
        let run = Self::new(cell);
        run.spawn();
    }

    /// A run of an actor whose claim was just taken.
    pub(crate) fn new(cell: Arc<dyn AnyCell>) -> Self {
        let body = Body::take(Arc::as_ptr(&cell));
        Self::with_body(cell, body, Stage::Begin)
    }

    /// Takes over a claim under which `body` was used in place.
    pub(crate) fn take_over(cell: Arc<dyn AnyCell>, body: Body) -> Self {
        Self::with_body(cell, body, Stage::Serving)
    }

    fn with_body(cell: Arc<dyn AnyCell>, body: Body, stage: Stage) -> Self {
        Self {
            body,
            reads: Vec::new(),
            stage,
            batch: Batch::default(),
            held_back: None,
            urgent: VecDeque::new(),
            stop_after: None,
            cell,
        }
    }

    /// Stops an idle actor whose claim was just taken.
    pub(crate) fn stopping(cell: Arc<dyn AnyCell>, reason: StopReason) -> Self {
        Self { stop_after: Some((0, reason)), ..Self::new(cell) }
    }

    /// Runs on the calling thread as far as that goes without waiting, then in a task.
    pub(crate) fn run_now(mut self) {
        if current::depth() >= in_place::DEPTH_MAX {
            return self.spawn();
        }
        let cell = self.cell.clone();
        let entered = cell.header().kind.node.env.enter();
        let mut cx = Context::from_waker(std::task::Waker::noop());
        // Whatever waits is polled again at once in the task, with a waker that works.
        if Pin::new(&mut self).poll(&mut cx).is_pending() {
            self.spawn();
        }
        drop(entered);
    }

    /// Goes on in a task.
    pub(crate) fn spawn(self) {
        let node = self.cell.header().kind.node.clone();
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
                Served::Failed => {
                    if self.supervise().is_break() {
                        return Poll::Ready(());
                    }
                    continue;
                }
                Served::End(reason) => reason,
            };
            if self.finish(&end).is_break() {
                return Poll::Ready(());
            }
        }
    }

    /// Polls what is neither a message nor an event: start, pause, hooks, stop.
    fn advance_hook(&mut self, cx: &mut Context<'_>) -> Served {
        let outcome = match &mut self.stage {
            Stage::Begin | Stage::Serving => {
                self.begin();
                return Served::Changed;
            }
            Stage::Starting(hook) | Stage::Hooking(hook) | Stage::Stopping(hook, _) => {
                hook.as_mut().poll(cx)
            }
            Stage::Pausing(pause) => pause.as_mut().poll(cx).map(Ok),
        };
        let Poll::Ready(outcome) = outcome else { return self.suspend(cx) };
        match std::mem::replace(&mut self.stage, Stage::Begin) {
            Stage::Starting(_) => match outcome {
                Ok(()) => self.started(),
                Err(error) => return Served::End(StopReason::NotStarted(error)),
            },
            Stage::Hooking(_) => self.stage = Stage::Serving,
            Stage::Stopping(_, StopReason::Restarting) => self.rebuild(Duration::ZERO),
            Stage::Stopping(_, reason) => return Served::End(reason),
            Stage::Pausing(_) | Stage::Begin | Stage::Serving => {}
        }
        Served::Changed
    }

    fn begin(&mut self) {
        if self.cell.header().mailbox.lock().active {
            self.stage = Stage::Serving;
            return;
        }
        // SAFETY: the claim is ours; `stage` is dropped before `body` and `cell` lose what the hook borrows.
        let hook = unsafe { self.cell.clone().start(self.body.core()) };
        self.stage = Stage::Starting(hook);
    }

    fn started(&mut self) {
        self.stage = Stage::Serving;
        let header = self.cell.header();
        header.mailbox.lock().active = true;
        header.kind.metrics.count(Counter::Started);
    }

    fn serve(&mut self, header: &Header, cx: &mut Context<'_>) -> Served {
        let mut budget = header.kind.options.batch_budget;
        let state = self.cell.state();
        let simulation = header.kind.node.env.simulation();
        let shard = header.kind.metrics.shard();
        loop {
            if self.body.poll(cx).is_pending() {
                return self.suspend(cx);
            }
            if simulation.is_none()
                && self.is_plain()
                && self.run_plain(header, shard, &mut budget, cx)
            {
                return self.suspend(cx);
            }
            if !self.reads.is_empty() {
                self.reads.retain(|read| read.poll(cx).is_pending());
            }
            if header.take_attention()
                && let Some(served) = self.look(cx)
            {
                return served;
            }
            if let Some(reason) = self.stop_wanted() {
                return if self.reads.is_empty() { Served::Stop(reason) } else { self.suspend(cx) };
            }
            if budget == 0 {
                self.release();
                cx.waker().wake_by_ref();
                return Served::Yielded;
            }
            let Some(envelope) = self
                .held_back
                .take()
                .or_else(|| self.urgent.pop_front())
                .or_else(|| self.batch.next())
            else {
                if let Some(served) = self.refill(cx) {
                    return served;
                }
                continue;
            };
            if envelope.access() == Access::Exclusive && !self.reads.is_empty() {
                self.held_back = Some(envelope);
                return self.suspend(cx);
            }
            budget -= 1;
            if budget.is_multiple_of(RELEASE_EVERY) {
                self.release();
            }
            if let Some((left, _)) = &mut self.stop_after {
                *left = left.saturating_sub(1);
            }
            let envelope = match simulation {
                None => envelope,
                Some(simulation) => match self.meet_fault(simulation, envelope) {
                    Some(envelope) => envelope,
                    None => return Served::Changed,
                },
            };
            if self.run_one(state, envelope, shard, cx) {
                return self.suspend(cx);
            }
            outbox::boundary();
        }
    }

    /// Whether nothing but the batch wants to run.
    fn is_plain(&self) -> bool {
        self.reads.is_empty()
            && self.held_back.is_none()
            && self.urgent.is_empty()
            && self.stop_after.is_none()
    }

    /// The loop that nearly all messages run in: runs the batch until it ends, the budget does, or something else comes up.
    /// Returns whether a handler waits with exclusive access.
    fn run_plain(
        &mut self,
        header: &Header,
        shard: Option<&Shard>,
        budget: &mut u32,
        cx: &mut Context<'_>,
    ) -> bool {
        let state = self.cell.state();
        while *budget > 0
            && !self.body.stops()
            && !header.has_attention()
            && let Some(envelope) = self.batch.next()
        {
            *budget -= 1;
            if budget.is_multiple_of(RELEASE_EVERY) {
                self.release();
            }
            if self.run_one(state, envelope, shard, cx) {
                return true;
            }
            outbox::boundary();
            if !self.reads.is_empty() {
                break;
            }
        }
        false
    }

    /// Lets a simulation's fault happen: panics, or puts the message off and returns `None`.
    fn meet_fault(&mut self, simulation: &dyn Simulation, envelope: Envelope) -> Option<Envelope> {
        let header = self.cell.header();
        match simulation.fault(header.kind.name, envelope.name()()) {
            Fault::None => Some(envelope),
            Fault::Panic => {
                envelope.reject(AskError::HandlerPanicked(header.id()));
                panic!("a fault of the simulation");
            }
            Fault::Delay(delay) => {
                self.held_back = Some(envelope);
                self.stage = Stage::Pausing(simulation.sleep(delay));
                None
            }
        }
    }

    /// Runs one message; returns whether its handler waits with exclusive access.
    #[inline]
    fn run_one(
        &mut self,
        state: *mut (),
        envelope: Envelope,
        shard: Option<&Shard>,
        cx: &mut Context<'_>,
    ) -> bool {
        let timed = shard
            .is_some_and(Shard::handle)
            .then(|| self.cell.header().kind.begin_timing(envelope.name()));
        let access = envelope.access();
        // SAFETY: the claim is ours, the body is empty, exclusive messages run only without reads, and the cell's type
        // is the one that the envelope was packed for.
        match unsafe { envelope.start(Target { state, body: &self.body }, cx) } {
            Started::Done => {
                if let Some(timed) = timed {
                    self.cell.header().kind.end_timing(timed);
                }
                false
            }
            Started::Suspended if access == Access::Shared => {
                self.body.time(timed);
                let fresh = Body::take(Arc::as_ptr(&self.cell));
                self.reads.push(std::mem::replace(&mut self.body, fresh));
                false
            }
            Started::Suspended => {
                self.body.time(timed);
                true
            }
            Started::Stashed(envelope) => {
                shard.inspect(|shard| shard.unhandle());
                self.stash(envelope);
                false
            }
        }
    }

    /// Keeps a message that a guard put aside in place, and goes on in a task.
    pub(crate) fn stash_and_spawn(self, envelope: Envelope) {
        self.stash(envelope);
        self.spawn();
    }

    /// Keeps a message that a guard put aside.
    fn stash(&self, envelope: Envelope) {
        let header = self.cell.header();
        let mut inner = header.mailbox.lock();
        let extras = inner.extras();
        if extras.stash.len() < header.kind.len_max as usize {
            extras.stash.push(envelope);
            return;
        }
        // Released before rejecting: the asker wakes and may send to us.
        drop(inner);
        header.kind.metrics.count(Counter::Overloaded);
        envelope.reject(AskError::Overloaded(header.id()));
    }

    /// Why the actor stops now, if it does.
    fn stop_wanted(&mut self) -> Option<StopReason> {
        if self.body.stops() {
            // SAFETY: the body is empty.
            return unsafe { &*self.body.core() }.take_stop();
        }
        match &self.stop_after {
            Some((0, reason)) => Some(reason.clone()),
            _ => None,
        }
    }

    /// Gets more messages, or leaves: `None` means there are some.
    fn refill(&mut self, cx: &Context<'_>) -> Option<Served> {
        let header = self.cell.header();
        let mut inner = header.mailbox.lock();
        let wakers = inner.release(0, header.kind.len_max);
        if !wakers.is_empty() {
            drop(inner);
            wakers.into_iter().for_each(std::task::Waker::wake);
            inner = header.mailbox.lock();
        }
        if inner.has_system() {
            drop(inner);
            return self.look(cx);
        }
        if !inner.is_empty() {
            self.batch.fill(&mut inner);
            drop(inner);
            header.touch();
            header.mailbox.add_to_tally(u32::try_from(self.batch.left()).unwrap_or(u32::MAX));
            return None;
        }
        if self.reads.is_empty() {
            inner.phase = Phase::Idle;
            drop(inner);
            self.batch.recycle();
            header.touch();
            return Some(Served::Idle);
        }
        inner.phase = Phase::Parked(cx.waker().clone());
        Some(Served::Suspended)
    }

    /// Tells waiting senders how much room there is by now.
    fn release(&self) {
        let header = self.cell.header();
        let wakers = header.mailbox.lock().release(self.held(), header.kind.len_max);
        wakers.into_iter().for_each(std::task::Waker::wake);
    }

    /// Messages taken out of the mailbox and not begun.
    fn held(&self) -> usize {
        self.batch.left() + self.urgent.len() + usize::from(self.held_back.is_some())
    }

    /// Waits for a handler; a system message that is there already is looked at first.
    fn suspend(&mut self, cx: &Context<'_>) -> Served {
        loop {
            let header = self.cell.header();
            let mut inner = header.mailbox.lock();
            if !inner.has_new_system() {
                inner.extras().suspended = Some(cx.waker().clone());
                let wakers = inner.release(self.held(), header.kind.len_max);
                drop(inner);
                wakers.into_iter().for_each(std::task::Waker::wake);
                return Served::Suspended;
            }
            drop(inner);
            if let Some(served) = self.system_while_suspended() {
                return served;
            }
        }
    }

    /// Only a kill interrupts a handler; the rest waits for it, at the front.
    fn system_while_suspended(&mut self) -> Option<Served> {
        let header = self.cell.header();
        let mut inner = header.mailbox.lock();
        let system = &mut inner.extras().system;
        if system.iter().any(|message| matches!(message, System::Kill)) {
            system.clear();
            return Some(Served::End(StopReason::Killed));
        }
        let extras = inner.extras();
        extras.deferred.append(&mut extras.system);
        // Looked at again as soon as the handler has ended.
        header.call_attention();
        None
    }

    /// Looks for system and urgent messages. Reads that wait are waited for first, because hooks need the state.
    fn look(&mut self, cx: &Context<'_>) -> Option<Served> {
        if self.reads.is_empty() {
            return self.system();
        }
        let killed = self.system_while_suspended();
        Some(killed.unwrap_or_else(|| self.suspend(cx)))
    }

    /// Handles system messages, first in first out.
    fn system(&mut self) -> Option<Served> {
        loop {
            let header = self.cell.header();
            let mut inner = header.mailbox.lock();
            let extras = inner.extras();
            let Some(message) = extras.deferred.pop_front().or_else(|| extras.system.pop_front())
            else {
                self.urgent.extend(std::iter::from_fn(|| inner.take_high()));
                return None;
            };
            if !extras.deferred.is_empty() || !extras.system.is_empty() {
                header.call_attention();
            }
            let waiting = inner.queued();
            drop(inner);
            match message {
                System::Start => {}
                System::Kill => return Some(Served::End(StopReason::Killed)),
                System::Stop(reason) => {
                    let before = self.held() + waiting;
                    self.stop_after.get_or_insert((before, reason));
                }
                System::Fail(reason) => return Some(Served::Stop(reason)),
                System::ChildFailed => return Some(Served::Failed),
                System::Restart if self.cell.is_rebuildable() => {
                    return Some(Served::Stop(StopReason::Restarting));
                }
                System::Restart => {}
                System::Terminated(other) => {
                    // SAFETY: the claim is ours; the body is empty.
                    let hook = unsafe { self.cell.terminated(self.body.core(), other) };
                    self.stage = Stage::Hooking(hook);
                    return Some(Served::Changed);
                }
            }
        }
    }

    fn stop(&mut self, reason: StopReason) {
        // SAFETY: the claim is ours; no handler is left (reads have ended, the body is empty).
        let hook = unsafe { self.cell.stopping(self.body.core(), reason.clone()) };
        self.stage = Stage::Stopping(hook, reason);
    }

    /// Ends a life. `Break`: the run is over; `Continue`: messages wait for the next life.
    pub(crate) fn finish(&mut self, reason: &StopReason) -> ControlFlow<()> {
        self.stage = Stage::Begin;
        self.body.clear();
        self.reads.clear();
        // SAFETY: no future is left that could use the state.
        unsafe { self.cell.clear() };
        let mut waiting: Vec<Envelope> =
            self.held_back.take().into_iter().chain(self.urgent.drain(..)).collect();
        waiting.append(&mut self.batch.rest());
        self.batch.recycle();
        self.stop_after = None;
        crate::ending::end_life(&self.cell, waiting, reason)
    }
}

impl Future for Run {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let cell = this.cell.clone();
        let _current = current::polling(&cell);
        loop {
            match catch_unwind(AssertUnwindSafe(|| this.advance(cell.header(), cx))) {
                Ok(poll) => return poll,
                Err(panic) => {
                    if this.panicked(&*panic).is_break() {
                        return Poll::Ready(());
                    }
                }
            }
        }
    }
}
