//! Carries out supervision: after a panic, after a child's escalation, and for siblings that
//! restart together.

use std::any::Any;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use super::{Run, Stage};
use crate::activation::current::Frame;
use crate::activation::ending::end_timers;
use crate::activation::polling::polling;
use crate::activation::supervision::{ChildStrategy, Failure, Supervision, Verdict};
use crate::address::place::AnyPlace;
use crate::address::signal::{send_system, send_system_if};
use crate::error::{ActorError, AskError, ChildFailed};
use crate::mail::extras::System;
use crate::metrics::Counter;
use crate::metrics::step::Step;
use crate::shield::{discard, discard_all, discard_some, panic_text, shielded, text_of, wake_all};
use crate::stop_reason::StopReason;

impl Run {
    /// Has supervision decide after a handler panicked in place.
    pub(crate) fn recover(mut self, panic: &(dyn Any + Send)) {
        let place = self.place.clone();
        // What is dropped now is this actor's own, and lets out what it does for it alone: a turn
        // of who has asked it may be held.
        let next = {
            let _current = polling(&place, Frame::Alone);
            self.panicked(panic)
        };
        if next.is_continue() {
            self.spawn();
        }
    }

    /// A handler or hook panicked: its asker hears of it, supervision decides.
    pub(super) fn panicked(&mut self, panic: &(dyn Any + Send)) -> ControlFlow<()> {
        let place = self.place.clone();
        let header = place.header();
        let id = header.id();
        let error = ActorError::new(panic_text(panic));
        tracing::error!(actor = %id, panic = %error, "handler panicked");
        header.kind.metrics.count(Counter::Panicked);
        header.observe(Step::Panicked(panic_text(panic)));
        let shard = header.kind.metrics.shard();
        // The panic is the failure; what the handler had failed with before is not a second one.
        let earlier = header.mailbox.lock().extras.as_mut().and_then(|it| it.failure.take());
        discard_some("dropping what a handler had failed with", earlier);
        self.take_back(shard);
        if self.policy() == Supervision::Resume && header.mailbox.lock().is_active() {
            // The others' handlers go on: they have the state that the actor keeps.
            self.fail_handler();
        } else {
            self.fail_handlers();
        }
        match &self.stage {
            Stage::Starting(_) | Stage::Begin if !self.place.is_rebuildable() => {
                self.finish(StopReason::NotStarted(error))
            }
            // The life that restarts with a sibling has ended, however that went.
            Stage::Stopping(_, StopReason::Restarting) => {
                self.rebuild(Duration::ZERO);
                ControlFlow::Continue(())
            }
            Stage::Stopping(_, reason) => {
                let reason = reason.clone();
                self.finish(reason)
            }
            _ => self.supervise(error),
        }
    }

    /// What follows a failure.
    fn policy(&self) -> Supervision {
        match self.place.header().kind.options.supervision {
            // A state that is ahead of what is durable must not be built on.
            Supervision::Resume if self.place.header().kind.holds_turns() => Supervision::default(),
            policy => policy,
        }
    }

    /// Fails the ask whose handler has panicked.
    fn fail_handler(&self) {
        let why = AskError::HandlerPanicked(self.place.header().id());
        self.drop_body(|body| body.fail(why));
    }

    fn fail_handlers(&mut self) {
        self.fail_handler();
        let id = self.place.header().id();
        while let Some(read) = self.reads.pop() {
            shielded("dropping a handler", || read.fail(AskError::HandlerPanicked(id.clone())));
        }
    }

