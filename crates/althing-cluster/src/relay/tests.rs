//! Several nodes under seeded schedules: links that are slow, crowded or lost with a node, owners
//! that move, listeners that come and go. What a topic does with what it is handed is modelled.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use althing::remote::{Continuity, Departing, Listening, Place};
use althing::stable_hash::mix;
use althing::{Epoch, Sequence};

use super::{Effect, Key, Relay};
use crate::protocol::Item;

const FRAME_LEN_MAX: usize = 1 << 20;

fn key(topic: &str) -> Key {
    Key { topic: topic.into(), event: "test.event".into() }
}

/// The topic of one node, as `althing` has it.
#[derive(Default)]
struct Topic {
    last: u64,
    epoch: u64,
    is_unsure: bool,
    listens: bool,
    /// Previous number and number of each event that its subscribers got.
    heard: Vec<(u64, u64)>,
    /// The last event of each other node that is no owner, since somebody listens.
    sources: BTreeMap<u64, u64>,
}

struct Machine {
    relay: Relay,
    topic: Topic,
    /// Numbers of the events that it has published to the topic without an owner.
    said: u64,
}

struct World {
    machines: BTreeMap<u64, Machine>,
    links: BTreeMap<(u64, u64), VecDeque<Item>>,
    crowded: BTreeSet<(u64, u64)>,
    owner: u64,
    epoch: u64,
    /// All that owners have published.
    log: Vec<u64>,
    next_node: u64,
    /// Nodes up to this one may own the topic.
    owners: u64,
    random: u64,
    keep: usize,
}

impl World {
    fn new(seed: u64, nodes: u64, keep: usize) -> Self {
        let mut world = Self {
            machines: BTreeMap::new(),
            links: BTreeMap::new(),
            crowded: BTreeSet::new(),
            owner: 1,
            epoch: 1,
            log: Vec::new(),
            next_node: 1,
            owners: u64::MAX,
            random: mix(seed + 1),
            keep,
        };
        for _ in 0..nodes {
            world.join();
        }
        world
    }

    fn random(&mut self, below: u64) -> u64 {
        self.random = mix(self.random.wrapping_add(0x9e37_79b9_7f4a_7c15));
        self.random % below
    }

    fn some_node(&mut self) -> u64 {
        let at = self.random(self.machines.len() as u64);
        *self.machines.keys().nth(usize::try_from(at).expect("few")).expect("one is there")
    }

    fn join(&mut self) {
        let mut relay = Relay::new(FRAME_LEN_MAX);
        for topic in ["owned", "open"] {
            relay.open(key(topic), self.keep);
        }
        let machine = Machine { relay, topic: Topic::default(), said: 0 };
        self.machines.insert(self.next_node, machine);
        self.next_node += 1;
        self.introduce();
    }

    /// All learn who is there now.
    fn introduce(&mut self) {
        let all: Vec<u64> = self.machines.keys().copied().collect();
        for me in &all {
            let others = all.iter().filter(|other| *other != me);
            let others = others.map(|other| (*other, FRAME_LEN_MAX)).collect();
            let effects = self.machine(*me).relay.follow(others);
            self.obey(*me, effects);
        }
    }

    fn machine(&mut self, node: u64) -> &mut Machine {
        self.machines.get_mut(&node).expect("it lives")
    }

    /// It dies, and what it had sent is lost, wherever that is.
    fn kill(&mut self, node: u64) {
        self.machines.remove(&node);
        self.links.retain(|(from, to), _| *from != node && *to != node);
        self.introduce();
        if self.owner == node {
            self.owner = self.some_node();
            self.claim();
        }
    }

    fn claim(&mut self) {
        self.epoch += 1;
        let (owner, epoch) = (self.owner, self.epoch);
        let topic = &mut self.machine(owner).topic;
        topic.is_unsure = true;
        topic.epoch = topic.epoch.max(epoch);
    }

