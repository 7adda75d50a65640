//! The promises, judged by what was written down. Each holds for every interleaving.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use althing::Sequence;

use crate::program::Birth;
use crate::records::{
    ACCEPTED, CANCELLED, DID_NOT_RUN, DROPPED, Entry, FENCED, HANDED_ON, HANDLED, IDLED, KILLED,
    LAST_WORD, MOVED, Mail, NOT_STARTED, PANICKED, PASSIVATED, Purpose, RETURNED, SENDERS_MAX,
    SHUT_DOWN, STOPPED, STOPPED_ITSELF, TIED,
};
use crate::world::{ANYONE, World};
use crate::{streams, wakings};

pub(crate) fn judge(world: &World) {
    let mails = world.mails.lock().clone();
    let log = world.log.lock().clone();
    each_message_has_one_fate(world, &mails);
    nothing_overtakes(world, &mails, &log);
    stop_handles_what_waited(world, &mails, &log);
    watchers_hear_once(world, &log);
    ties_hold(world, &log);
    killed_actors_run_no_hook(world, &log);
    wakings::subscriptions_end_with_a_stop(world, &log);
    for topic in 0..world.program.topics.len() {
        events_come_in_order(world, topic, &log);
    }
}

fn each_message_has_one_fate(world: &World, mails: &[Arc<Mail>]) {
    for mail in mails {
        let broken = |promise| world.broken(promise, format!("{mail:?}"));
        if mail.has(HANDLED) && mail.has(RETURNED) {
            broken("a message that is handed back did not run");
        }
        if mail.has(HANDLED) && mail.has(DID_NOT_RUN) {
            broken("an error says truly that a message did not run");
        }
        if mail.has(HANDLED) && mail.has(CANCELLED) {
            broken("a cancelled timer is silent");
        }
        if !mail.has(DROPPED | RETURNED) {
            broken("a message is handled or dropped");
        }
        if mail.target == ANYONE || mail.has(HANDLED) {
            continue;
        }
        let plan = &world.program.actors[mail.target];
        let is_bounded = world.program.nodes[plan.node].mailbox.is_some();
        let was_stashed = mail.arrived.load(SeqCst) != 0;
        // Neither a pipe, a stream nor a timer that comes once lets its actor be unloaded for being idle, and
        // messages outlive that.
        let keeps_awake = matches!(mail.purpose, Purpose::After | Purpose::Pipe | Purpose::Item);
        let is_named = plan.birth == Birth::Named;
        let passing = match mail.purpose {
            _ if mail.has(LAST_WORD) => 0,
            // It wakes whom it does not keep awake.
            Purpose::Wake if is_named => IDLED | PASSIVATED,
            _ if keeps_awake || is_named => IDLED,
            _ => 0,
        };
        let is_excused = world.causes(mail.target) & !passing != 0
            || world.drop_panicked.load(SeqCst)
            || (is_bounded && was_stashed)
            || mail.has(RETURNED | CANCELLED);
        if is_excused {
            continue;
        }
        match mail.purpose {
            Purpose::After | Purpose::Wake => broken("a timer fires"),
            Purpose::Item => broken("an item of a stream comes"),
            Purpose::Pipe => broken("what is piped comes back"),
            Purpose::Tell | Purpose::Loose if mail.has(ACCEPTED) => {
                broken("a tell that is taken runs")
            }
            _ => {}
        }
    }
}

/// By sender and target: for each number the latest arrival up to it.
type Arrivals = HashMap<(usize, usize), Vec<(u64, u32)>>;

fn arrivals(mails: &[Arc<Mail>]) -> Arrivals {
    let mut arrivals = Arrivals::new();
    for mail in mails {
        let Some((sender, number)) = mail.number else { continue };
        let list = arrivals.entry((sender, mail.target)).or_default();
        list.resize(list.len().max(usize::from(number) + 1), (0, 0));
        list[usize::from(number)] = (mail.arrived.load(SeqCst), mail.id);
    }
    for list in arrivals.values_mut() {
        let mut latest = (0, 0);
        for arrival in list.iter_mut() {
            latest = latest.max(*arrival);
            *arrival = latest;
        }
    }
    arrivals
}

