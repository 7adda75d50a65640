//! Volatile timers of actors: one wheel and one task per node.
//!
//! The wheel names actors, weakly, and timers by number; what a timer sends lies with its actor (`pending`). The task sleeps until
//! the wheel's next tick and is woken early when a nearer one arrives. It runs no foreign code.

pub(crate) mod pending;
pub(crate) mod wheel;

use std::any::type_name;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::actor::Actor;
use crate::address::place::{AnyPlace, Header, wake};
use crate::mail::dispatch::Dispatch;
use crate::mail::envelope::Envelope;
use crate::mail::mailbox::Wake;
use crate::mail::reply::{ReplyTo, channel};
use crate::metrics::observe::Step;
use crate::node::NodeShared;
use crate::node::env::{Nap, first_of};
use crate::shield::shielded;
use crate::timer::pending::{Made, Make, PendingTimer, Wakes};
use crate::timer::wheel::{EntryId, Wheel};

/// Names a timer of an actor.
///
/// ```
/// use std::time::Duration;
///
/// use althing::{Context, Node, TimerId, actor};
///
/// struct Bomb(Option<TimerId>);
///
/// #[actor(name = "example.bomb")]
/// impl Bomb {
///     async fn arm(&mut self, ctx: &mut Context<Self>) {
///         self.0 = Some(ctx.after(Duration::from_secs(60), bomb_messages::Explode));
///     }
///
///     async fn disarm(&mut self, ctx: &mut Context<Self>) -> bool {
///         self.0.take().is_some_and(|timer| ctx.cancel(timer))
///     }
///
///     async fn explode(&mut self) {
///         unreachable!("somebody disarms it");
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let bomb = Node::builder("film").build().spawn(Bomb(None));
/// bomb.arm().await?;
/// assert!(bomb.disarm().await?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId(u64);

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
        Arc::new(Self {
            wheel: Mutex::new(Wheel::new()),
            earlier: Notify::new(),
            node,
            driving: AtomicBool::new(false),
            next_id: AtomicU64::new(1),
        })
    }

    /// Starts a timer of the actor whose handler runs now.
    pub(crate) fn start<A: Actor, M: Send + 'static, D: Dispatch<A, M>>(
        &self,
        actor: &Arc<dyn AnyPlace>,
        schedule: Schedule,
        mut message: impl FnMut() -> Option<M> + Send + 'static,
    ) -> TimerId {
        let id = TimerId(self.next_id.fetch_add(1, Ordering::Relaxed));
        let repeats = schedule.repeats;
        let make: Make = Box::new(move || {
            let message = message().expect("a message that comes once is made once");
            if !repeats {
                let envelope = Envelope::new::<A, M, D>(message, ReplyTo::nowhere());
                return Made { envelope, ended: None };
            }
            let (reply, receiver) = channel();
            let envelope = Envelope::new::<A, M, D>(message, reply);
            Made { envelope, ended: Some(Box::new(receiver)) }
        });
        let delay = if repeats { schedule.delay.max(PERIOD_MIN) } else { schedule.delay };
        let timer = PendingTimer {
            entry: None,
            period: repeats.then_some(delay),
            wakes: schedule.wakes,
            access: D::ACCESS,
            name: type_name::<M>,
            make: Some(make),
            is_queued: false,
            last: None,
        };
        let mut inner = actor.header().mailbox.lock();
        let timers = &mut inner.extras().timers;
        // Lined up under the lock, so that a tick that is due at once finds its timer.
        let entry = self.line_up(actor, id, delay);
        timers.insert(id, PendingTimer { entry, ..timer });
        id
    }

    /// A timer that is due at once and is on no wheel.
    pub(crate) fn due_now<A: Actor, M: Send + 'static, D: Dispatch<A, M>>(
        &self,
        message: M,
        mut reply: ReplyTo<D::Reply>,
    ) -> (TimerId, PendingTimer) {
        let id = TimerId(self.next_id.fetch_add(1, Ordering::Relaxed));
        let mut message = Some(message);
        let make: Make = Box::new(move || {
            let message = message.take().expect("a message that comes once is made once");
            let envelope = Envelope::new::<A, M, D>(message, reply.take());
            Made { envelope, ended: None }
        });
        let timer = PendingTimer {
            entry: None,
            period: None,
            wakes: Wakes::No,
            access: D::ACCESS,
            name: type_name::<M>,
            make: Some(make),
            is_queued: true,
            last: None,
        };
        (id, timer)
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
            node.env.spawn_in_background(drive(node.timers.clone()));
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
