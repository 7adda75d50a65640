//! One bad actor harms no other: at the end of a program everybody who should be there answers,
//! timers fire, topics are heard.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

use althing::{Actor, AskError, Context, EventHandler, Published};
use tokio::time::timeout;

use crate::course::until;
use crate::life::{key, patience};
use crate::message::{Event, publish_plainly};
use crate::perform::{awaiting, calling};
use crate::probes::{Check, FreshTimer};
use crate::program::Birth;
use crate::puppet::Puppet;
use crate::records::{
    IDLED, KILLED, NOT_STARTED, PANICKED, PASSIVATED, SHUT_DOWN, STOPPED_ITSELF, TIED,
};
use crate::world::World;

pub(crate) async fn check(world: &Arc<World>) {
    world.enter_stage("health: ends");
    check_ends(world).await;
    world.enter_stage("health: answers");
    let mut well = Vec::new();
    for slot in 0..world.slots.len() {
        if answers(world, slot).await {
            well.push(slot);
        }
    }
    world.enter_stage("health: wakers");
    check_wakers(world).await;
    world.enter_stage("health: timers");
    check_timers(world, &well).await;
    world.enter_stage("health: topics");
    check_topics(world).await;
    world.enter_stage("health: names");
    check_names(world).await;
    world.enter_stage("health: memory");
    check_cells(world).await;
}

/// Who takes no more messages has ended, or is about to: one that a shutdown had to kill at its
/// deadline may still be on its way.
async fn check_ends(world: &World) {
    for slot in 0..world.slots.len() {
        let Some(actor) = world.actor(slot) else { continue };
        if !actor.is_stopped() {
            continue;
        }
        if timeout(patience(world), actor.stopped()).await.is_err() {
            let details = format!("actor {slot}, causes {:b}", world.causes(slot));
            world.broken("a stopped actor ends", details);
        }
    }
}

/// Whether the actor of a slot answers; it must unless something explains it.
async fn answers(world: &World, slot: usize) -> bool {
    let Some(actor) = world.actor(slot) else { return false };
    let causes = world.causes(slot);
    let drops = world.drop_panicked.load(SeqCst);
    let mut last = None;
    for _ in 0..3 {
        match awaiting(world, "ask", actor.send(Check).timeout(world.tick * 5_000)).await {
            Some(Ok(_)) => return true,
            Some(Err(error)) => last = Some(error),
            None => return false,
        }
    }
    let error = last.expect("it was asked");
    let lives_on = world.birth(slot) == Birth::Named
        && causes & (SHUT_DOWN | PANICKED | TIED | NOT_STARTED | KILLED) == 0;
    let is_wrong = match error {
        AskError::Timeout(_) | AskError::Overloaded(_) | AskError::Cycle(_) => true,
        AskError::NotStarted(..) => causes & (NOT_STARTED | PANICKED) == 0 && !drops,
        _ => lives_on || causes == 0,
    };
    if is_wrong && (!drops || matches!(error, AskError::Timeout(_))) {
        let details = format!("actor {slot}: {error:?}, causes {causes:b}");
        world.broken("who has not ended answers", details);
    }
    false
}

/// Nobody keeps a waker of an ask that is over.
async fn check_wakers(world: &World) {
    let kept =
        || world.wakers.lock().iter().map(|wakes| Arc::strong_count(wakes) - 1).sum::<usize>();
    if !until(world, || kept() == 0).await {
        world.broken("no waker stays behind", format!("{} of asks", kept()));
    }
}

async fn check_timers(world: &World, well: &[usize]) {
    let rung = Arc::new(AtomicI64::new(0));
    let mut expected = 0;
    for slot in well {
        let Some(actor) = world.actor(*slot) else { continue };
        let ask = actor.send(FreshTimer(rung.clone())).timeout(world.tick * 5_000);
        if let Some(Ok(())) = awaiting(world, "ask", ask).await {
            expected += 1;
        }
    }
    // A busy pass may unload an actor with its timer.
    let passivates = world.program.nodes.iter().any(|node| node.passivates);
    if !until(world, || rung.load(SeqCst) >= expected).await && !passivates {
        let details = format!("{} of {expected}", rung.load(SeqCst));
        world.broken("a fresh timer fires", details);
    }
}

/// Hears of events, and counts them.
pub(crate) struct Witness(Arc<AtomicI64>);

impl Actor for Witness {
    const NAME: &'static str = "torture.witness";
}