/// What the sender of something knew to have been sent to its receiver is there before it.
fn nothing_overtakes(world: &World, mails: &[Arc<Mail>], log: &[Entry]) {
    let arrivals = arrivals(mails);
    let late = |target: usize, before: &[u16], stamp: u64| {
        (0..SENDERS_MAX).find_map(|sender| {
            let list = arrivals.get(&(sender, target))?;
            let known = usize::from(before[sender]).min(list.len() - 1);
            let (latest, id) = list[known];
            (latest > stamp).then_some((sender, id))
        })
    };
    for mail in mails {
        let (Some(before), stamp) = (&mail.before, mail.arrived.load(SeqCst)) else { continue };
        if stamp == 0 {
            continue;
        }
        if let Some((sender, id)) = late(mail.target, before, stamp) {
            let own = mail.number.is_some_and(|number| number.0 == sender);
            let promise = if own {
                "a sender's messages keep their order"
            } else {
                "an effect comes after its cause"
            };
            world.broken(promise, format!("{mail:?} overtook message {id} of sender {sender}"));
        }
    }
    for entry in log {
        let Entry::Heard { who, topic, sequence, stamp, before, .. } = entry else { continue };
        if let Some((sender, id)) = late(*who, before, *stamp) {
            let details =
                format!("{sequence:?} of topic {topic} at {who} overtook message {id} of {sender}");
            world.broken("an event comes after what its publisher told before", details);
        }
    }
}

fn stop_handles_what_waited(world: &World, mails: &[Arc<Mail>], log: &[Entry]) {
    for entry in log {
        let Entry::StopRequested { on, before } = entry else { continue };
        if world.causes(*on) != STOPPED || world.drop_panicked.load(SeqCst) {
            continue;
        }
        for mail in mails {
            let Some((sender, number)) = mail.number else { continue };
            let is_before = mail.target == *on && number <= before[sender];
            let plan = &world.program.actors[*on];
            let may_overflow = world.program.nodes[plan.node].mailbox.is_some();
            let was_stashed = mail.arrived.load(SeqCst) != 0;
            // What is handed on after the stop is refused, and its sender does not hear of it.
            if is_before
                && mail.has(ACCEPTED)
                && !mail.has(HANDLED | HANDED_ON)
                && !(may_overflow || was_stashed)
            {
                world.broken("a stop comes after what waits", format!("{mail:?}"));
            }
        }
    }
}

fn watchers_hear_once(world: &World, log: &[Entry]) {
    let mut heard: HashMap<(usize, usize), (usize, usize, bool)> = HashMap::new();
    for entry in log {
        match *entry {
            Entry::Watched { by, on, was_stopped } => {
                let counts = heard.entry((by, on)).or_default();
                counts.1 += usize::from(was_stopped);
                counts.2 = true;
            }
            Entry::Unwatched { by, on } => heard.entry((by, on)).or_default().2 = false,
            Entry::Terminated { by, on } => heard.entry((by, on)).or_default().0 += 1,
            _ => {}
        }
    }
    for ((by, on), (times, late, _)) in &heard {
        // Of several lives it cannot be said here which were watched.
        if world.is_anonymous(*on) && *times > 1 + late {
            let details =
                format!("{by} heard {times} times of the end of {on}; {late} late watches");
            world.broken("an end is told once", details);
        }
    }
    // A watch outlives unloading.
    let passing = |slot: usize| match world.birth(slot) {
        Birth::Named => PASSIVATED | IDLED,
        _ => 0,
    };
    let untied = |slot: usize| world.causes(slot) & !passing(slot) == 0;
    let ended = |slot: usize| world.causes(slot) & (STOPPED | KILLED) != 0;
    for ((by, on), (times, _, watches)) in heard {
        if watches && times == 0 && untied(by) && world.is_anonymous(on) && ended(on) {
            world.broken("a watcher hears of the end", format!("{by} of {on}"));
        }
    }
}

/// Whether the actor of a slot has been given up: its address is cleared in the check of memory, or
/// refuses.
fn ties_hold(world: &World, log: &[Entry]) {
    let ended = &world.ended.lock();
    for entry in log {
        let (one, other, both) = match *entry {
            Entry::Linked { one, other } => (one, other, true),
            Entry::Child { parent, child } => (parent, child, false),
            _ => continue,
        };
        if !(world.is_anonymous(one) && world.is_anonymous(other)) {
            continue;
        }
        let (one_ended, other_ended) = (ended.contains(&one), ended.contains(&other));
        if (one_ended && !other_ended) || (both && other_ended && !one_ended) {
            let details = format!("{one}: {one_ended}, {other}: {other_ended}");
            world.broken("tied lives end together", details);
        }
    }
}

