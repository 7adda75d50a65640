//! Who is woken and who is not: an actor that sleeps starts for what is sent to it, and for nothing
//! else.

use crate::course::until;
use crate::program::Birth;
use crate::records::{Entry, IDLED, KILLED, PASSIVATED, STOPPED};
use crate::world::{ANYONE, World};

/// Who was activated while it slept, or was about to, starts. Looked at before anything else wakes
/// everybody.
pub(crate) async fn check_activations(world: &World) {
    until(world, || asleep_though_activated(world).is_none()).await;
    if let Some(who) = asleep_though_activated(world) {
        world.broken("an activation starts its actor", format!("actor {who}"));
    }
}

fn asleep_though_activated(world: &World) -> Option<usize> {
    let log = world.log.lock();
    let activated = |entry: &Entry| match *entry {
        Entry::Activated { who } => Some(who),
        _ => None,
    };
    log.iter().enumerate().find_map(|(at, entry)| {
        let who = activated(entry)?;
        if world.causes(who) & !(PASSIVATED | IDLED | STOPPED) != 0 {
            return None;
        }
        let has_started = |entry: &Entry| match *entry {
            Entry::Started { who: other } if other == who => Some(true),
            Entry::Stopping { who: other } if other == who => Some(false),
            _ => None,
        };
        let was_awake = log[..at].iter().rev().find_map(has_started) == Some(true);
        let starts = log[at..].iter().any(|entry| has_started(entry) == Some(true));
        (!was_awake && !starts).then_some(who)
    })
}

/// To whom nobody wrote has not lived, however often it was stopped or killed.
pub(crate) fn check_sleepers(world: &World) {
    for slot in 0..world.slots.len() {
        let was_ended = world.causes(slot) & (STOPPED | KILLED) != 0;
        let has_lived = world.slots[slot].lives.load(std::sync::atomic::Ordering::SeqCst) != 0;
        if world.birth(slot) == Birth::Named && was_ended && has_lived && !was_called(world, slot) {
            world.broken("who sleeps is not started to be ended", format!("actor {slot}"));
        }
    }
}

/// Whether somebody sent anything to that actor.
fn was_called(world: &World, slot: usize) -> bool {
    let mails = world.mails.lock();
    let is_subscribed = |plan: &crate::program::TopicPlan| plan.subscribers.contains(&slot);
    mails.iter().any(|mail| mail.target == slot || mail.target == ANYONE)
        || world.program.topics.iter().any(is_subscribed)
        || world.log.lock().iter().any(|entry| match *entry {
            Entry::Subscribed { who, .. } | Entry::Activated { who } | Entry::Poked { who } => {
                who == slot
            }
            _ => false,
        })
}

/// A subscription ends with the life that a stop ends.
pub(crate) fn subscriptions_end_with_a_stop(world: &World, log: &[Entry]) {
    for (at, entry) in log.iter().enumerate() {
        let Entry::Ended { who, topic, last } = *entry else { continue };
        let is_stop =
            |entry: &Entry| matches!(*entry, Entry::Stopping { who: other } if other == who);
        let Some(stop) = log[..at].iter().rposition(is_stop) else { continue };
        let is_subscribed_anew = log[stop..].iter().any(|entry| {
            matches!(*entry, Entry::Subscribed { who: other, topic: t, .. } if (other, t) == (who, topic))
        });
        let late = log.iter().find(|entry| {
            matches!(**entry, Entry::Heard { who: other, topic: t, sequence, .. }
                if (other, t) == (who, topic) && sequence > last)
        });
        if let Some(Entry::Heard { sequence, .. }) = late
            && !is_subscribed_anew
        {
            let details = format!("actor {who} heard {sequence:?} of topic {topic} after {last:?}");
            world.broken("a subscription ends with a stop", details);
        }
    }
}
