//! The lives of an actor as its mailbox counts them, and what is taken out of it when one ends.
//!
//! Nothing is dropped here: messages and wakers are foreign, so they are handed out, to be dropped
//! without the lock.

use std::task::Waker;

use super::gate::Gate;
use super::{Inner, Phase};
use crate::mail::envelope::Envelope;
use crate::mail::extras::{Extras, System};
use crate::stop_reason::StopReason;
use crate::timer::pending::PendingTimer;

/// One life of an actor, from a start to the end or restart after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Life(u32);

/// Whether the actor's state is there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// It has not been there, or its last life ended otherwise than by passivation.
    Absent,
    /// The actor was passivated.
    Unloaded,
    /// It is there and started.
    Active,
}

impl Inner {
    /// Whether the actor's state is there and started.
    pub(crate) fn is_active(&self) -> bool {
        self.presence == Presence::Active
    }

    /// Says that the actor has started.
    pub(crate) fn begin_presence(&mut self) {
        self.presence = Presence::Active;
    }

    /// Says that the state goes; returns whether it was there.
    pub(crate) fn end_presence(&mut self) -> bool {
        std::mem::replace(&mut self.presence, Presence::Absent) == Presence::Active
    }

    /// Says that the state went by passivation.
    pub(crate) fn unload(&mut self) {
        self.presence = Presence::Unloaded;
    }

    /// Why the last life ended.
    pub(crate) fn last_end(&self) -> StopReason {
        let remembered = self.extras.as_ref().and_then(|extras| extras.stopped.clone());
        remembered.unwrap_or(match self.presence {
            Presence::Unloaded => StopReason::Passivated,
            Presence::Absent | Presence::Active => StopReason::Requested,
        })
    }

    /// Takes extras that hold nothing any more: they weigh more than an idle actor.
    pub(crate) fn take_blank_extras(&mut self) -> Option<Box<Extras>> {
        self.extras.take_if(|extras| extras.is_blank())
    }

    /// The life the actor is in.
    pub(crate) fn life(&self) -> Life {
        self.life
    }

    /// Counts a restart.
    pub(crate) fn begin_life(&mut self) {
        self.life = Life(self.life.0.wrapping_add(1));
        if let Some(extras) = &mut self.extras {
            extras.pledges = 0;
        }
    }

    /// Counts a pledge no more, unless the life that gave it is over. Returns extras that hold nothing
    /// any more, of an actor that nobody runs.
    pub(crate) fn settle_pledge(&mut self, life: Life) -> Option<Box<Extras>> {
        if self.life != life {
            return None;
        }
        self.extras.as_mut()?.pledges -= 1;
        if self.phase == Phase::Idle { self.take_blank_extras() } else { None }
    }

    /// Lives of the actor that have ended.
    pub(crate) fn lives(&self) -> u32 {
        self.lives
    }

    /// The number of the life that is there, for who waits for its end. Of an actor that sleeps it
    /// is the last one that ended: somebody may wake it before the waiter looks, and nobody has
    /// asked that life to end.
    pub(crate) fn life_to_await(&mut self) -> u32 {
        let sleeps_here = self.sleeps_now() && !self.is_elsewhere();
        self.lives.wrapping_sub(u32::from(sleeps_here))
    }

    /// Counts the end of a life.
    pub(crate) fn count_end(&mut self) {
        self.lives = self.lives.wrapping_add(1);
        self.begin_life();
        if self.is_closed() {
            self.gate = Gate::Ended;
        }
    }

    /// Whether the actor has stopped for good.
    pub(crate) fn has_ended(&self) -> bool {
        self.gate == Gate::Ended
    }

    /// Whether a kill waits to be looked at.
    pub(crate) fn is_killed(&self) -> bool {
        self.extras.as_ref().is_some_and(|extras| {
            extras.system.iter().any(|message| matches!(message, System::Kill))
        })
    }

    /// Whether the actor has no state and nothing to start for.
    pub(crate) fn is_asleep(&self) -> bool {
        !self.is_active()
            && self.phase == Phase::Idle
            && self.is_empty()
            && self.lanes.is_empty()
            && !self.has_system()
    }

    /// As `is_asleep`, whoever has a lane open: what has not been written yet is for another life.
    pub(crate) fn sleeps_now(&mut self) -> bool {
        self.absorb();
        !self.is_active() && self.phase == Phase::Idle && self.is_empty() && !self.has_system()
    }

