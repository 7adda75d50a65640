//! Volatile timers of actors: one wheel and one task per node.
//!
//! The wheel names actors, weakly, and timers by number; what a timer sends lies with its actor
//! (`pending`). The task sleeps until the wheel's next tick and is woken early when a nearer one
//! arrives. It runs no foreign code.

pub(crate) mod id;
pub(crate) mod pending;
mod start;
pub(crate) mod wheel;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::address::place::{AnyPlace, Header, wake};
use crate::mail::envelope::Envelope;
use crate::mail::mailbox::Wake;
use crate::metrics::step::Step;
use crate::node::env::{Nap, first_of};
use crate::node::shared::NodeShared;
use crate::shield::shielded;
use crate::timer::id::TimerId;
use crate::timer::pending::{PendingTimer, Wakes};
use crate::timer::wheel::{EntryId, Wheel};

/// What the wheel keeps of a timer.
struct Due {
    actor: Weak<dyn AnyPlace>,
    timer: TimerId,
}

/// When a timer fires.
#[derive(Clone, Copy)]
pub(crate) struct Schedule {
    pub(crate) delay: Duration,
    /// Whether it fires again and again, with `delay` between.
    pub(crate) repeats: bool,
    pub(crate) wakes: Wakes,
}

pub(crate) struct Timers {
    /// For the task that drives them.
    own: Weak<Self>,
    wheel: Mutex<Wheel<Due>>,
    earlier: Notify,
    node: Weak<NodeShared>,
    driving: AtomicBool,
    next_id: AtomicU64,
}

/// A period of zero would keep the wheel busy for ever.
const PERIOD_MIN: Duration = Duration::from_millis(1);

impl Timers {
    pub(crate) fn new(node: Weak<NodeShared>) -> Arc<Self> {
        Arc::new_cyclic(|own| Self {
            own: own.clone(),
            wheel: Mutex::new(Wheel::new()),
            earlier: Notify::new(),
            node,
            driving: AtomicBool::new(false),
            next_id: AtomicU64::new(1),
        })
    }

    /// Cancels a timer of the actor; returns whether it was still to fire.
    pub(crate) fn cancel(&self, header: &Header, id: TimerId) -> bool {
        let mut inner = header.mailbox.lock();
        let timer = inner.extras.as_mut().and_then(|extras| extras.timers.remove(&id));
        // Released before dropping: the timer's message is foreign.
        drop(inner);
        let Some(timer) = timer else { return false };
        self.withdraw(&timer);
        true
    }

    /// Takes a timer off the wheel.
    pub(crate) fn withdraw(&self, timer: &PendingTimer) {
        if let Some(entry) = timer.entry {
            let withdrawn = self.wheel.lock().cancel(entry);
            drop(withdrawn);
        }
    }

    fn line_up(
        &self,
        actor: &Arc<dyn AnyPlace>,
        timer: TimerId,
        delay: Duration,
    ) -> Option<EntryId> {
        let node = self.node.upgrade()?;
        let due = ticks(node.env.elapsed().saturating_add(delay));
        let mut wheel = self.wheel.lock();
        let before = wheel.next_tick();
        let entry = wheel.insert(due, Due { actor: Arc::downgrade(actor), timer });
        let is_earlier = wheel.next_tick() != before;
        drop(wheel);
        if !self.driving.swap(true, Ordering::AcqRel) {
            let own = self.own.upgrade().expect("they are kept in an `Arc`");
            node.env.spawn_in_background(drive(own));
        } else if is_earlier {
            self.earlier.notify_one();
        }
        Some(entry)
    }

    /// Queues a tick, exempt from the mailbox's bound, and lines the next one up.
    fn fire(&self, due: &Due) {
        let Some(actor) = due.actor.upgrade() else { return };
        let mut inner = actor.header().mailbox.lock();
        if inner.is_closed() && inner.has_ended() {
            return;
        }
        let Some(timer) =
            inner.extras.as_mut().and_then(|extras| extras.timers.get_mut(&due.timer))
        else {
            return;
        };
        timer.entry = match timer.period {
            Some(period) => self.line_up(&actor, due.timer, period),
            None => None,
        };
        let mut what = Wake::Nothing;
        if timer.may_tick() {
            timer.is_queued = true;
            actor.header().observe(Step::TimerFires { message: (timer.name)() });
            let tick = Envelope::tick(due.timer, timer.access, timer.name);
            what = inner.push_exempt(tick);
        }
        drop(inner);
        wake(&actor, what);
    }
}

/// Whole milliseconds, rounded up: a timer never fires early.
fn ticks(at: Duration) -> u64 {
    u64::try_from(at.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

async fn drive(timers: Arc<Timers>) {
    loop {
        // Held only between sleeps, so that a dropped node ends its driver.
        let Some(node) = timers.node.upgrade() else { return };
        let now = u64::try_from(node.env.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut due = Vec::new();
        let next = {
            let mut wheel = timers.wheel.lock();
            wheel.advance(now, |one| due.push(one));
            wheel.next_tick()
        };
        for due in due {
            // The last reference to an actor may go here, and its state's drop is foreign.
            shielded("a timer", || timers.fire(&due));
        }
        let next = timers.wheel.lock().next_tick().or(next);
        let pause = match next {
            Some(tick) => Nap::Due(Duration::from_millis(tick).saturating_sub(node.env.elapsed())),
            // Nothing to wait for; `earlier` wakes us.
            None => Nap::Background(Duration::from_secs(3_600)),
        };
        let sleep = node.env.nap(pause);
        drop(node);
        first_of(sleep, timers.earlier.notified()).await;
    }
}