    /// Applies the type's policy to a failure. `Break`: the run is over.
    pub(super) fn supervise(&mut self, error: ActorError) -> ControlFlow<()> {
        let place = self.place.clone();
        let header = place.header();
        let policy = self.policy();
        let now = header.kind.node.env.elapsed();
        // Before the lock: the error may be foreign, and its text may panic.
        let failure = Failure::new(&text_of(&error), now);
        let mut inner = header.mailbox.lock();
        let restarts = &mut inner.extras().restarts;
        restarts.fail(failure);
        let verdict = restarts.decide(policy, now);
        drop(inner);
        match verdict {
            Verdict::Resume if header.mailbox.lock().is_active() => {
                self.drop_handler();
                // It may have failed as it started: now it serves.
                self.refuses_waiting = false;
                self.stage = Stage::Serving;
                discard("dropping the cause of a failure", error);
                ControlFlow::Continue(())
            }
            Verdict::RestartAfter(pause) if place.is_rebuildable() => {
                restart_siblings(&place);
                self.fail_handlers();
                self.rebuild(pause);
                discard("dropping the cause of a failure", error);
                ControlFlow::Continue(())
            }
            Verdict::Escalate => {
                escalate(&place, &error);
                self.finish(StopReason::Failed(error))
            }
            Verdict::Resume | Verdict::RestartAfter(_) | Verdict::Stop => {
                self.finish(StopReason::Failed(error))
            }
        }
    }

    /// Drops the state and has the next life begin after `pause`; children end with the old one.
    /// Waiting messages stay.
    pub(super) fn rebuild(&mut self, pause: Duration) {
        let place = self.place.clone();
        let header = place.header();
        header.kind.metrics.count(Counter::Restarted);
        header.observe(Step::Restarts);
        let mut inner = header.mailbox.lock();
        let extras = inner.extras();
        extras.restarts.count();
        let outlived = extras.take_news_of_children();
        if inner.end_presence() {
            header.kind.metrics.count(Counter::Stopped);
        }
        inner.begin_life();
        let left = inner.extras.as_mut().map(|extras| {
            // Some wait for the end of this life only, and the others look again.
            let waiters = std::mem::take(&mut extras.stop_waiters);
            (std::mem::take(&mut extras.children), std::mem::take(&mut extras.timers), waiters)
        });
        drop(inner);
        self.drop_futures();
        self.refuses_waiting = false;
        self.stage = Stage::Pausing(header.kind.node.env.sleep(pause));
        self.backs_off = !pause.is_zero();
        // SAFETY: the claim is ours and no future is left that could use the state.
        shielded("dropping a state", || unsafe { place.clear() });
        let Some((children, timers, waiters)) = left else { return };
        wake_all(waiters.into_values());
        end_timers(&place, timers);
        for child in children.into_values() {
            send_system(&child, System::Fail(StopReason::Linked(place.header().id())));
        }
        discard_all("dropping what an earlier life did not hear of", outlived);
    }
}

/// Fails the parent as if it had panicked itself.
fn escalate(place: &Arc<dyn AnyPlace>, error: &ActorError) {
    let header = place.header();
    // It stays the parent's child until its end.
    let parent = header.mailbox.lock().extras().parent.clone();
    if let Some(parent) = parent {
        let failed = ChildFailed { child: header.id(), error: error.clone() };
        // The parent may have begun another life since, which has other children.
        send_system_if(&parent, System::ChildFailed(failed), |extras| {
            extras.children.contains_key(&header.serial())
        });
    }
}

/// Restarts those siblings that the parent's strategy ties to `place`.
fn restart_siblings(place: &Arc<dyn AnyPlace>) {
    let parent = place.header().mailbox.lock().extras().parent.clone();
    let Some(parent) = parent else { return };
    let strategy = parent.header().kind.options.children;
    if strategy == ChildStrategy::OneForOne {
        return;
    }
    let siblings = parent.header().mailbox.lock().extras().children.clone();
    let own = place.header().serial();
    if !siblings.contains_key(&own) {
        // The parent has begun another life since: those are that one's.
        return;
    }
    for (serial, sibling) in &siblings {
        let is_tied = strategy == ChildStrategy::AllForOne || *serial > own;
        if *serial != own && is_tied {
            send_system(sibling, System::Restart);
        }
    }
}