impl EventHandler<Event> for Witness {
    async fn event(&mut self, _: &Published<Event>, _: &mut Context<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

async fn check_topics(world: &Arc<World>) {
    let shut = world.shut.lock().clone();
    for (index, plan) in world.program.topics.iter().enumerate() {
        let (Some(topic), Some(node)) = (world.topic(index), world.node(plan.node)) else {
            continue;
        };
        if shut.contains(&plan.node) {
            continue;
        }
        // What still waits would take the room of the event in a mailbox of one or two: events on
        // their way, in that order, and what is there already.
        let has_room = |slot| world.actor(slot).is_none_or(|actor| actor.mailbox_depth() == 0);
        let is_quiet = || topics_are_quiet(world) && (0..world.slots.len()).all(has_room);
        let was_quiet = until(world, is_quiet).await;
        let heard = Arc::new(AtomicI64::new(0));
        let witness = node.spawn(Witness(heard.clone()));
        let subscription = topic.subscribe(&witness);
        let published = calling(world, "publish", || publish_plainly(world, index)).flatten();
        if was_quiet {
            world.quiet_events.lock().extend(published.map(|sequence| (index, sequence)));
        }
        if !until(world, || heard.load(SeqCst) == 1).await {
            let pending = topic.pending();
            let details = format!("topic {index}: {} times, pending {pending}", heard.load(SeqCst));
            world.broken("a fresh subscriber hears the next event", details);
        }
        if !until(world, || topic.pending() == 0).await {
            let details = format!("topic {index}: {}", topic.pending());
            world.broken("no event waits when all is quiet", details);
        }
        drop(subscription);
        witness.stop().await;
    }
    // What was queued at subscribers is handled before they answer.
    for slot in 0..world.slots.len() {
        answers(world, slot).await;
    }
}

/// Whether no event is on its way to anybody, of whatever topic.
fn topics_are_quiet(world: &World) -> bool {
    world.topics.lock().iter().all(|topic| topic.pending() == 0)
}

/// A name is free once its actor has stopped, and old addresses lead to whoever is started under it.
async fn check_names(world: &Arc<World>) {
    for (slot, plan) in world.program.actors.iter().enumerate() {
        let (Some(actor), Some(node)) = (world.actor(slot), world.node(plan.node)) else {
            continue;
        };
        let may_refuse = world.program.nodes[plan.node].passivates
            || world.causes(slot) & (SHUT_DOWN | TIED) != 0
            || world.drop_panicked.load(SeqCst);
        if plan.birth != Birth::Named || may_refuse || !answers(world, slot).await {
            continue;
        }
        awaiting(world, "stop", actor.stop()).await;
        let state = Puppet::new(world, slot);
        let life = state.life;
        let spawned = calling(world, "spawn_named", || node.spawn_named(key(slot), state));
        if !matches!(&spawned, Some(Ok(spawned)) if *spawned == actor) {
            let details = format!("actor {slot}: {spawned:?}");
            world.broken("a name is free when its actor has stopped", details);
            continue;
        }
        let mut asked = None;
        for _ in 0..3 {
            let ask = actor.send(Check).timeout(world.tick * 5_000);
            asked = awaiting(world, "ask", ask).await;
            if !matches!(asked, Some(Err(AskError::Timeout(_)))) {
                break;
            }
        }
        if asked != Some(Ok(life)) {
            let details = format!("actor {slot}: {asked:?}, not {life}");
            world.broken("old addresses of a name lead to its new actor", details);
        }
    }
}

/// Of those that have ended nothing stays, whoever watched them, was their parent, or asked them.
async fn check_cells(world: &World) {
    const REVIVED: u32 = IDLED | PASSIVATED | STOPPED_ITSELF;
    world.groups.lock().clear();
    let mut ended = Vec::new();
    for slot in 0..world.slots.len() {
        let Some(actor) = world.actor(slot) else { continue };
        let has_ended = actor.is_stopped() && !actor.is_active();
        if !world.is_anonymous(slot) || !has_ended {
            continue;
        }
        world.ended.lock().push(slot);
        if world.causes(slot) & REVIVED == 0 {
            let subscriptions: Vec<_> = world.slots[slot]
                .subscriptions
                .iter()
                .map(|place| place.held.lock().take())
                .collect();
            calling(world, "unsubscribe", || drop(subscriptions));
            world.slots[slot].actor.lock().take();
            ended.push(slot);
        }
    }
    let left = || -> Vec<usize> {
        let is_there = |slot: &usize| {
            world.slots[*slot].weak.lock().as_ref().is_some_and(|w| w.upgrade().is_some())
        };
        ended.iter().copied().filter(is_there).collect()
    };
    if !until(world, || left().is_empty()).await {
        world.broken("an ended actor's memory goes", format!("actors {:?}", left()));
    }
}
