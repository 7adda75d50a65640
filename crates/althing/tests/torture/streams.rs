//! Topics read without an actor, for a while or to the end.

use std::collections::BTreeSet;

use althing::{EventStream, Gap, Sequence};
use futures_util::FutureExt;
use tokio::time::timeout;

use crate::message::Event;
use crate::perform::{awaiting, calling};
use crate::program::Op;
use crate::records::{Entry, Reading};
use crate::scope::Scope;
use crate::world::World;

/// Events that wait for a reader at most, as the runtime promises.
const BEHIND_MAX: usize = 1_024;
/// How long a reader waits for the next event, in ticks.
const PATIENCE_TICKS: u32 = 10;

/// A stream that is read in the end.
pub(crate) struct KeptStream {
    topic: usize,
    /// The topic's last event when it began.
    since: Sequence,
    /// How many had come after that when it had begun.
    began_behind: u64,
    stream: EventStream<Event>,
}

pub(crate) async fn perform(scope: &Scope<'_>, op: &Op) {
    let world = &scope.world;
    match *op {
        Op::Stream { topic, back, events } => read(world, topic, u64::from(back), events).await,
        Op::KeepStream { topic } => keep(world, topic),
        _ => {}
    }
}

async fn read(world: &World, index: usize, back: u64, events: u8) {
    let Some(topic) = world.topic(index) else { return };
    let after = Sequence(topic.last().0.saturating_sub(back));
    let Some(mut stream) = calling(world, "stream", || topic.stream(after)) else { return };
    // At least so many had come when it began, and no more than that are behind it.
    let mut began_behind = Some(topic.last().0 - after.0);
    let mut position = after;
    for _ in 0..events {
        let next = timeout(world.tick * PATIENCE_TICKS, stream.next());
        match awaiting(world, "next", next).await {
            Some(Ok(Some(item))) => {
                position = note(world, index, position, began_behind.take(), item.as_ref());
            }
            Some(Ok(None)) => {
                check_end(world, index);
                break;
            }
            Some(Err(_)) => {}
            None => break,
        }
        if stream.position() != position {
            let details = format!("{:?}, not {position:?}", stream.position());
            world.broken("a stream knows its position", details);
        }
    }
    calling(world, "stream", || drop(stream));
}

/// Writes down what a stream gave; returns up to where it has read by that.
fn note(
    world: &World,
    topic: usize,
    after: Sequence,
    began_behind: Option<u64>,
    item: Result<&std::sync::Arc<althing::Published<Event>>, &Gap>,
) -> Sequence {
    let (what, position) = match item {
        Ok(event) => (Reading::Event(event.sequence), event.sequence),
        Err(gap) => (Reading::Gap(gap.after, gap.until), gap.until),
    };
    world.log(Entry::Read { topic, after, what, began_behind });
    position
}

fn check_end(world: &World, topic: usize) {
    let node = world.program.topics[topic].node;
    if !world.shut.lock().contains(&node) {
        world.broken("a stream ends with its node", format!("topic {topic}"));
    }
}

fn keep(world: &World, topic: usize) {
    let Some(source) = world.topic(topic) else { return };
    let since = source.last();
    let Some(stream) = calling(world, "stream", || source.stream(since)) else { return };
    let began_behind = source.last().0 - since.0;
    world.kept_streams.lock().push(KeptStream { topic, since, began_behind, stream });
}

/// Reads the streams that were kept to their end, which their nodes' shutdown was.
pub(crate) fn read_to_the_end(world: &World) {
    let streams = std::mem::take(&mut *world.kept_streams.lock());
    for KeptStream { topic, since, began_behind, mut stream } in streams {
        let (mut position, mut began_behind) = (since, Some(began_behind));
        let (mut read, mut gone) = (BTreeSet::new(), since);
        loop {
            match calling(world, "next", || stream.next().now_or_never()).flatten() {
                Some(Some(item)) => {
                    match &item {
                        Ok(event) => _ = read.insert(event.sequence),
                        Err(gap) => gone = gap.until,
                    }
                    position = note(world, topic, position, began_behind.take(), item.as_ref());
                }
                Some(None) => break,
                None => {
                    world.broken("a stream ends with its node", format!("not topic {topic}"));
                    break;
                }
            }
        }
        let was_shut = world.shut.lock().contains(&world.program.topics[topic].node);
        let log = world.log.lock().clone();
        let missed = log.iter().find_map(|entry| match *entry {
            Entry::Published { topic: t, sequence } if t == topic && sequence > gone => {
                (!read.contains(&sequence)).then_some(sequence)
            }
            _ => None,
        });
        if let Some(missed) = missed.filter(|_| !was_shut) {
            let details = format!("{missed:?} of topic {topic} after {since:?}");
            world.broken("a stream has every event", details);
        }
        calling(world, "stream", || drop(stream));
    }
}

/// A stream leaves nothing out, and says so only of what its topic did not keep.
pub(crate) fn judge(world: &World, topic: usize, published: &[Sequence], log: &[Entry]) {
    let replay = world.program.topics[topic].replay as u64;
    for entry in log {
        let Entry::Read { topic: t, after, what, began_behind } = *entry else { continue };
        if t != topic {
            continue;
        }
        match what {
            Reading::Event(sequence) => {
                let left_out = published.iter().find(|p| after < **p && **p < sequence);
                if sequence <= after || left_out.is_some() {
                    let details = format!("{sequence:?} after {after:?}: {left_out:?} is left out");
                    world.broken("a stream has every event", details);
                }
            }
            Reading::Gap(from, until) => {
                let is_gone = began_behind.is_some_and(|behind| behind > replay)
                    || published.len() > BEHIND_MAX;
                if from != after || until <= from || !is_gone {
                    let details = format!(
                        "{from:?} to {until:?} after {after:?}, {began_behind:?} behind; {replay} are kept"
                    );
                    world.broken("a gap is where something is gone", details);
                }
            }
        }
    }
}
