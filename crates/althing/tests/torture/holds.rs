//! Actors that are held between two messages, alone or with their whole node, and lives that end
//! because another node is said to own them.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use althing::Epoch;
use tokio::time::timeout;

use crate::life::patience;
use crate::perform::{awaiting, calling};
use crate::program::Op;
use crate::records::{FENCED, KILLED, MOVED, SHUT_DOWN};
use crate::scope::{Place, Scope};
use crate::world::World;

/// Whoever holds an actor waits so long for its handlers to end.
const HANDLERS_END_TICKS: u32 = 200;

pub(crate) async fn perform(scope: &Scope<'_>, op: &Op) {
    let world = &scope.world;
    match *op {
        Op::Fence(who) => {
            let Some(actor) = world.actor(who) else { return };
            world.cause(who, FENCED);
            calling(world, "fence", || actor.node().fence(&actor.id(), Epoch(1)));
        }
        // In a handler they would wait for themselves.
        Op::Seal { who, ticks, departs } if matches!(scope.place, Place::Outside) => {
            seal(world, who, world.tick * u32::from(ticks), departs).await;
        }
        Op::Freeze { node, ticks } if matches!(scope.place, Place::Outside) => {
            freeze(world, node, world.tick * u32::from(ticks)).await;
        }
        _ => {}
    }
}

async fn seal(world: &World, who: usize, pause: Duration, departs: bool) {
    let Some(actor) = world.actor(who) else { return };
    let (node, id) = (actor.node(), actor.id());
    let sealing = timeout(world.tick * HANDLERS_END_TICKS, node.seal(&id));
    let Some(Ok(Some(sealed))) = awaiting(world, "seal", sealing).await else { return };
    world.slots[who].holds.fetch_add(1, SeqCst);
    node.sleep(pause).await;
    world.slots[who].holds.fetch_sub(1, SeqCst);
    if !departs {
        calling(world, "resume", || drop(sealed));
        return;
    }
    world.cause(who, MOVED);
    let departing = timeout(patience(world), sealed.depart());
    if matches!(awaiting(world, "depart", departing).await, Some(Err(_))) {
        world.broken("a departure ends", format!("actor {who}"));
    }
}

async fn freeze(world: &Arc<World>, index: usize, pause: Duration) {
    let Some(node) = world.node(index) else { return };
    // A second one would let it go on under the hands of the first.
    if world.freezes[index].swap(true, SeqCst) {
        return;
    }
    let freezing = timeout(world.tick * HANDLERS_END_TICKS, node.freeze());
    let is_frozen = matches!(awaiting(world, "freeze", freezing).await, Some(Ok(())));
    let plans = world.program.actors.iter().enumerate();
    let here: Vec<_> = plans.filter(|(_, plan)| plan.node == index).map(|(slot, _)| slot).collect();
    let hold = |change: i32| {
        for slot in &here {
            world.slots[*slot].holds.fetch_add(change.cast_unsigned(), SeqCst);
        }
    };
    if is_frozen {
        hold(1);
        node.sleep(pause).await;
        hold(-1);
    }
    calling(world, "thaw", || node.thaw());
    world.freezes[index].store(false, SeqCst);
}

/// Something of an actor runs: nobody may hold it. A life that was ended amid that is followed by
/// one that nobody holds.
pub(crate) fn check_free(world: &World, slot: usize, what: &str) {
    let is_held = world.slots[slot].holds.load(SeqCst) != 0;
    let may_be_another_life = world.causes(slot) & (KILLED | FENCED | MOVED | SHUT_DOWN) != 0
        || world.drop_panicked.load(SeqCst);
    if is_held && !may_be_another_life {
        world.broken("a held actor runs nothing", format!("{what} of actor {slot}"));
    }
}
