//! Several nodes under a seeded order of joins, leaves, comings, deaths and deliveries.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use althing::ActorId;
use althing::stable_hash::mix;

use super::{ENTRIES_MAX, Effect, Entry, Full, Key, Roster};

const GROUPS: [&str; 3] = ["a", "b", "c"];

/// Nodes, and links on which nothing is lost or overtaken while both ends live.
#[derive(Default)]
struct World {
    seed: u64,
    nodes: BTreeMap<u64, Roster>,
    wires: BTreeMap<(u64, u64), VecDeque<Entry>>,
    /// What was done on each node.
    truth: BTreeMap<u64, BTreeSet<(Key, ActorId)>>,
    /// What each node was told has changed, and holds since.
    shown: BTreeMap<u64, BTreeSet<(Key, ActorId)>>,
    /// The members as each node knows them: records reach nodes one after the other.
    views: BTreeMap<u64, BTreeSet<u64>>,
    next: u64,
}

fn key(group: &str) -> Key {
    Key::new(group, "test.worker")
}

impl World {
    fn draw(&mut self, below: u64) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.seed) % below
    }

    fn obey(&mut self, node: u64, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Tell { to, entry } => {
                    self.wires.entry((node, to)).or_default().push_back(entry);
                }
                Effect::Changed { key, actor } => {
                    let shown = self.shown.entry(node).or_default();
                    match self.nodes[&node].holds(&key, &actor) {
                        true => _ = shown.insert((key, actor)),
                        false => _ = shown.remove(&(key, actor)),
                    }
                }
                Effect::TooMany { from } => panic!("{from} says too much"),
            }
        }
    }

    fn some(&mut self) -> u64 {
        let at = usize::try_from(self.draw(self.nodes.len() as u64)).expect("small");
        *self.nodes.keys().nth(at).expect("one of them")
    }

    /// A node hears of the present members.
    fn follow(&mut self, node: u64) {
        let mut others: BTreeSet<u64> = self.nodes.keys().copied().collect();
        others.remove(&node);
        self.views.insert(node, others.clone());
        let effects = self.nodes.get_mut(&node).expect("it lives").follow(&others);
        self.obey(node, effects);
    }

    /// One item arrives; as on links, not before its reader knows its sender.
    fn deliver(&mut self, from: u64, to: u64) -> bool {
        if !self.views.get(&to).is_some_and(|view| view.contains(&from)) {
            return false;
        }
        let item = self.wires.get_mut(&(from, to)).and_then(VecDeque::pop_front);
        let Some(entry) = item else { return false };
        let effects = self.nodes.get_mut(&to).expect("it lives").hear(from, &entry);
        self.obey(to, effects);
        true
    }

    fn step(&mut self) {
        match self.draw(12) {
            0 if self.nodes.len() < 5 => {
                self.next += 1;
                self.nodes.insert(self.next, Roster::default());
                self.follow(self.next);
            }
            1 if self.nodes.len() > 1 => {
                let node = self.some();
                self.nodes.remove(&node);
                self.truth.remove(&node);
                self.shown.remove(&node);
                self.views.remove(&node);
                // What it had sent to some still arrives, until they hear of its end.
                self.wires.retain(|(_, to), _| *to != node);
            }
            2 | 3 => {
                let node = self.some();
                self.follow(node);
            }
            4..=7 => self.change(),
            _ => {
                let wires: Vec<_> = self.wires.keys().copied().collect();
                if !wires.is_empty() {
                    let at = usize::try_from(self.draw(wires.len() as u64)).expect("small");
                    self.deliver(wires[at].0, wires[at].1);
                }
            }
        }
    }

    /// An actor joins or leaves; some names are the same on all nodes.
    fn change(&mut self) {
        let node = self.some();
        let key = key(GROUPS[usize::try_from(self.draw(3)).expect("small")]);
        let name = match self.draw(2) {
            0 => format!("shared-{}", self.draw(3)),
            _ => format!("{node}-{}", self.draw(6)),
        };
        let (actor, is_member) = (ActorId::named("test.worker", name), self.draw(2) == 0);
        let truth = self.truth.entry(node).or_default();
        match is_member {
            true => _ = truth.insert((key.clone(), actor.clone())),
            false => _ = truth.remove(&(key.clone(), actor.clone())),
        }
        let roster = self.nodes.get_mut(&node).expect("it lives");
        let effects = roster.set(&key, &actor, is_member).expect("they are few");
        self.obey(node, effects);
    }
}

#[test]
fn all_nodes_know_the_same_members_whatever_comes_goes_and_dies() {
    for seed in 0..300 {
        let mut world = World { seed, ..World::default() };
        world.nodes.insert(0, Roster::default());
        for _ in 0..400 {
            world.step();
        }
        let nodes: Vec<_> = world.nodes.keys().copied().collect();
        nodes.iter().for_each(|node| world.follow(*node));
        for from in &nodes {
            for to in &nodes {
                while world.deliver(*from, *to) {}
            }
        }
        let all: BTreeSet<_> = world.truth.values().flatten().cloned().collect();
        for node in &nodes {
            let shown = world.shown.get(node).cloned().unwrap_or_default();
            assert_eq!(shown, all, "seed {seed}: node {node} was told");
            for group in GROUPS.map(key) {
                let of = |all: &BTreeSet<(Key, ActorId)>| -> BTreeSet<ActorId> {
                    let some = all.iter().filter(|(key, _)| *key == group);
                    some.map(|(_, actor)| actor.clone()).collect()
                };
                assert_eq!(world.nodes[node].members(&group), of(&all), "seed {seed}");
            }
        }
    }
}

#[test]
fn nobody_makes_more_entries_than_a_node_that_comes_can_be_told() {
    let (mut one, mut two) = (Roster::default(), Roster::default());
    two.follow(&BTreeSet::from([1]));
    let key = key("a");
    let actor = |n: usize| ActorId::named("test.worker", n.to_string());
    for n in 0..ENTRIES_MAX {
        one.set(&key, &actor(n), true).expect("there is room");
        let (group, actor) = (key.group.clone(), actor(n));
        two.hear(1, &Entry { group, actor, is_member: true });
    }
    assert_eq!(one.set(&key, &actor(ENTRIES_MAX), true), Err(Full));
    let (group, one_more) = (key.group.clone(), actor(ENTRIES_MAX));
    let heard = two.hear(1, &Entry { group, actor: one_more.clone(), is_member: true });
    assert_eq!(heard, [Effect::TooMany { from: 1 }]);
    assert!(!two.holds(&key, &one_more));
    one.set(&key, &actor(0), false).expect("one goes");
    one.set(&key, &one_more, true).expect("there is room again");
}