    fn move_owner(&mut self) {
        let (owner, epoch) = (self.owner, self.epoch);
        let effects = self.machine(owner).relay.released(&key("owned"), epoch);
        self.obey(owner, effects);
        let owners = self.owners;
        loop {
            self.owner = self.some_node();
            if self.owner <= owners {
                break;
            }
        }
        self.claim();
    }

    /// The owner publishes with a number of its own.
    fn publish_owned(&mut self) {
        let skip = self.random(2);
        let number = self.log.last().map_or(1, |last| last + 1 + skip);
        let (owner, epoch) = (self.owner, self.epoch);
        self.log.push(number);
        let log = self.log.clone();
        let machine = self.machine(owner);
        machine.topic.hear(&log, number, Continuity::Follows);
        let place = Place { epoch: Epoch(epoch), sequence: Sequence(number) };
        self.publish(owner, "owned", Departing { place: Some(place), body: vec![1] });
    }

    fn publish_open(&mut self) {
        let node = self.some_node();
        let machine = self.machine(node);
        machine.said += 1;
        let body = [node.to_be_bytes(), machine.said.to_be_bytes()].concat();
        self.publish(node, "open", Departing { place: None, body });
    }

    fn publish(&mut self, node: u64, topic: &str, event: Departing) {
        let crowded = self.crowded.clone();
        let machine = self.machine(node);
        // As a topic does: who listens nowhere is sent nothing.
        let limit = machine.relay.open(key(topic), 0);
        let keep = self.keep;
        let machine = self.machine(node);
        machine.relay.open(key(topic), keep);
        if limit.of_next_event().is_some() {
            let has_room = |to| !crowded.contains(&(node, to));
            let effects = machine.relay.publish(&key(topic), event, has_room);
            self.obey(node, effects);
        }
    }

    fn listen(&mut self, node: u64, listens: bool) {
        let machine = self.machine(node);
        if machine.topic.listens == listens {
            return;
        }
        machine.topic.listens = listens;
        machine.topic.is_unsure |= listens && machine.topic.last > 0;
        let listening = if listens { Listening::Begins } else { Listening::Ends };
        for topic in ["owned", "open"] {
            let effects = self.machine(node).relay.listen(&key(topic), listening);
            self.obey(node, effects);
        }
    }

    fn toggle(&mut self) {
        let link = (self.some_node(), self.some_node());
        if !self.crowded.remove(&link) {
            self.crowded.insert(link);
            return;
        }
        self.make_room(link);
    }

    fn make_room(&mut self, (from, to): (u64, u64)) {
        let room = RefCell::new(1 + self.random(5));
        let has_room = |_| {
            let mut room = room.borrow_mut();
            let is_left = *room > 0;
            *room = room.saturating_sub(1);
            is_left
        };
        if let Some(machine) = self.machines.get_mut(&from) {
            let effects = machine.relay.room(to, has_room);
            self.obey(from, effects);
        }
    }

    /// Hands over the first item of a link.
    fn deliver(&mut self) -> bool {
        let full: Vec<_> =
            self.links.iter().filter(|(_, items)| !items.is_empty()).map(|(at, _)| *at).collect();
        if full.is_empty() {
            return false;
        }
        let at = self.random(full.len() as u64);
        let (from, to) = full[usize::try_from(at).expect("few")];
        let items = self.links.get_mut(&(from, to)).expect("it was just seen");
        let item = items.pop_front().expect("it is not empty");
        let machine = self.machine(to);
        if let Item::Event(event) = &item
            && event.epoch.is_none()
            && !machine.relay.topics[&key("open")].hearing.contains_key(&from)
        {
            // It came before the subscription.
            let (source, said) = source_of(&event.body);
            machine.topic.sources.insert(source, said);
        }
        let relay = &mut machine.relay;
        let key = |topic, event| Key { topic, event };
        let effects = match item {
            Item::Listens { topic, event, session } => {
                relay.listens(from, &key(topic, event), session, true)
            }
            Item::Heard { topic, event, session, hearing } => {
                relay.heard(from, &key(topic, event), session, hearing);
                Vec::new()
            }
            Item::Event(event) => relay.arrive(from, event),
            Item::Released { topic, event, epoch } => relay.release(&key(topic, event), epoch),
            Item::Drain { topic, event, epoch } => relay.drain(from, &key(topic, event), epoch),
            Item::Drained { topic, event, epoch } => relay.drained(from, &key(topic, event), epoch),
            item => panic!("{item:?} is not about topics"),
        };
        self.obey(to, effects);
        true
    }

