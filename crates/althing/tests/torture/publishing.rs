//! Publishers of other kinds: the owner of a topic, and threads that are in no runtime.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use althing::{Epoch, PublishError, Publisher, Sequence, Topic};

use crate::message::Event;
use crate::perform::calling;
use crate::program::{Flavour, Op};
use crate::records::{Entry, Known};
use crate::scope::Scope;
use crate::world::World;

/// Events that each thread publishes.
const EVENTS_OF_THREAD: usize = 3;

pub(crate) fn perform(scope: &Scope<'_>, op: &Op) {
    match op {
        Op::Own { topic, events } => own(scope, *topic, *events),
        Op::PublishOnThreads { topic, threads, ops } => {
            publish_on_threads(scope, *topic, *threads, ops);
        }
        _ => {}
    }
}

fn own(scope: &Scope<'_>, index: usize, events: u8) {
    let world = &scope.world;
    let Some(topic) = world.topic(index) else { return };
    let epoch = Epoch(world.epochs.fetch_add(1, SeqCst) + 1);
    let owner = match calling(world, "publisher", || topic.publisher(epoch)) {
        Some(Ok(owner)) => owner,
        Some(Err(fenced)) => return check_fence(world, epoch, fenced.current),
        None => return,
    };
    let known = Arc::new(scope.known());
    for _ in 0..events {
        publish_as_owner(world, index, &owner, known.clone());
    }
    calling(world, "publisher", || drop(owner));
}

fn publish_as_owner(world: &Arc<World>, index: usize, owner: &Publisher<Event>, known: Arc<Known>) {
    let event = Event::new(world, index, known, Arc::new([]));
    match calling(world, "publish", || owner.publish(event)) {
        Some(Ok(sequence)) => world.log(Entry::Published { topic: index, sequence }),
        Some(Err(PublishError::Fenced { fenced, .. })) => {
            check_fence(world, owner.epoch(), fenced.current);
        }
        Some(Err(error)) => world.broken("an owner may publish", error.to_string()),
        None => {}
    }
}

fn check_fence(world: &World, own: Epoch, current: Epoch) {
    if current <= own {
        world.broken("only a later owner fences", format!("{current:?} has fenced {own:?}"));
    }
}

/// Whether a refused event has its reason: somebody owns the topic, or did a moment ago.
pub(crate) fn check_refusal(world: &World, error: &PublishError<Event>) {
    let is_explained = matches!(error, PublishError::Owned { .. }) && world.epochs.load(SeqCst) > 0;
    if !is_explained {
        world.broken("an event is refused for a reason", error.to_string());
    }
}

/// Threads wait for no virtual time, so there are none where the clock is virtual.
fn publish_on_threads(scope: &Scope<'_>, index: usize, threads: u8, ops: &[Op]) {
    let world = &scope.world;
    let Some(topic) = world.topic(index) else { return };
    if world.program.flavour == Flavour::Paused {
        return;
    }
    let (known, ops): (_, Arc<[Op]>) = (Arc::new(scope.known()), ops.into());
    for _ in 0..threads {
        let (world, topic, known, ops) = (world.clone(), topic.clone(), known.clone(), ops.clone());
        let task = world.task();
        let run = move || {
            let make = || Event::new(&world, index, known.clone(), ops.clone());
            publish_in_order(&world, index, &topic, make);
            drop(task);
        };
        let thread = thread::Builder::new().name("torture-publisher".into()).spawn(run);
        drop(thread.expect("a thread starts"));
    }
}

fn publish_in_order(world: &World, index: usize, topic: &Topic<Event>, make: impl Fn() -> Event) {
    let mut last = Sequence(0);
    for _ in 0..EVENTS_OF_THREAD {
        match calling(world, "publish", || topic.publish(make())) {
            Some(Ok(sequence)) => {
                world.log(Entry::Published { topic: index, sequence });
                if sequence <= last {
                    let details = format!("{sequence:?} after {last:?}");
                    world.broken("one publisher's events keep their order", details);
                }
                last = sequence;
            }
            Some(Err(error)) => check_refusal(world, &error),
            None => {}
        }
    }
}
