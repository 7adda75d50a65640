//! What reaches an actor besides its messages: system messages, urgent ones, and what may interrupt
//! a handler that waits.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Context;

use super::{Run, Served, Stage};
use crate::activation::ending::ends_in_peace;
use crate::activation::waits;
use crate::address::place::AnyPlace;
use crate::address::watching::end_watch;
use crate::mail::envelope::Envelope;
use crate::mail::extras::System;
use crate::mail::mailbox::Inner;
use crate::metrics::doing::{Activity, Doing};
use crate::shield::{discard_all, wake_all};
use crate::stop_reason::StopReason;

/// What is dropped when a life ends with system messages unread.
const UNREAD: &str = "dropping what an actor did not hear of";

impl Run {
    /// What the run is at while it is suspended.
    fn doing(&self) -> Option<Doing> {
        Some(Doing::Other(match &self.stage {
            Stage::Serving => return self.waited_with.map(Doing::Message),
            Stage::Begin | Stage::Starting(_) => Activity::Starting,
            Stage::Pausing(_) => Activity::Pausing,
            Stage::Held => Activity::Held,
            Stage::Hooking(_) => Activity::Hearing,
            Stage::Stopping(..) | Stage::Leaving(..) => Activity::Stopping,
        }))
    }

    /// Waits for a handler; a system message that is there already is looked at first.
    pub(super) fn suspend(&mut self, cx: &Context<'_>) -> Served {
        self.flush_tally();
        loop {
            let header = self.place.header();
            let mut inner = header.mailbox.lock();
            let ends_now = self.backs_off && (self.stop_after.is_some() || inner.is_told_to_end());
            if !inner.has_new_system() && !ends_now {
                let extras = inner.extras();
                extras.suspended = Some(cx.waker().clone());
                extras.doing = self.doing();
                let has_new_wait = extras.has_new_wait();
                inner.hold(self.held(), header.mailbox.tally());
                let wakers = inner.call_up(header.kind.len_max);
                drop(inner);
                wake_all(wakers);
                if has_new_wait {
                    waits::suspended(&self.place);
                }
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
        let header = self.place.header();
        let mut inner = header.mailbox.lock();
        let extras = inner.extras();
        let system = &mut extras.system;
        if system.iter().any(|message| matches!(message, System::Kill)) {
            let unread = std::mem::take(system);
            // Released before dropping: the cause of an end may be foreign.
            drop(inner);
            discard_all(UNREAD, unread);
            return Some(Served::End(StopReason::Killed));
        }
        let fences = system.iter().any(|message| match message {
            System::Fence(epoch) => header.epoch() < *epoch,
            _ => false,
        });
        if fences {
            let unread = std::mem::take(system);
            drop(inner);
            discard_all(UNREAD, unread);
            return Some(Served::End(StopReason::Fenced));
        }
        if matches!(self.stage, Stage::Held) {
            drop(inner);
            return self.system_while_held();
        }
        if matches!(self.stage, Stage::Pausing(_)) && !inner.is_active() {
            // Between two lives: there is no handler to wait for, and no state to stop.
            let extras = inner.extras();
            let mut ends = extras.system.iter().find_map(System::end);
            if self.backs_off {
                // Who asked before the failure waits as those do who ask now.
                let earlier = self.stop_after.take().map(|(_, reason)| reason);
                ends = earlier.or_else(|| extras.deferred.iter().find_map(System::end)).or(ends);
            }
            if let Some(reason) = ends {
                let unread =
                    (std::mem::take(&mut extras.deferred), std::mem::take(&mut extras.system));
                drop(inner);
                discard_all(UNREAD, unread.0.into_iter().chain(unread.1));
                return Some(Served::End(reason));
            }
            if self.backs_off {
                drop(inner);
                return self.system_while_held();
            }
        }
        let extras = inner.extras();
        extras.deferred.append(&mut extras.system);
        // Looked at again as soon as the handler has ended.
        header.call_attention();
        None
    }

    pub(super) fn may_go_on(&self) -> bool {
        self.holds == 0 && !self.place.header().kind.node.is_frozen()
    }

    /// Gives a seal to who wants it. If they have gone, the seal is dropped, which takes it back.
    fn seal(&mut self, hand_over: impl FnOnce(Arc<dyn AnyPlace>)) {
        self.holds += 1;
        hand_over(self.place.clone());
    }

    /// Has what waits for the end of a handler looked at now, because none runs.
    pub(super) fn look_again(&self) {
        let mut inner = self.place.header().mailbox.lock();
        if let Some(extras) = &mut inner.extras
            && !extras.deferred.is_empty()
        {
            extras.deferred.append(&mut extras.system);
            std::mem::swap(&mut extras.deferred, &mut extras.system);
        }
    }

    /// Lets go on, or away, whoever is held, or pauses before a restart; the rest waits.
    fn system_while_held(&mut self) -> Option<Served> {
        let is_held = matches!(self.stage, Stage::Held);
        let mut inner = self.place.header().mailbox.lock();
        let is_active = inner.is_active();
        let mut pending = std::mem::take(&mut inner.extras().system).into_iter();
        drop(inner);
        let mut deferred = Vec::new();
        let served = pending.by_ref().find_map(|message| match message {
            System::Seal(sealed) => {
                self.seal(sealed);
                None
            }
            System::Freeze(frozen) => {
                // Whoever wanted to know may have gone.
                _ = frozen.send(());
                None
            }
            System::Resume(life) => {
                if life == self.place.header().mailbox.lock().lives() {
                    self.holds = self.holds.saturating_sub(1);
                }
                (is_held && self.may_go_on()).then_some(Served::Changed)
            }
            System::Thaw => (is_held && self.may_go_on()).then_some(Served::Changed),
            System::Depart if is_active => Some(Served::Stop(StopReason::Moved)),
            System::Depart => Some(Served::End(StopReason::Moved)),
            other => {
                deferred.push(other);
                None
            }
        });
        deferred.extend(pending);
        if served.is_some() {
            self.stage = Stage::Begin;
        }
        let header = self.place.header();
        header.mailbox.lock().extras().deferred.extend(deferred);
        // Looked at before the next message.
        header.call_attention();
        served
    }

    /// Looks for system and urgent messages. Reads that wait are waited for first, because hooks
    /// need the state.
    pub(super) fn look(&mut self, cx: &Context<'_>) -> Option<Served> {
        if self.reads.is_empty() {
            return self.system();
        }
        let killed = self.system_while_suspended();
        Some(killed.unwrap_or_else(|| self.suspend(cx)))
    }

    /// Whether somebody has asked for a stop. To be unloaded is none.
    fn is_to_stop(&self) -> bool {
        self.stop_after.as_ref().is_some_and(|(_, reason)| *reason != StopReason::Passivated)
    }

    /// Has a stop wait on that this life ends without having come to it, because its actor unloads
    /// or stops itself first.
    pub(super) fn put_stop_back(&mut self, reason: &StopReason) {
        let is_again = std::mem::take(&mut self.stops_again);
        if !self.is_to_stop() || !ends_in_peace(reason) {
            return;
        }
        if let Some((left, asked)) = self.stop_after.take()
            && (left > 0 || is_again || *reason == StopReason::Passivated)
        {
            let mut inner = self.place.header().mailbox.lock();
            inner.extras().deferred.push_front(System::Stop(asked));
        }
    }

    /// Handles system messages, first in first out.
    fn system(&mut self) -> Option<Served> {
        loop {
            self.flush_tally();
            let header = self.place.header();
            let mut inner = header.mailbox.lock();
            inner.absorb();
            let extras = inner.extras();
            if !extras.waits.is_empty() {
                // No handler is left that could wait.
                drop(inner);
                waits::forget(&self.place);
                continue;
            }
            let Some(message) = extras.deferred.pop_front().or_else(|| extras.system.pop_front())
            else {
                take_urgent(&mut self.urgent, &mut self.stop_after, &mut inner);
                inner.hold(self.held(), header.mailbox.tally());
                return None;
            };
            if !extras.deferred.is_empty() || !extras.system.is_empty() {
                header.call_attention();
            }
            if matches!(message, System::Stop(_)) && !self.is_to_stop() {
                // All that waits, in the order in which it runs: what comes from now on, of
                // whatever priority, must not run in its place before the stop.
                take_urgent(&mut self.urgent, &mut self.stop_after, &mut inner);
                self.urgent.extend(self.batch.rest());
                self.urgent.extend(inner.take_queue());
                inner.hold(self.held(), header.mailbox.tally());
            }
            drop(inner);
            match message {
                System::Start => {}
                System::Kill => return Some(Served::End(StopReason::Killed)),
                System::Stop(_) if self.is_to_stop() => self.stops_again = true,
                System::Stop(reason) => self.stop_after = Some((self.held(), reason)),
                System::Fail(reason) => return Some(Served::Stop(reason)),
                System::ChildFailed(child) => return Some(Served::Failed(child.into())),
                System::Restart if self.place.is_rebuildable() => {
                    return Some(Served::Stop(StopReason::Restarting));
                }
                System::Restart | System::Resume(_) | System::Thaw => {}
                System::Depart => return Some(Served::Stop(StopReason::Moved)),
                System::Seal(sealed) => {
                    self.stage = Stage::Held;
                    self.seal(sealed);
                    return Some(Served::Changed);
                }
                System::Freeze(frozen) => {
                    _ = frozen.send(());
                    // It may have thawed since.
                    if header.kind.node.is_frozen() {
                        self.stage = Stage::Held;
                        return Some(Served::Changed);
                    }
                }
                System::Fence(epoch) => {
                    if header.epoch() < epoch {
                        return Some(Served::End(StopReason::Fenced));
                    }
                }
                System::Terminated(other, serial, number) => {
                    end_watch(&self.place, serial, number);
                    // SAFETY: the claim is ours; the body is empty.
                    let hook = unsafe { self.place.terminated(self.body.core(), other) };
                    self.stage = Stage::Hooking(hook);
                    return Some(Served::Changed);
                }
            }
        }
    }
}

/// Takes what runs before all that waits: what leaves the stash, and what is of high priority.
fn take_urgent(
    urgent: &mut VecDeque<Envelope>,
    stop_after: &mut Option<(usize, StopReason)>,
    inner: &mut Inner,
) {
    let unstashed = std::mem::take(&mut inner.extras().unstashed);
    match stop_after {
        // They came before what is still to run, and so run before the stop, too.
        Some((left, _)) if *left > 0 => {
            *left += unstashed.len();
            unstashed.into_iter().rev().for_each(|message| urgent.push_front(message));
        }
        _ => urgent.extend(unstashed),
    }
    urgent.extend(std::iter::from_fn(|| inner.take_high()));
}
