//! Births, watches, links and ends.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use althing::{ActorError, Blocked, Context, Start};

use tokio::time::error::Elapsed;
use tokio::time::timeout;

use crate::perform::{Own, awaiting, calling, calling_with};
use crate::program::{Birth, Flavour, Op};
use crate::puppet::Puppet;
use crate::records::{Entry, KILLED, SHUT_DOWN, STOPPED, TIED};
use crate::scope::{Place, Scope};
use crate::sending::{Gone, poll_and_drop};
use crate::world::World;

/// What a factory makes for a slot; it does not keep the world.
pub(crate) fn factory(
    world: &Arc<World>,
    slot: usize,
) -> impl Fn(Start<Puppet>) -> std::future::Ready<Result<Puppet, ActorError>> + Send + Sync + 'static
{
    let world = Arc::downgrade(world);
    move |_| {
        let world = world.upgrade().ok_or_else(|| ActorError::new("the run is over"));
        std::future::ready(world.and_then(|world| world.build(slot)))
    }
}

/// Starts the actor of a slot that is empty, as a child if there is a parent on the same node.
pub(crate) fn spawn_in_slot(
    world: &Arc<World>,
    slot: usize,
    parent: Option<(usize, &mut Context<Puppet>)>,
) {
    let plan = &world.program.actors[slot];
    let Some(node) = world.node(plan.node) else { return };
    let was_taken = world.slots[slot].is_taken.swap(true, SeqCst);
    if was_taken && plan.birth != Birth::SpawnedByName {
        return;
    }
    let actor = match plan.birth {
        Birth::Spawned => calling(world, "spawn", || node.spawn(Puppet::new(world, slot))),
        Birth::SpawnedWithFactory => {
            calling(world, "spawn_with", || node.spawn_with(factory(world, slot)))
        }
        Birth::Named => calling(world, "get", || node.get::<Puppet>(key(slot))),
        Birth::SpawnedByName => {
            calling(world, "spawn_named", || node.spawn_named(key(slot), Puppet::new(world, slot)))
                .and_then(Result::ok)
        }
        Birth::Later => match parent {
            Some((parent, ctx)) if world.program.actors[parent].node == plan.node => {
                world.cause(parent, TIED);
                world.cause(slot, TIED);
                let child = calling(world, "ctx.spawn", || ctx.spawn(factory(world, slot)));
                world.log(Entry::Child { parent, child: slot });
                child
            }
            _ => calling(world, "spawn_with", || node.spawn_with(factory(world, slot))),
        },
    };
    if let Some(actor) = actor {
        world.settle_in(slot, actor);
    }
}

pub(crate) fn key(slot: usize) -> String {
    slot.to_string()
}

pub(crate) async fn perform(scope: &mut Scope<'_>, op: &Op) {
    let world = scope.world.clone();
    match *op {
        Op::Spawn(slot) => match &mut scope.place {
            Place::Exclusive(puppet, ctx) => {
                spawn_in_slot(&world, slot, Some((puppet.slot, ctx)));
            }
            _ => spawn_in_slot(&world, slot, None),
        },
        Op::SpawnNamed(slot) => spawn_named(&world, slot),
        Op::Upgrade(slot) => upgrade(&world, slot),
        Op::Watch(on) | Op::Unwatch(on) | Op::Link(on) => tie(scope, op, on),
        Op::Stop(on) => stop(scope, on, false).await,
        Op::StopAndWait(on) => stop(scope, on, true).await,
        Op::PollStopped(on, polls) => {
            if let Some(actor) = world.actor(on) {
                let stopped = Box::pin(actor.stopped());
                poll_and_drop(&world, "stopped", stopped, polls, (Own::IsTame, Gone::AtOnce));
            }
        }
        Op::Kill(on) => {
            let Some(actor) = world.actor(on) else { return };
            world.cause(on, KILLED);
            calling(&world, "kill", || actor.kill());
        }
        Op::Activate(on) if world.birth(on) == Birth::Named => {
            if let Some(actor) = world.actor(on) {
                world.log(Entry::Activated { who: on });
                calling(&world, "activate", || actor.activate());
            }
        }
        Op::Shutdown { node } if matches!(scope.place, Place::Outside) => {
            shutdown(&world, node).await;
        }
        Op::KillNode { node } if matches!(scope.place, Place::Outside) => kill_node(&world, node),
        _ => {}
    }
}

/// Starts an actor under a name, of which there must not be two.
fn spawn_named(world: &Arc<World>, slot: usize) {
    let plan = &world.program.actors[slot];
    let (Some(node), Some(known)) = (world.node(plan.node), world.actor(slot)) else { return };
    if world.is_anonymous(slot) {
        return;
    }
    // A state that is refused counts as one that was made.
    world.log(Entry::Poked { who: slot });
    let state = Puppet::new(world, slot);
    // A state that is refused is dropped here.
    let own = Own::of(&plan.dropped);
    let spawned = calling_with(world, "spawn_named", own, || node.spawn_named(key(slot), state));
    let Some(Ok(actor)) = spawned else { return };
    let may_be_another = plan.birth != Birth::Named || world.causes(slot) & SHUT_DOWN != 0;
    if actor != known && !may_be_another {
        world.broken("all addresses of a name lead to one actor", format!("actor {slot}"));
    }
    if actor != known {
        world.settle_in(slot, actor);
    }
}

