//! The queue of an actor, and who runs it, under one lock.
//!
//! Push: lock, push, and schedule only if nobody runs the actor. Drain: swap the whole queue out.
//! There is no lost wake-up, because the phase changes under the same lock as the queue. Idle
//! mailboxes hold no buffer. System messages travel in a list of their own and are exempt from the
//! bound.

mod aside;
mod ending;
mod gate;
mod lanes;
mod system;

use std::task::Waker;

use crate::mail::buffers::{give_buffer, take_buffer};
use crate::mail::claim::{ClaimLock, Guard, Value};
use crate::mail::envelope::Envelope;
use crate::mail::extras::Extras;
use crate::mail::lane::Lanes;
use crate::mail::priority::Priority;
use crate::mail::queue::Queue;

pub(crate) use ending::Life;
use ending::Presence;
use gate::Gate;
pub(crate) use gate::Sent;
pub(crate) use system::SystemPush;

/// The queue and the claim.
pub(crate) struct Mailbox {
    inner: ClaimLock<Inner>,
}

/// What the lock protects.
pub(crate) struct Inner {
    queue: Queue,
    /// Lanes by which running handlers tell this actor; what they hold comes before whatever is
    /// queued next.
    lanes: Lanes<Envelope>,
    pub(crate) extras: Option<Box<Extras>>,
    /// Messages taken out by the runner and not yet run; they still count against the bound.
    held: u32,
    /// The tally when `held` was set.
    held_at: u32,
    /// Room that is taken beside the queue: promised to lanes and not yet used, or by messages of
    /// other than normal priority.
    beside: u32,
    /// Lives that have ended.
    lives: u32,
    /// Which life this is: counts ends and restarts.
    life: Life,
    /// Whether senders wait for room.
    pub(crate) awaited: bool,
    gate: Gate,
    presence: Presence,
    pub(crate) phase: Phase,
}

/// Who runs the actor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nobody: the next message schedules it.
    Idle,
    /// A task that waits for messages: the next one wakes it, by the waker in `Extras::parked`.
    Parked,
    /// Someone; they look into the queue before they leave.
    Running,
}

/// What the pusher must do after releasing the lock.
#[must_use]
pub(crate) enum Wake {
    Nothing,
    Schedule,
    Waker(Waker),
}

impl Value for Inner {
    fn claimed(&mut self) {
        self.phase = Phase::Running;
    }

    #[inline]
    fn is_quiet(&self) -> bool {
        self.phase == Phase::Idle
            && self.presence == Presence::Active
            && self.gate == Gate::Open
            && self.queue.is_empty()
            && self.lanes.is_empty()
            && self.beside == 0
            && !self.has_system()
    }

    #[inline]
    fn is_filled(&self) -> bool {
        !self.queue.is_empty()
    }

    #[inline]
    fn is_awaited(&self) -> bool {
        self.awaited
    }
}

/// What became of a push.
#[must_use]
#[derive(Clone, Copy)]
pub(crate) enum Pushed {
    Queued,
    Full,
    Closed,
    /// The actor lives on another node.
    Elsewhere,
}

impl Mailbox {
    pub(crate) fn new() -> Self {
        Self {
            inner: ClaimLock::new(Inner {
                queue: Queue::default(),
                lanes: Lanes::default(),
                extras: None,
                held: 0,
                held_at: 0,
                beside: 0,
                lives: 0,
                life: Life::default(),
                awaited: false,
                gate: Gate::Open,
                presence: Presence::Absent,
                phase: Phase::Idle,
            }),
        }
    }

    /// Takes what a mailbox holds beside its queue that nobody else knows any more.
    pub(crate) fn take_extras(&mut self) -> Option<Box<Extras>> {
        self.inner.get_mut().extras.take()
    }

    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, Inner> {
        self.inner.lock()
    }

