//! Performs instructions: those about oneself here, the others where they belong.
//!
//! Every call of the runtime's interface is made under [`calling`]: whatever an instruction is, no
//! call may panic.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::task::Poll;
use std::time::Duration;

use althing::ActorError;

use crate::alarm::{is_on_purpose, panic_on_purpose};
use crate::message::Tick;
use crate::program::{DropOp, Op};
use crate::puppet::{Alarm, answer, blame_panic};
use crate::records::{CANCELLED, HANDLED, PASSIVATED, Purpose, STOPPED_ITSELF};
use crate::scope::{Place, Scope};
use crate::world::World;
use crate::{events, holds, ledger, life, publishing, sending, streams, to_self};

/// Calls the runtime, which must not panic.
pub(crate) fn calling<T>(world: &World, what: &'static str, call: impl FnOnce() -> T) -> Option<T> {
    calling_with(world, what, Own::IsTame, call)
}

/// Whether what is handed to a call panics itself when it is dropped, which the call may pass on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Own {
    IsTame,
    Panics,
}

impl Own {
    pub(crate) fn of(dropped: &[DropOp]) -> Self {
        if dropped.contains(&DropOp::Panic) { Self::Panics } else { Self::IsTame }
    }
}

pub(crate) fn calling_with<T>(
    world: &World,
    what: &'static str,
    own: Own,
    call: impl FnOnce() -> T,
) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(value) => Some(value),
        Err(panic) if own == Own::Panics && is_on_purpose(&*panic) => None,
        Err(panic) => {
            let cause = if is_on_purpose(&*panic) { "somebody's" } else { "the runtime's own" };
            world.broken("no call panics", format!("{what}: {cause} panic"));
            None
        }
    }
}

/// As [`calling`], for a future.
pub(crate) async fn awaiting<T>(
    world: &World,
    what: &'static str,
    call: impl Future<Output = T>,
) -> Option<T> {
    awaiting_with(world, what, Own::IsTame, call).await
}

pub(crate) async fn awaiting_with<T>(
    world: &World,
    what: &'static str,
    own: Own,
    call: impl Future<Output = T>,
) -> Option<T> {
    let mut call = pin!(call);
    poll_fn(|cx| match calling_with(world, what, own, || call.as_mut().poll(cx)) {
        Some(Poll::Pending) => Poll::Pending,
        Some(Poll::Ready(value)) => Poll::Ready(Some(value)),
        None => Poll::Ready(None),
    })
    .await
}

pub(crate) async fn perform(scope: &mut Scope<'_>, ops: &[Op]) {
    for op in ops {
        if !scope.world.burn() {
            return;
        }
        if let Op::Panic = op {
            if let Some(slot) = scope.by() {
                blame_panic(&scope.world, slot);
                panic_on_purpose();
            }
            continue;
        }
        Box::pin(perform_one(scope, op)).await;
    }
}

async fn perform_one(scope: &mut Scope<'_>, op: &Op) {
    match op {
        Op::Tell(..)
        | Op::Ask(..)
        | Op::AskBoth(..)
        | Op::PollAsk(..)
        | Op::MoveAsk(..)
        | Op::AskInLoop(_)
        | Op::Broadcast { .. } => sending::perform(scope, op).await,
        Op::Subscribe { .. } | Op::Unsubscribe { .. } | Op::Publish { .. } | Op::Replay { .. } => {
            events::perform(scope, op)
        }
        Op::Own { .. } | Op::PublishOnThreads { .. } => publishing::perform(scope, op),
        Op::Stream { .. } | Op::KeepStream { .. } => streams::perform(scope, op).await,
        Op::Seal { .. } | Op::Freeze { .. } | Op::Fence(_) => holds::perform(scope, op).await,
        Op::Turn(plan) => ledger::turn(scope, plan).await,
        Op::Watch(_)
        | Op::Unwatch(_)
        | Op::Link(_)
        | Op::Stop(_)
        | Op::StopAndWait(_)
        | Op::PollStopped(..)
        | Op::Kill(_)
        | Op::Activate(_)
        | Op::Spawn(_)
        | Op::SpawnNamed(_)
        | Op::Upgrade(_)
        | Op::KillNode { .. }
        | Op::Shutdown { .. } => life::perform(scope, op).await,
        Op::Yield => tokio::task::yield_now().await,
        Op::Sleep(ticks) => sleep(scope, *ticks).await,
        Op::Block => std::thread::sleep(Duration::from_micros(300)),
        Op::Blocking => blocking(scope).await,
        Op::Detach(ops) => detach(scope, ops),
        _ => perform_on_self(scope, op),
    }
}