    fn obey(&mut self, me: u64, effects: Vec<Effect>) {
        let log = self.log.clone();
        for effect in effects {
            match effect {
                Effect::Send { to, item } => {
                    if self.machines.contains_key(&to) {
                        self.links.entry((me, to)).or_default().push_back(item);
                    }
                }
                Effect::Take { event, continuity } => {
                    let topic = &mut self.machine(me).topic;
                    if event.epoch.is_some_and(|epoch| epoch < topic.epoch)
                        || !topic.listens
                        || event.epoch.is_some() && event.sequence <= topic.last
                    {
                        continue;
                    }
                    if let Some(epoch) = event.epoch {
                        topic.epoch = epoch;
                        topic.hear(&log, event.sequence, continuity);
                    } else {
                        topic.hear_open(&event.body, continuity);
                    }
                }
                Effect::Doubt { key } if &*key.topic == "owned" => {
                    self.machine(me).topic.is_unsure = true;
                }
                Effect::Doubt { .. } | Effect::Release { .. } => {}
            }
        }
    }

    /// Everything arrives, and then one more event.
    fn settle(&mut self) {
        for _ in 0..30 {
            for link in std::mem::take(&mut self.crowded) {
                self.make_room(link);
            }
            let nodes: Vec<u64> = self.machines.keys().copied().collect();
            for from in &nodes {
                for to in &nodes {
                    self.make_room((*from, *to));
                }
            }
            while self.deliver() {}
        }
        self.publish_owned();
        while self.deliver() {}
        let last = *self.log.last().expect("one was published");
        for (node, machine) in &self.machines {
            let heard = machine.topic.heard.last().map(|(_, sequence)| *sequence);
            assert!(!machine.topic.listens || heard == Some(last), "{node} heard {heard:?}");
        }
    }
}

impl Topic {
    /// An event with a number: if it does not say that something may be missing, nothing is.
    fn hear(&mut self, log: &[u64], sequence: u64, continuity: Continuity) {
        let is_unsure =
            std::mem::take(&mut self.is_unsure) || continuity == Continuity::MayLeaveAGap;
        let previous = if is_unsure { self.last.max(sequence - 1) } else { self.last };
        assert!(sequence > self.last, "{sequence} comes after {}", self.last);
        let is_between = |number: &&u64| **number > self.last && **number < sequence;
        let missed = log.iter().find(is_between);
        assert!(
            !self.listens || missed.is_none() || previous != self.last,
            "{missed:?} is missing before {sequence}, and nobody is told"
        );
        if self.listens {
            self.heard.push((previous, sequence));
        }
        self.last = sequence;
    }

    /// An event that anybody published: its node, and how many that had published with it.
    fn hear_open(&mut self, body: &[u8], continuity: Continuity) {
        let (source, said) = source_of(body);
        let last = self.sources.insert(source, said).unwrap_or(0);
        assert!(said > last, "{said} of {source} comes after {last}");
        assert!(
            said == last + 1 || continuity == Continuity::MayLeaveAGap,
            "{source}: {last} and then {said}, and nobody is told"
        );
    }
}

fn source_of(body: &[u8]) -> (u64, u64) {
    let number = |at| u64::from_be_bytes(*body[at..].first_chunk().expect("two numbers"));
    (number(0), number(8))
}

const SEEDS: u64 = 60;