    /// As `lock`, for the runner.
    #[inline]
    pub(crate) fn lock_soon(&self) -> Guard<'_, Inner> {
        self.inner.lock_soon()
    }

    /// Whether the bound is reached, with regard to what the runner has run meanwhile.
    #[inline]
    pub(crate) fn is_full(&self, inner: &mut Inner, len_max: u32) -> bool {
        if inner.len() < len_max as usize {
            return false;
        }
        inner.catch_up(self.tally());
        inner.len() >= len_max as usize
    }

    /// Messages that may still be queued, as `is_full` counts.
    pub(crate) fn room(&self, inner: &mut Inner, len_max: u32) -> usize {
        inner.catch_up(self.tally());
        (len_max as usize).saturating_sub(inner.len())
    }

    /// Claims an idle, started actor with nothing to do.
    #[inline]
    pub(crate) fn try_claim(&self) -> bool {
        self.inner.try_claim()
    }

    /// As `try_claim`, and waits a little for somebody who runs the actor in place.
    #[inline]
    pub(crate) fn claim_soon(&self) -> bool {
        self.inner.claim_soon()
    }

    /// Gives the claim back if nothing has come meanwhile.
    #[inline]
    pub(crate) fn try_leave(&self) -> bool {
        self.inner.try_leave()
    }

    /// Counts messages that the holder of the claim runs.
    #[inline]
    pub(crate) fn add_to_tally(&self, messages: u32) {
        self.inner.add_to_tally(messages);
    }

    /// Messages run so far, wrapping.
    pub(crate) fn tally(&self) -> u32 {
        self.inner.tally()
    }

    /// Whether senders wait for room, at this moment; looked at without the lock.
    #[inline]
    pub(crate) fn is_awaited(&self) -> bool {
        self.inner.is_awaited()
    }

    /// Whether messages wait in the queue, at this moment; looked at without the lock.
    #[inline]
    pub(crate) fn is_filled(&self) -> bool {
        self.inner.is_filled()
    }

    /// Whether the actor is started and has nothing to do; looked at without the lock.
    pub(crate) fn is_quiet(&self) -> bool {
        self.inner.is_quiet()
    }

    /// Queues the envelope that `make` makes if there is room below `len_max`, then has `wake` wake
    /// the actor if nobody runs it. `make` runs under the lock: it moves and nothing else. `wake`
    /// runs after.
    #[inline]
    pub(crate) fn push(
        &self,
        len_max: u32,
        make: impl FnOnce() -> Envelope,
        wake: impl FnOnce(Wake),
    ) -> Pushed {
        self.push_if(|| true, len_max, make, wake)
    }

    /// As `push`, closed to messages that `may_come`, asked under the lock, refuses.
    #[inline]
    pub(crate) fn push_if(
        &self,
        may_come: impl FnOnce() -> bool,
        len_max: u32,
        make: impl FnOnce() -> Envelope,
        wake: impl FnOnce(Wake),
    ) -> Pushed {
        let inner = self.lock();
        if !may_come() {
            return Pushed::Closed;
        }
        self.push_locked(inner, len_max, make, wake)
    }

    /// As `push`, with the lock at hand; it is released before `wake` runs.
    #[inline]
    pub(crate) fn push_locked(
        &self,
        inner: Guard<'_, Inner>,
        len_max: u32,
        make: impl FnOnce() -> Envelope,
        wake: impl FnOnce(Wake),
    ) -> Pushed {
        let mut inner = match self.admit(inner, len_max) {
            Ok(inner) => inner,
            Err(refused) => return refused,
        };
        inner.queue_push(make());
        if inner.phase != Phase::Running {
            let what = inner.claim_resting();
            drop(inner);
            wake(what);
        }
        Pushed::Queued
    }

    /// Queues a message that another node has sent, without regard to the bound: if the actor
    /// `arrives`, also while this node's own senders still send elsewhere.
    pub(crate) fn push_arrival(
        &self,
        arrives: bool,
        priority: Priority,
        make: impl FnOnce() -> Envelope,
        wake: impl FnOnce(Wake),
    ) -> Pushed {
        let mut inner = self.lock();
        if inner.is_closed() {
            return Pushed::Closed;
        }
        if inner.is_elsewhere() && !arrives {
            // What it left behind has been sent after it already.
            return Pushed::Elsewhere;
        }
        inner.queue_by(priority, make());
        let what = inner.claim();
        drop(inner);
        wake(what);
        Pushed::Queued
    }

    /// As `push_arrival`, of many messages of normal priority; they stay in `envelopes` unless they
    /// are queued.
    pub(crate) fn push_arrivals(
        &self,
        arrives: bool,
        envelopes: &mut Vec<Envelope>,
        wake: impl FnOnce(Wake),
    ) -> Pushed {
        let mut inner = self.lock();
        if inner.is_closed() {
            return Pushed::Closed;
        }
        if inner.is_elsewhere() && !arrives {
            return Pushed::Elsewhere;
        }
        if envelopes.is_empty() {
            return Pushed::Queued;
        }
        inner.absorb();
        if inner.queue.is_empty() {
            std::mem::swap(&mut *inner.queue.as_vec(), envelopes);
        } else {
            inner.queue.as_vec().append(envelopes);
        }
        let what = inner.claim();
        drop(inner);
        wake(what);
        Pushed::Queued
    }

    /// Keeps the lock for one more message, unless the mailbox takes none.
    #[inline]
    fn admit<'a>(
        &self,
        mut inner: Guard<'a, Inner>,
        len_max: u32,
    ) -> Result<Guard<'a, Inner>, Pushed> {
        if inner.gate != Gate::Open {
            return Err(inner.gate.refusal());
        }
        if self.is_full(&mut inner, len_max) {
            return Err(Pushed::Full);
        }
        Ok(inner)
    }

    /// Messages waiting.
    pub(crate) fn depth(&self) -> usize {
        self.lock().len()
    }
}

