//! Serving: runs a batch message by message, and fetches the next, until there is nothing to do or
//! something else wants the actor.
//!
//! Nearly all messages run in `run_batch`, in stretches of one type. Reads that overlap, urgent
//! messages and simulations take the longer way through `serve`, one at a time.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::{Run, Served, Stage};
use crate::activation::body::Body;
use crate::activation::fault::refused_by_fault;
use crate::activation::target::Target;
use crate::activation::tick::skip_tick;
use crate::address::place::Header;
use crate::error::AskError;
use crate::mail::access::Access;
use crate::mail::envelope::{Envelope, Started};
use crate::mail::outbox;
use crate::metrics::step::Step;
use crate::metrics::{Counter, MessageName, Shard, Timed};
use crate::node::env::{Fault, Task};
use crate::shield::shielded;
use crate::stop_reason::StopReason;

/// Messages after which their room is free for senders.
const TALLY_EVERY: u32 = 64;
/// Messages after which waiting senders are called up; less often, because it needs the lock.
const CALL_EVERY: u32 = 512;

/// Messages run before the runner looks up: few enough that a bundle of tells is not held back by
/// slow handlers.
const STRETCH_LEN_MAX: u32 = 16;

/// A message whose handler has begun.
#[derive(Clone, Copy)]
struct Begun {
    message: MessageName,
    access: Access,
    timed: Option<Timed>,
}