fn run(seed: u64, kills: bool) -> World {
    let keep = [0, 3, 64][usize::try_from(seed % 3).expect("it is small")];
    let mut world = World::new(seed, 4, keep);
    for _ in 0..400 {
        match world.random(20) {
            0..8 => _ = world.deliver(),
            8..11 => world.publish_owned(),
            11..13 => world.publish_open(),
            13..15 => world.toggle(),
            15 => world.move_owner(),
            16..18 => {
                let node = world.some_node();
                world.listen(node, true);
            }
            18 => {
                let node = world.some_node();
                world.listen(node, false);
            }
            _ if kills && world.machines.len() > 2 && world.random(4) == 0 => {
                let node = world.some_node();
                world.kill(node);
            }
            _ if world.machines.len() < 5 => world.join(),
            _ => {}
        }
    }
    world.settle();
    world
}

#[test]
fn an_event_that_is_missing_is_told_whatever_moves_dies_or_is_crowded() {
    for seed in 0..SEEDS {
        println!("seed {seed}");
        run(seed, seed % 4 > 0);
    }
}

#[test]
fn nothing_is_lost_when_an_owner_moves_between_living_nodes() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed, 4, 0);
        world.owners = 2;
        for node in 3..=4 {
            world.listen(node, true);
        }
        while world.deliver() {}
        for _ in 0..200 {
            match world.random(8) {
                0..4 => _ = world.deliver(),
                4..7 => world.publish_owned(),
                _ => world.move_owner(),
            }
        }
        world.settle();
        for (node, machine) in world.machines.iter().skip(2) {
            let heard = &machine.topic.heard;
            let numbers: Vec<u64> = heard.iter().map(|(_, sequence)| *sequence).collect();
            let from = numbers[0];
            let first =
                world.log.iter().position(|number| *number == from).expect("it was published");
            assert_eq!(numbers, world.log[first..], "seed {seed}: node {node} heard all");
        }
    }
}

#[test]
fn a_node_that_caught_up_has_what_is_kept_and_knows_of_the_rest() {
    let mut world = World::new(1, 2, 3);
    world.listen(2, true);
    while world.deliver() {}
    world.publish_owned();
    while world.deliver() {}
    world.crowded.insert((1, 2));
    for _ in 0..5 {
        world.publish_owned();
    }
    assert!(!world.deliver(), "nothing is queued for a crowded link");
    world.crowded.clear();
    for _ in 0..5 {
        world.make_room((1, 2));
    }
    while world.deliver() {}
    let numbers: Vec<u64> =
        world.machines[&2].topic.heard.iter().map(|(_, sequence)| *sequence).collect();
    let kept = &world.log[3..];
    assert_eq!(numbers, [&world.log[..1], kept].concat(), "two of six are no longer kept");
    let (previous, sequence) = world.machines[&2].topic.heard[1];
    assert_eq!((previous, sequence), (kept[0] - 1, kept[0]), "and that is told");
}

#[test]
fn a_node_that_died_is_forgotten_as_a_listener() {
    let mut world = World::new(3, 3, 64);
    world.listen(2, true);
    while world.deliver() {}
    world.kill(2);
    world.publish_owned();
    assert!(!world.deliver(), "nobody is left who listens");
    assert!(world.links.values().all(VecDeque::is_empty));
}

#[test]
fn who_listens_to_nothing_is_sent_nothing() {
    let mut world = World::new(7, 3, 64);
    world.listen(2, true);
    while world.deliver() {}
    world.publish_owned();
    let to: Vec<_> = world.links.iter().filter(|(_, items)| !items.is_empty()).collect();
    assert_eq!(to.len(), 1, "{to:?}");
    assert_eq!(*to[0].0, (1, 2));
    while world.deliver() {}
    world.listen(2, false);
    while world.deliver() {}
    world.publish_owned();
    assert!(!world.deliver(), "the last subscriber has gone");
}