    /// Whether nobody lives here, and nobody who was unloaded is to come back.
    pub(crate) fn is_vacant(&mut self) -> bool {
        self.sleeps_now() && self.refusal().is_none() && self.presence != Presence::Unloaded
    }

    /// Whether the directory has forgotten the place, so that its name leads to another one.
    pub(crate) fn is_forgotten(&self) -> bool {
        self.gate == Gate::Forgotten
    }

    /// Has the directory forget an actor that sleeps and has nothing to remember, and that nobody
    /// else knows; returns whether it may.
    pub(crate) fn try_forget(&mut self) -> bool {
        let is_blank = self.extras.as_ref().is_none_or(|extras| extras.is_forgettable());
        let may_forget = self.is_asleep() && is_blank;
        if may_forget {
            self.gate = Gate::Forgotten;
        }
        may_forget
    }

    /// Puts messages that were held back in front of the queue.
    pub(crate) fn put_back(&mut self, mut first: Vec<Envelope>) {
        first.append(&mut self.queue.as_vec());
        *self.queue.as_vec() = first;
        self.held = 0;
    }

    /// Takes the system messages that follow an actor to where it lives.
    pub(crate) fn take_travelling(&mut self) -> Vec<System> {
        let Some(extras) = &mut self.extras else { return Vec::new() };
        let came = extras.deferred.drain(..).chain(extras.system.drain(..));
        let (follow, stay): (Vec<_>, Vec<_>) = came.partition(System::travels);
        extras.system.extend(stay);
        follow
    }

    /// Takes what guards have put aside.
    pub(crate) fn take_put_aside(&mut self) -> Vec<Envelope> {
        let Some(extras) = &mut self.extras else { return Vec::new() };
        let mut first = std::mem::take(&mut extras.unstashed);
        first.append(&mut extras.stash);
        first
    }

    /// Takes the events of topics out of the queue.
    pub(crate) fn take_events(&mut self) -> Vec<Envelope> {
        self.queue.as_vec().extract_if(.., |envelope| envelope.is_event()).collect()
    }

    /// Takes the ticks of timers that the actor no longer has.
    pub(crate) fn take_stale_ticks(&mut self) -> Vec<Envelope> {
        if self.queue.is_empty() {
            return Vec::new();
        }
        let timers = self.extras.as_ref().map(|extras| &extras.timers);
        let is_stale = |envelope: &Envelope| {
            envelope
                .timer()
                .is_some_and(|timer| timers.is_none_or(|timers| !timers.contains_key(&timer)))
        };
        self.queue.as_vec().extract_if(.., |envelope| is_stale(envelope)).collect()
    }

    /// Queues those of the messages again that are ticks of timers which outlive passivation: the
    /// wheel has them no longer.
    pub(crate) fn keep_waking(&mut self, taken: &mut Vec<Envelope>) {
        let Some(extras) = &self.extras else { return };
        let wakes = |envelope: &mut Envelope| {
            let timer = envelope.timer().and_then(|timer| extras.timers.get(&timer));
            timer.is_some_and(PendingTimer::survives_passivation)
        };
        let kept: Vec<_> = taken.extract_if(.., wakes).collect();
        self.queue.as_vec().extend(kept);
    }

    /// Takes everything that waits, in whatever lane.
    pub(crate) fn take_queue(&mut self) -> Vec<Envelope> {
        self.absorb();
        self.held = 0;
        let mut all = self.queue.take();
        if self.has_aside() {
            all.append(&mut self.take_aside());
        }
        all
    }

    /// Empties the queue, also of those who wait for room.
    pub(crate) fn close(&mut self) -> (Vec<Envelope>, Vec<Waker>) {
        self.shut();
        let wakers = self.call_all();
        (self.take_queue(), wakers)
    }

    /// Takes the wakers of all who await the end of a life: they look again.
    pub(crate) fn take_stop_waiters(&mut self) -> Vec<Waker> {
        let waiters = self.extras.as_mut().map(|extras| std::mem::take(&mut extras.stop_waiters));
        waiters.unwrap_or_default().into_values().collect()
    }

    /// Takes the wakers of all who wait for room.
    pub(crate) fn call_all(&mut self) -> Vec<Waker> {
        self.awaited = false;
        self.extras.as_mut().map(|extras| extras.room.call_all()).unwrap_or_default()
    }
}