impl Run {
    pub(super) fn serve(&mut self, header: &Header, cx: &mut Context<'_>) -> Served {
        let mut budget = header.kind.options.batch_budget.max(1);
        let is_simulated = header.kind.node.env.is_simulated();
        let shard = header.kind.metrics.shard();
        loop {
            if let Some(served) = self.settle_turns(cx) {
                return served;
            }
            if !self.body.is_empty() {
                if self.poll_handler(cx).is_pending() {
                    return self.suspend(cx);
                }
                header.observe(Step::Ended);
                // Its turn may be durable by now.
                continue;
            }
            if !is_simulated && self.is_plain() && self.run_batch(header, shard, &mut budget, cx) {
                return self.suspend(cx);
            }
            self.poll_reads(header, cx);
            if header.take_attention()
                && let Some(served) = self.look(cx)
            {
                return served;
            }
            if let Some(served) = self.stop_if_wanted(cx) {
                return served;
            }
            if budget == 0 {
                self.call_up();
                cx.waker().wake_by_ref();
                return Served::Yielded;
            }
            if self.reads.len() >= header.kind.len_max as usize {
                // Reads under way take room like messages that wait.
                return self.suspend(cx);
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
            if let Some((left, _)) = &mut self.stop_after {
                *left = left.saturating_sub(1);
            }
            budget -= 1;
            let envelope = match self.meet_fault(header, envelope) {
                Ok(Some(envelope)) => envelope,
                Ok(None) => continue,
                Err(changed) => return changed,
            };
            let waits = self.run_one(header, envelope, shard, cx);
            self.have_run(1);
            if waits {
                return self.suspend(cx);
            }
        }
    }

    /// Goes on with the handler that waits.
    fn poll_handler(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let holding = self.hold_turn();
        let poll = self.body.poll(cx);
        self.pause_turn(holding, poll.is_ready());
        poll
    }

    /// Goes on with the reads that wait, each in `body`, where one that panics is looked for.
    fn poll_reads(&mut self, header: &Header, cx: &mut Context<'_>) {
        self.reads.retain_mut(|read| {
            std::mem::swap(read, &mut self.body);
            let is_pending = self.body.poll(cx).is_pending();
            std::mem::swap(read, &mut self.body);
            if !is_pending {
                header.observe(Step::Ended);
            }
            is_pending
        });
    }

    /// Stops if somebody wants that, once the reads under way have ended.
    fn stop_if_wanted(&mut self, cx: &Context<'_>) -> Option<Served> {
        if !self.body.stops() && !matches!(self.stop_after, Some((0, _))) {
            return None;
        }
        if !self.reads.is_empty() || self.has_turns() {
            // The wish stays where it is until then.
            return Some(self.suspend(cx));
        }
        Some(match self.stop_wanted()? {
            StopReason::Failed(error) => Served::Failed(error),
            reason => Served::Stop(reason),
        })
    }

    /// Whether nothing but the batch wants to run.
    fn is_plain(&self) -> bool {
        !self.place.header().kind.holds_turns()
            && self.reads.is_empty()
            && self.held_back.is_none()
            && self.urgent.is_empty()
            && self.stop_after.is_none()
    }

    /// The loop that nearly all messages run in: runs the batch until it ends, the budget does, or
    /// something else comes up. Returns whether a handler waits with exclusive access.
    fn run_batch(
        &mut self,
        header: &Header,
        shard: Option<&Shard>,
        budget: &mut u32,
        cx: &mut Context<'_>,
    ) -> bool {
        while *budget > 0 && !self.body.stops() && !header.has_attention() {
            let Some(first) = self.batch.stretch().peek() else { return false };
            let access = first.access();
            let mut limit = STRETCH_LEN_MAX.min(*budget);
            let message = first.name();
            let mut timed = None;
            if let Some(shard) = shard {
                if let Some(running) = shard.running() {
                    running.take(message);
                }
                let untimed = shard.until_sample();
                if untimed == 0 {
                    timed = Some(header.kind.begin_timing(message));
                }
                limit = limit.min(untimed.max(1));
            }
            let allowed = self.batch.stretch().allow(limit);
            if let Some(shard) = shard {
                shard.handle_all(allowed);
            }
            let target = Target { state: self.place.state(), body: &self.body, header };
            // SAFETY: the claim is ours, the body is empty, no reads are left, and the messages
            // were packed for this place's type.
            let started = unsafe { Envelope::run(self.batch.stretch(), target, cx) };
            let ran = allowed - self.take_back(shard);
            *budget -= ran;
            let begun = Begun { message, access, timed };
            let waits = self.has_begun(started, begun, shard);
            self.have_run(ran);
            if waits {
                return true;
            }
            if !self.reads.is_empty() {
                return false;
            }
        }
        false
    }

    /// Ends a stretch: takes back what was counted and has not been run, and returns how much that
    /// was.
    pub(super) fn take_back(&mut self, shard: Option<&Shard>) -> u32 {
        let unused = self.batch.stretch().forbid();
        if let Some(shard) = shard {
            shard.unhandle(unused);
        }
        unused
    }

    /// Lets others get on after some messages.
    fn have_run(&mut self, messages: u32) {
        outbox::boundary(messages);
        self.untallied += messages;
        self.ran_in_batch += messages;
        if self.untallied >= TALLY_EVERY {
            self.flush_tally();
            self.uncalled += TALLY_EVERY;
            if self.uncalled >= CALL_EVERY && self.place.header().mailbox.is_awaited() {
                self.call_up();
            }
        }
    }

    /// Lets a simulation's fault happen to a message, once. `Ok` is the message if it is to run,
    /// `Err` what has changed.
    fn meet_fault(
        &mut self,
        header: &Header,
        envelope: Envelope,
    ) -> Result<Option<Envelope>, Served> {
        if std::mem::take(&mut self.has_met_fault) {
            return Ok(Some(envelope));
        }
        let fault = header.fault(envelope.name());
        if let (Fault::Panic | Fault::Refuse, Some(timer)) = (fault, envelope.timer()) {
            skip_tick(header, timer);
        }
        match fault {
            Fault::None => Ok(Some(envelope)),
            Fault::Panic => {
                envelope.reject(AskError::HandlerPanicked(header.id()));
                panic!("a fault of the simulation");
            }
            Fault::Delay(delay) => {
                if let Some((left, _)) = &mut self.stop_after {
                    // It is taken once more.
                    *left += 1;
                }
                self.put_off(envelope, header.kind.node.env.sleep(delay));
                Err(Served::Changed)
            }
            Fault::Refuse => {
                envelope.reject(refused_by_fault(header));
                self.have_run(1);
                Ok(None)
            }
        }
    }

    /// Has a message that has met its fault run after a pause, before all others.
    pub(crate) fn put_off(&mut self, envelope: Envelope, pause: Task) {
        self.held_back = Some(envelope);
        self.has_met_fault = true;
        self.stage = Stage::Pausing(pause);
    }

    /// Runs one message; returns whether its handler waits with exclusive access.
    fn run_one(
        &mut self,
        header: &Header,
        envelope: Envelope,
        shard: Option<&Shard>,
        cx: &mut Context<'_>,
    ) -> bool {
        let message = envelope.name();
        if let Some(running) = shard.and_then(Shard::running) {
            running.take(message);
        }
        let timed = shard.is_some_and(Shard::handle).then(|| header.kind.begin_timing(message));
        let access = envelope.access();
        let holding = self.hold_turn();
        let target = Target { state: self.place.state(), body: &self.body, header };
        // SAFETY: the claim is ours, the body is empty, exclusive messages run only without reads,
        // and the place's type is the one that the envelope was packed for.
        let started = unsafe { envelope.start(target, cx) };
        self.pause_turn(holding, matches!(started, Started::Done));
        header.observe(match &started {
            Started::Done => Step::Ran,
            Started::Suspended => Step::Waits,
            Started::Stashed(_) => Step::Stashed,
        });
        self.has_begun(started, Begun { message, access, timed }, shard)
    }

    /// Sees to what became of the last handler; returns whether it waits with exclusive access.
    #[inline]
    fn has_begun(&mut self, started: Started, begun: Begun, shard: Option<&Shard>) -> bool {
        let Begun { message, access, timed } = begun;
        match started {
            Started::Done => {
                if let Some(timed) = timed {
                    self.place.header().kind.end_timing(timed);
                }
                false
            }
            // Turns that are held follow each other: what a read sees is committed with it.
            Started::Suspended
                if access == Access::Shared && !self.place.header().kind.holds_turns() =>
            {
                self.waited_with = Some(message);
                self.body.time(timed);
                let fresh = Body::take(Arc::as_ptr(&self.place));
                self.reads.push(std::mem::replace(&mut self.body, fresh));
                false
            }
            Started::Suspended => {
                self.waited_with = Some(message);
                self.body.time(timed);
                true
            }
            Started::Stashed(envelope) => {
                if let Some(shard) = shard {
                    shard.unhandle(1);
                }
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
        let header = self.place.header();
        let mut inner = header.mailbox.lock();
        let extras = inner.extras();
        if extras.stash.len() < header.kind.len_max as usize {
            extras.stash.push(envelope);
            return;
        }
        // Released before rejecting: the asker wakes and may send to us.
        drop(inner);
        header.kind.metrics.count(Counter::Overloaded);
        let why = AskError::Overloaded(header.id());
        // Nobody's handler runs: a drop that panics is not the actor's failure.
        shielded("dropping a refused message", || envelope.reject(why));
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

    /// Messages taken out of the mailbox and not begun.
    pub(super) fn held(&self) -> usize {
        self.batch.left() + self.urgent.len() + usize::from(self.held_back.is_some())
    }
}

#[cfg(test)]
mod tests {
    use crate::activation::context::Context;
    use crate::actor::{Actor, Handler};
    use crate::address::place::AnyPlace;
    use crate::node::shared::Node;

    struct Sleeper;
    struct Nap;

    impl Actor for Sleeper {
        const NAME: &'static str = "test.sleeper";
    }

    impl Handler<Nap> for Sleeper {
        type Reply = ();

        async fn handle(&mut self, _: Nap, _: &mut Context<Self>) {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn an_idle_actor_keeps_nothing_of_a_handler_that_waited() {
        let sleeper = Node::builder("shed").build().spawn(Sleeper);
        sleeper.send(Nap).await.unwrap();
        assert!(sleeper.place().header().mailbox.lock().extras.is_none());
        sleeper.send(Nap).await.unwrap();
    }
}