/// The weak address of an actor that somebody knows leads to it.
fn upgrade(world: &World, slot: usize) {
    let Some(actor) = world.actor(slot) else { return };
    let weak = world.slots[slot].weak.lock().clone();
    let found = weak.and_then(|weak| calling(world, "upgrade", || weak.upgrade()).flatten());
    // Which may be put there anew at this moment.
    if world.birth(slot) != Birth::SpawnedByName
        && world.causes(slot) & SHUT_DOWN == 0
        && found.as_ref() != Some(&actor)
    {
        world.broken("a weak address leads to its actor", format!("actor {slot}: {found:?}"));
    }
}

fn tie(scope: &mut Scope<'_>, op: &Op, on: usize) {
    let world = scope.world.clone();
    let Some(actor) = world.actor(on) else { return };
    let Place::Exclusive(puppet, ctx) = &mut scope.place else { return };
    let by = puppet.slot;
    if by == on {
        return;
    }
    match op {
        Op::Watch(_) => {
            calling(&world, "watch", || ctx.watch(&actor));
            let was_stopped = actor.is_stopped();
            world.log(Entry::Watched { by, on, was_stopped });
        }
        Op::Unwatch(_) => {
            world.log(Entry::Unwatched { by, on });
            calling(&world, "unwatch", || ctx.unwatch(&actor));
        }
        _ => {
            world.cause(by, TIED);
            world.cause(on, TIED);
            calling(&world, "link", || ctx.link(&actor));
            world.log(Entry::Linked { one: by, other: on });
        }
    }
}

/// How long an end may take while nothing gets on, on the clock of the run.
pub(crate) fn patience(world: &World) -> Duration {
    match world.program.flavour {
        Flavour::Paused => Duration::from_secs(3_600),
        _ => Duration::from_secs(10),
    }
}

async fn stop(scope: &Scope<'_>, on: usize, waits: bool) {
    let world = &scope.world;
    let Some(actor) = world.actor(on) else { return };
    world.cause(on, STOPPED);
    world.log(Entry::StopRequested { on, before: scope.known().sent_to(on) });
    let Some(stopped) = calling(world, "stop", || actor.stop()) else { return };
    if !waits {
        return;
    }
    match awaiting(world, "stopped", while_others_get_on(world, stopped)).await {
        Some(Ok(())) => {
            // Of one's own knowledge too, whose lock must not be held twice.
            let known = world.slots[on].known_at_end.lock().clone();
            known.inspect(|known| scope.learn(known));
            if world.is_anonymous(on) && actor.is_active() && scope.by() != Some(on) {
                world.broken("stop waits for the end", format!("actor {on} is active"));
            }
        }
        Some(Err(_)) => {
            let nodes = world.nodes.lock().clone();
            let blocked: Vec<_> = nodes.iter().map(|node| node.inspector().blocked()).collect();
            if !may_wait_for_room(world, &blocked) {
                let details = format!("actor {on} after {:?}: {blocked:?}", patience(world));
                world.broken("stop ends", details);
            }
        }
        None => {}
    }
}

/// Waits for an end for as long as anything gets on in this program: what waits before a stop may
/// wait out deadline after deadline, which takes as long as the program has instructions.
async fn while_others_get_on(world: &World, end: impl Future<Output = ()>) -> Result<(), Elapsed> {
    let mut end = pin!(end);
    loop {
        let before = world.pulse();
        match timeout(patience(world), end.as_mut()).await {
            Err(_) if world.pulse() != before => {}
            outcome => return outcome,
        }
    }
}

/// Whether somebody may wait for room in the mailbox of one who waits for the stop: then each waits
/// for the other, as their program says.
fn may_wait_for_room(world: &World, blocked: &[Vec<Blocked>]) -> bool {
    world.program.nodes.iter().zip(blocked).any(|(plan, blocked)| {
        let is_full = |actor: &Blocked| plan.mailbox.is_some_and(|max| actor.depth >= max as usize);
        blocked.iter().any(|actor| actor.is_at_work && is_full(actor))
    })
}

/// Writes down that a node ends now.
fn node_ends(world: &World, index: usize) {
    for (slot, plan) in world.program.actors.iter().enumerate() {
        if plan.node == index {
            world.cause(slot, SHUT_DOWN);
        }
    }
    world.shut.lock().push(index);
}

fn kill_node(world: &World, index: usize) {
    let Some(node) = world.node(index) else { return };
    node_ends(world, index);
    calling(world, "the kill of a node", || node.kill());
}

pub(crate) async fn shutdown(world: &World, index: usize) {
    let Some(node) = world.node(index) else { return };
    node_ends(world, index);
    awaiting(world, "shutdown", node.shutdown(world.tick * 50)).await;
}