fn killed_actors_run_no_hook(world: &World, log: &[Entry]) {
    for entry in log {
        if let Entry::Stopping { who } = entry
            && world.causes(*who) & !(KILLED | FENCED) == 0
            && world.causes(*who) != 0
        {
            world.broken("a kill runs no hook", format!("actor {who}"));
        }
    }
}

/// The subscriptions of one actor to one topic, and what it heard.
#[derive(Default)]
struct Listening {
    since: Vec<Sequence>,
    /// The topic's last position after the subscription ended; none while it lasts.
    ended: Option<Sequence>,
    heard: Vec<(Sequence, Sequence)>,
}

fn events_come_in_order(world: &World, topic: usize, log: &[Entry]) {
    let mut published: Vec<Sequence> = Vec::new();
    let mut listeners: HashMap<usize, Listening> = HashMap::new();
    for entry in log {
        match entry {
            Entry::Published { topic: t, sequence } if *t == topic => published.push(*sequence),
            Entry::Subscribed { who, topic: t, since } if *t == topic => {
                let listening = listeners.entry(*who).or_default();
                listening.since.push(*since);
                listening.ended = None;
            }
            Entry::Unsubscribed { who, topic: t, last } if *t == topic => {
                listeners.entry(*who).or_default().ended = Some(*last);
            }
            Entry::Heard { who, topic: t, sequence, previous, .. } if *t == topic => {
                listeners.entry(*who).or_default().heard.push((*sequence, *previous));
            }
            _ => {}
        }
    }
    published.sort_unstable();
    if published.windows(2).any(|pair| pair[0] == pair[1]) {
        world.broken("a topic numbers each event once", format!("topic {topic}"));
    }
    streams::judge(world, topic, &published, log);
    for (who, listening) in listeners {
        judge_listener(world, (topic, who), &listening, &published);
    }
}

fn judge_listener(
    world: &World,
    (topic, who): (usize, usize),
    listening: &Listening,
    published: &[Sequence],
) {
    let broken = |promise, details: String| {
        world.broken(promise, format!("topic {topic}, actor {who}: {details}"));
    };
    let is_unlogged = world.books.unlogged.lock().contains(&topic);
    let last_since = listening.since.iter().max().copied().unwrap_or_default();
    for pair in listening.heard.windows(2) {
        let ((first, _), (second, _)) = (pair[0], pair[1]);
        // An event of a subscription before may come late.
        let may_be_old = listening.since.len() > 1 && second <= last_since;
        if second <= first && !may_be_old {
            broken("events come in order", format!("{second:?} after {first:?}"));
        }
    }
    for (sequence, previous) in &listening.heard {
        let before = published.partition_point(|other| other < sequence);
        let truly = before.checked_sub(1).map(|before| published[before]).unwrap_or_default();
        if truly != *previous && published.contains(sequence) && !is_unlogged {
            broken(
                "an event names the one before",
                format!("{sequence:?}: {previous:?}, not {truly:?}"),
            );
        }
        if listening.ended.is_some_and(|last| *sequence > last) {
            broken(
                "an ended subscription is silent",
                format!("{sequence:?} after {:?}", listening.ended),
            );
        }
    }
    // Everything, or at least what was published when all was quiet.
    let causes = world.causes(who);
    let plan = &world.program.actors[who];
    let is_unbounded = world.program.nodes[plan.node].mailbox.is_none();
    let asked = STOPPED | KILLED | STOPPED_ITSELF | SHUT_DOWN | MOVED | FENCED;
    let ends = asked | TIED | NOT_STARTED | PANICKED;
    let is_named = plan.birth == Birth::Named;
    let may_have_ended = if is_named { causes & ends != 0 } else { causes != 0 };
    if listening.ended.is_some() || may_have_ended || world.drop_panicked.load(SeqCst) {
        return;
    }
    let missed = published.iter().filter(|sequence| {
        **sequence > last_since && !listening.heard.iter().any(|heard| heard.0 == **sequence)
    });
    let missed: Vec<_> = missed.collect();
    let quiet = world.quiet_events.lock().get(&topic).copied();
    let misses_quiet = missed.iter().any(|sequence| Some(**sequence) == quiet);
    if !missed.is_empty() && ((is_unbounded && causes == 0) || misses_quiet) {
        broken(
            "a subscriber hears what is published",
            format!("missed {missed:?} since {last_since:?}"),
        );
    }
}
