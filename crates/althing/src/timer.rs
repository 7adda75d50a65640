//! Volatile timers of actors: one wheel and one task per node.
//!
//! A timer belongs to one life of its actor, which it holds weakly: after a restart or passivation it fires into nothing. The task sleeps until the wheel's next tick
//! and is woken early when a nearer one arrives.

use std::any::type_name;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::actor::{Actor, Handler};
use crate::actor_ref::{ActorRef, WeakRef};
use crate::cell::AnyCell;
use crate::env::{Nap, first_of};
use crate::mailbox::Life;
use crate::node::NodeShared;
use crate::observe::Step;
use crate::reply::{Receiver, ReplyTo, channel};
use crate::wheel::{EntryId, Wheel};

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
#[derive(Clone, Debug)]
pub struct TimerId {
    place: Arc<Mutex<Option<EntryId>>>,
}

/// What a due timer does.
type Fire = Box<dyn FnMut(&Timers) + Send>;

pub(crate) struct Timers {
    wheel: Mutex<Wheel<Fire>>,
    earlier: Notify,
    node: Weak<NodeShared>,
    driving: AtomicBool,
}

impl Timers {
    pub(crate) fn new(node: Weak<NodeShared>) -> Arc<Self> {
        Arc::new(Self {
            wheel: Mutex::new(Wheel::new()),
            earlier: Notify::new(),
            node,
            driving: AtomicBool::new(false),
        })
    }

    pub(crate) fn after<A: Actor + Handler<M>, M: Send + 'static>(
        self: &Arc<Self>,
        actor: &ActorRef<A>,
        delay: Duration,
        message: M,
    ) -> TimerId {
        let (life, actor) = (actor.life(), actor.downgrade());
        let mut message = Some(message);
        self.add(delay, move |_, _| {
            if let (Some(actor), Some(message)) = (actor.upgrade(), message.take()) {
                actor.cell().header().observe(Step::TimerFires { message: type_name::<M>() });
                actor.push_exempt(life, message, ReplyTo::nowhere());
            }
        })
    }

    pub(crate) fn every<A, M>(
        self: &Arc<Self>,
        actor: &ActorRef<A>,
        period: Duration,
        message: M,
    ) -> TimerId
    where
        A: Actor + Handler<M>,
        M: Clone + Send + Sync + 'static,
    {
        let (life, actor) = (actor.life(), actor.downgrade());
        // A period of zero would keep the wheel busy for ever.
        let period = period.max(Duration::from_millis(1));
        let tick = Arc::new(PeriodicTick { actor, life, message, period, last: Mutex::new(None) });
        let id = TimerId { place: Arc::new(Mutex::new(None)) };
        tick.line_up(self, &id);
        id
    }

    pub(crate) fn cancel(&self, timer: &TimerId) -> bool {
        let Some(entry) = timer.place.lock().take() else { return false };
        self.wheel.lock().cancel(entry).is_some()
    }

    fn add(
        self: &Arc<Self>,
        delay: Duration,
        mut fire: impl FnMut(&Timers, &TimerId) + Send + 'static,
    ) -> TimerId {
        let id = TimerId { place: Arc::new(Mutex::new(None)) };
        let own = id.clone();
        let entry = self.insert(delay, Box::new(move |timers| fire(timers, &own)));
        *id.place.lock() = entry;
        id
    }

    fn insert(&self, delay: Duration, fire: Fire) -> Option<EntryId> {
        let node = self.node.upgrade()?;
        let due = ticks(node.env.elapsed() + delay);
        let mut wheel = self.wheel.lock();
        let before = wheel.next_tick();
        let entry = wheel.insert(due, fire);
        let is_earlier = wheel.next_tick() != before;
        drop(wheel);
        if !self.driving.swap(true, Ordering::AcqRel) {
            node.env.spawn_in_background(drive(node.timers.clone()));
        } else if is_earlier {
            self.earlier.notify_one();
        }
        Some(entry)
    }
}

struct PeriodicTick<A: Actor + Handler<M>, M: Send + 'static> {
    actor: WeakRef<A>,
    life: Life,
    message: M,
    period: Duration,
    /// Tells when the last tick's handler has ended.
    last: Mutex<Option<Receiver<A::Reply>>>,
}

impl<A: Actor + Handler<M>, M: Clone + Send + Sync + 'static> PeriodicTick<A, M> {
    fn line_up(self: &Arc<Self>, timers: &Timers, id: &TimerId) {
        let (tick, own) = (self.clone(), id.clone());
        // Held while inserting, so that a tick that fires at once finds its place filled.
        let mut place = id.place.lock();
        *place = timers.insert(self.period, Box::new(move |timers| tick.fire(timers, &own)));
    }

    fn fire(self: &Arc<Self>, timers: &Timers, id: &TimerId) {
        let Some(actor) = self.actor.upgrade() else { return };
        if id.place.lock().is_none() {
            return;
        }
        let mut last = self.last.lock();
        if last.as_ref().is_none_or(Receiver::is_settled) {
            let (reply, receiver) = channel();
            *last = Some(receiver);
            drop(last);
            actor.cell().header().observe(Step::TimerFires { message: type_name::<M>() });
            if !actor.push_exempt(self.life, self.message.clone(), reply) {
                return;
            }
        }
        self.line_up(timers, id);
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
            wheel.advance(now, |fire| due.push(fire));
            wheel.next_tick()
        };
        for mut fire in due {
            fire(&timers);
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