async fn sleep(scope: &Scope<'_>, ticks: u16) {
    if let Some(node) = scope.world.node(0) {
        node.sleep(scope.world.tick * u32::from(ticks)).await;
    }
}

async fn blocking(scope: &Scope<'_>) {
    let work = || std::thread::sleep(Duration::from_micros(100));
    match &scope.place {
        Place::Outside => {}
        Place::Exclusive(_, ctx) => ctx.blocking(work).await,
        Place::Shared(_, ctx) => ctx.blocking(work).await,
    }
}

/// Runs instructions beside whoever this is.
fn detach(scope: &mut Scope<'_>, ops: &[Op]) {
    let world = scope.world.clone();
    let ops: Arc<[Op]> = ops.into();
    let (sender, known) = scope.fork();
    let task = world.task();
    let future = async move {
        let mut scope = Scope::outside(&world, sender, known);
        perform(&mut scope, &ops).await;
        drop(task);
    };
    match &mut scope.place {
        Place::Exclusive(_, ctx) => ctx.detach(future),
        _ => drop(tokio::spawn(future)),
    }
}

/// What needs exclusive access; elsewhere it is passed over.
fn perform_on_self(scope: &mut Scope<'_>, op: &Op) {
    match op {
        Op::Pipe(ticks, ops) => to_self::pipe(scope, *ticks, ops),
        Op::After(ticks, ops) => to_self::after(scope, Purpose::After, *ticks, ops),
        Op::WakeAfter(ticks, ops) => to_self::after(scope, Purpose::Wake, *ticks, ops),
        Op::Attach { items, ticks, ops } => to_self::attach(scope, (*items, *ticks), ops),
        _ => {}
    }
    let world = scope.world.clone();
    let Place::Exclusive(puppet, ctx) = &mut scope.place else { return };
    match op {
        Op::SettleReplies => {
            for (mail, reply) in puppet.replies.drain(..) {
                answer(&world, puppet.slot, &mail, reply);
            }
        }
        Op::AfterForever => {
            // Never fires, and cancels well.
            calling(&world, "after(MAX)", || {
                let id = ctx.after(Duration::MAX, Tick::new(&world, puppet.life, false));
                if !ctx.cancel(id) {
                    world.broken("a timer that has not fired can be cancelled", "after(MAX)");
                }
            });
        }
        Op::Every { period, clone_panics } => {
            let tick = Tick::new(&world, puppet.life, *clone_panics);
            let is_cancelled = tick.is_cancelled.clone();
            let id = ctx.every(world.tick * u32::from(*period), tick);
            puppet.alarms.push(Alarm::Periodic { id, is_cancelled });
        }
        Op::CancelTimer => match puppet.alarms.pop() {
            Some(Alarm::Once(id, mail)) => {
                let was_handled = mail.has(HANDLED);
                if ctx.cancel(id) {
                    mail.set(CANCELLED);
                    if was_handled {
                        world.broken("cancel tells whether a timer has fired", format!("{mail:?}"));
                    }
                }
            }
            Some(Alarm::Periodic { id, is_cancelled }) if ctx.cancel(id) => {
                is_cancelled.store(true, SeqCst);
            }
            _ => {}
        },
        // An actor that ends in each `started` would be started by its waiting message for ever.
        Op::StopSelf | Op::FailSelf | Op::Passivate if !puppet.serves && puppet.life > 0 => {}
        Op::FailSelf => {
            blame_panic(&world, puppet.slot);
            ctx.fail(ActorError::new("on purpose"));
        }
        Op::StopSelf => {
            world.cause(puppet.slot, STOPPED_ITSELF);
            ctx.stop();
        }
        Op::Passivate => {
            world.cause(puppet.slot, PASSIVATED);
            ctx.passivate();
        }
        Op::ShutGate => puppet.gate_is_shut = !world.settles.load(SeqCst),
        Op::OpenGate => {
            puppet.gate_is_shut = false;
            ctx.unstash_all();
        }
        _ => {}
    }
}