impl Inner {
    pub(crate) fn extras(&mut self) -> &mut Extras {
        self.extras.get_or_insert_default()
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.queue.len() + (self.held + self.beside) as usize
    }

    /// Whether nothing waits. What is in lanes counts once it has been absorbed.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.held == 0 && !self.has_aside()
    }

    /// Moves what handlers have written into lanes to the end of the queue.
    #[inline]
    pub(crate) fn absorb(&mut self) {
        if !self.lanes.is_empty() {
            self.absorb_lanes();
        }
    }

    /// Gives up what only a busy actor needs: a stale waker keeps the memory of a finished task,
    /// and the extras themselves weigh more than an idle actor. Returns the queue's buffer, which
    /// is empty.
    pub(crate) fn shed(&mut self) -> Vec<Envelope> {
        if let Some(extras) = &mut self.extras {
            extras.parked = None;
            extras.suspended = None;
            extras.doing = None;
            if extras.is_blank() {
                self.extras = None;
            }
        }
        self.queue.take()
    }

    #[inline]
    fn queue_push(&mut self, envelope: Envelope) {
        self.absorb();
        self.queue.push(envelope);
    }

    /// Queues without regard to the bound or to closing: timers, stash, the actor's own results.
    pub(crate) fn push_exempt(&mut self, envelope: Envelope) -> Wake {
        self.queue_push(envelope);
        self.claim()
    }

    /// Takes the claim if nobody has it.
    #[inline]
    pub(crate) fn claim(&mut self) -> Wake {
        if self.phase == Phase::Running {
            return Wake::Nothing;
        }
        self.claim_resting()
    }

    #[cold]
    fn claim_resting(&mut self) -> Wake {
        let parked = self.extras.as_mut().and_then(|extras| extras.parked.take());
        match (std::mem::replace(&mut self.phase, Phase::Running), parked) {
            (Phase::Idle, _) => Wake::Schedule,
            (Phase::Parked, Some(waker)) => Wake::Waker(waker),
            (Phase::Parked, None) | (Phase::Running, _) => Wake::Nothing,
        }
    }

    /// Has the next message wake the runner.
    pub(crate) fn park(&mut self, waker: &Waker) {
        self.phase = Phase::Parked;
        self.extras().parked = Some(waker.clone());
    }

    /// Swaps the queue into `batch`, which must be empty; the messages count as held until
    /// released.
    pub(crate) fn drain(&mut self, batch: &mut Vec<Envelope>, tally: u32) {
        debug_assert!(batch.is_empty(), "a batch is run whole before the next");
        self.absorb();
        if batch.capacity() == 0 && !self.queue.is_empty() {
            *batch = take_buffer();
        }
        std::mem::swap(&mut *self.queue.as_vec(), batch);
        if batch.is_empty() {
            batch.extend(self.take_high().or_else(|| self.take_low()));
        }
        self.hold(batch.len(), tally);
        if batch.is_empty() {
            give_buffer(std::mem::take(batch));
        }
    }

    /// Says how many messages the runner holds at that tally.
    pub(crate) fn hold(&mut self, held: usize, tally: u32) {
        self.held = u32::try_from(held).unwrap_or(u32::MAX);
        self.held_at = tally;
    }

    /// Takes note of what the runner has run up to that tally.
    fn catch_up(&mut self, tally: u32) {
        self.held = self.held.saturating_sub(tally.wrapping_sub(self.held_at));
        self.held_at = tally;
    }

    /// Takes the wakers of those who may send now.
    #[inline]
    pub(crate) fn call_up(&mut self, len_max: u32) -> Vec<Waker> {
        if !self.awaited {
            return Vec::new();
        }
        let room = (len_max as usize).saturating_sub(self.len());
        let is_drained = self.queue.is_empty() && self.held == 0;
        let room_line = &mut self.extras().room;
        let called = room_line.call_up(room, len_max as usize, is_drained);
        self.awaited = !room_line.is_empty();
        called
    }

    /// How many more messages may come.
    pub(crate) fn room(&mut self, len_max: u32, tally: u32) -> u32 {
        self.catch_up(tally);
        let room = (len_max as usize).saturating_sub(self.len());
        u32::try_from(room).unwrap_or(u32::MAX)
    }
}
