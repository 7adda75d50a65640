//! Subscriptions and events.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use althing::Sequence;

use crate::message::Event;
use crate::perform::{Own, calling, calling_with};
use crate::program::{DropOp, Op};
use crate::publishing::check_refusal;
use crate::records::Entry;
use crate::scope::Scope;
use crate::world::World;

pub(crate) fn perform(scope: &Scope<'_>, op: &Op) {
    let world = &scope.world;
    match op {
        Op::Subscribe { who, topic } => subscribe(world, *who, *topic, true),
        Op::Unsubscribe { who, topic } => subscribe(world, *who, *topic, false),
        Op::Publish { topic, ops, dropped } => publish(scope, *topic, ops, dropped),
        Op::Replay { topic } => replay(world, *topic),
        _ => {}
    }
}

/// Ends a subscription if there is one; `begins`: and makes a new one.
pub(crate) fn subscribe(world: &Arc<World>, who: usize, index: usize, begins: bool) {
    let (Some(topic), Some(actor)) = (world.topic(index), world.actor(who)) else { return };
    let place = &world.slots[who].subscriptions[index];
    if place.is_busy.swap(true, SeqCst) {
        return;
    }
    let old = place.held.lock().take();
    if old.is_some() {
        calling(world, "unsubscribe", || drop(old));
        world.log(Entry::Unsubscribed { who, topic: index, last: topic.last() });
    }
    if begins && let Some(held) = calling(world, "subscribe", || topic.subscribe(&actor)) {
        world.log(Entry::Subscribed { who, topic: index, since: held.since() });
        *place.held.lock() = Some(held);
    }
    place.is_busy.store(false, SeqCst);
}

/// Takes note that the subscriptions of an actor end with the life that is just going.
pub(crate) fn end_with_life(world: &World, who: usize) {
    for index in 0..world.program.topics.len() {
        if let Some(topic) = world.topic(index) {
            world.log(Entry::Ended { who, topic: index, last: topic.last() });
        }
    }
}

fn publish(scope: &Scope<'_>, index: usize, ops: &[Op], dropped: &[DropOp]) {
    let world = &scope.world;
    let Some(topic) = world.topic(index) else { return };
    let mut event = Event::new(world, index, Arc::new(scope.known()), ops.into());
    event.dropped = dropped.to_vec();
    match calling_with(world, "publish", Own::of(dropped), || topic.publish(event)) {
        Some(Ok(sequence)) => world.log(Entry::Published { topic: index, sequence }),
        Some(Err(error)) => check_refusal(world, &error),
        None => {}
    }
}

/// What is replayed is in order and without a hole.
fn replay(world: &World, index: usize) {
    let Some(topic) = world.topic(index) else { return };
    let after = Sequence(topic.last().0.saturating_sub(3));
    let Some(Ok(events)) = calling(world, "replay", || topic.replay_since(after)) else { return };
    let is_whole = events.windows(2).all(|pair| pair[0].sequence == pair[1].previous);
    let is_after = events.iter().all(|event| event.sequence > after);
    if !(is_whole && is_after) {
        world.broken("a replay has no hole", format!("topic {index} after {after:?}"));
    }
    calling(world, "replay", || drop(events));
}
