//! Time, network, faults and the authority of the simulation.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use super::checks::{Checks, Sent};
use super::node::{Clock, Item, Node};
use crate::authority::Ledger;
use crate::bucket::mix;
use crate::lease::Timing;
use crate::link::Arrival;
use crate::protocol::{Answer, Refusal, Request};
use crate::record::{Member, Record, Stage};

/// How long faults go on, and how long it takes until all is quiet again.
const FAULTS_MS: u64 = 90_000;
const END_MS: u64 = 150_000;

const TIMING: Timing = Timing { lease: Duration::from_secs(6) };

/// What goes wrong.
#[derive(Clone, Copy, Default)]
pub(super) struct Faults {
    pub(super) joins_and_leaves: bool,
    pub(super) cuts: bool,
    /// Longest pause of a node, and of the authority.
    pub(super) pauses_ms: u64,
    pub(super) kills: bool,
    pub(super) partitions: bool,
    pub(super) authority_stops: bool,
}

#[derive(Debug)]
enum Event {
    /// Actors run, senders send, links are dialled.
    Beat {
        node: u64,
    },
    Renew {
        node: u64,
    },
    /// The authority gets a request.
    Asked {
        request: Request,
        from: u64,
    },
    /// A node gets an answer.
    Told {
        node: u64,
        answer: Answer,
    },
    Tick,
    Frame {
        from: u64,
        to: u64,
        connection: u64,
        at: u64,
    },
    Back {
        from: u64,
        to: u64,
        connection: u64,
        received: u64,
    },
    Departed {
        node: u64,
        buckets: Vec<u16>,
    },
    Fault,
}

/// A connection, by the number that the receiver gave it.
#[derive(Clone, Copy)]
struct Wire {
    connection: u64,
    /// When the last frame arrives: none overtakes another.
    arrives: u64,
}

pub(super) struct World {
    random: u64,
    faults: Faults,
    now: u64,
    order: u64,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    waiting: BTreeMap<u64, Event>,
    authority: Option<Ledger>,
    disk: Record,
    authority_clock: Clock,
    authority_paused_until: u64,
    nodes: BTreeMap<u64, Node>,
    wires: BTreeMap<(u64, u64), Wire>,
    /// Nodes that the authority and the others do not reach, until when.
    cut_off: BTreeMap<u64, u64>,
    next_incarnation: u64,
    was_lost: bool,
    checks: Checks,
    buckets: Vec<u16>,
}

impl World {
    pub(super) fn new(seed: u64, faults: Faults) -> Self {
        let mut world = Self {
            random: mix(seed + 1),
            faults,
            now: 0,
            order: 0,
            events: BinaryHeap::new(),
            waiting: BTreeMap::new(),
            authority: None,
            disk: Record::empty(),
            authority_clock: Clock { offset_ms: 5_000, rate: 1_000 },
            authority_paused_until: 0,
            nodes: BTreeMap::new(),
            wires: BTreeMap::new(),
            cut_off: BTreeMap::new(),
            next_incarnation: 1,
            was_lost: false,
            checks: Checks::default(),
            buckets: Vec::new(),
        };
        world.buckets = (0..8).map(|n| n * 509 + 3).collect();
        world.authority_clock.rate = 995 + world.draw(10);
        world
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.random) % below.max(1)
    }

    fn chance(&mut self, per_thousand: u64) -> bool {
        self.draw(1_000) < per_thousand
    }

    fn after(&mut self, delay: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((self.now + delay, self.order)));
        self.waiting.insert(self.order, event);
    }

    pub(super) fn run(mut self) {
        for n in 0..3 {
            self.start(format!("node-{n}"));
        }
        self.after(0, Event::Tick);
        self.after(3_000, Event::Fault);
        while let Some(Reverse((at, order))) = self.events.pop() {
            self.now = at;
            if at > END_MS {
                break;
            }
            let event = self.waiting.remove(&order).expect("each event happens once");
            self.happen(event);
        }
        assert!(self.checks.count() > 200, "only {} messages ran", self.checks.count());
        if !self.was_lost {
            self.checks.all_ran();
        }
        self.last_words();
    }

    /// After all faults every node reaches every bucket.
    fn last_words(&self) {
        for node in self.nodes.values() {
            for (bucket, number) in &node.sent {
                let sent = Sent { from: node.me, bucket: *bucket, number: *number };
                assert!(self.checks.has_run(&sent), "{sent:?} is stuck at the end");
            }
        }
    }

    fn start(&mut self, name: String) {
        let me = self.next_incarnation;
        self.next_incarnation += 1;
        let clock = Clock { offset_ms: self.draw(1_000_000), rate: 995 + self.draw(10) };
        self.nodes.insert(me, Node::new(me, name, clock, TIMING));
        self.after(1, Event::Beat { node: me });
        self.after(1, Event::Renew { node: me });
    }

    fn happen(&mut self, event: Event) {
        // Who is paused does it when it goes on.
        let node = match &event {
            Event::Beat { node } | Event::Renew { node } | Event::Told { node, .. } => Some(*node),
            Event::Frame { to, .. } | Event::Back { to, .. } => Some(*to),
            Event::Departed { node, .. } => Some(*node),
            Event::Asked { .. } | Event::Tick | Event::Fault => None,
        };
        let until = match node {
            Some(node) => match self.nodes.get(&node) {
                Some(node) => node.paused_until,
                None => return,
            },
            None if matches!(event, Event::Fault) => 0,
            None => self.authority_paused_until,
        };
        if until > self.now {
            return self.after(until - self.now, event);
        }
        match event {
            Event::Beat { node } => self.beat(node),
            Event::Renew { node } => self.renew(node),
            Event::Asked { request, from } => self.asked(request, from),
            Event::Told { node, answer } => self.told(node, answer),
            Event::Tick => {
                self.decide(|ledger, now| ledger.tick(now));
                self.after(300, Event::Tick);
            }
            Event::Frame { from, to, connection, at } => self.frame(from, to, connection, at),
            Event::Back { from, to, connection, received } => {
                self.back(from, to, connection, received);
            }
            Event::Departed { node, buckets } => {
                if let Some(node) = self.nodes.get_mut(&node) {
                    node.departed(&buckets);
                }
            }
            Event::Fault => self.fault(),
        }
    }

    fn is_cut_off(&self, node: u64) -> bool {
        self.cut_off.get(&node).is_some_and(|until| *until > self.now)
    }

    /// Decides, stores, and tells the news to everybody.
    fn decide<T>(&mut self, decide: impl FnOnce(&mut Ledger, Duration) -> T) -> Option<T> {
        let now = self.authority_clock.read(self.now);
        let disk = &self.disk;
        let ledger = self.authority.get_or_insert_with(|| Ledger::new(TIMING, disk.clone(), now));
        let decision = decide(ledger, now);
        let record = ledger.record().clone();
        if record.view != self.disk.view {
            self.disk = record.clone();
            for node in self.nodes.keys().copied().collect::<Vec<_>>() {
                self.tell(node, Answer::News { record: record.clone() });
            }
        }
        Some(decision)
    }

    fn tell(&mut self, node: u64, answer: Answer) {
        if !self.is_cut_off(node) && !self.chance(20) {
            let delay = 1 + self.draw(40);
            self.after(delay, Event::Told { node, answer });
        }
    }

    fn asked(&mut self, request: Request, from: u64) {
        if let Some(answer) = self.decide(|ledger, now| ledger.request(now, request)) {
            self.tell(from, answer);
        }
    }

    fn ask(&mut self, from: u64, request: Request) {
        if self.is_cut_off(from) || self.chance(20) {
            return;
        }
        // Now and then it arrives twice, the second time late.
        if self.chance(20) {
            let delay = self.draw(3_000);
            self.after(delay, Event::Asked { request: request.clone(), from });
        }
        let delay = 1 + self.draw(40);
        self.after(delay, Event::Asked { request, from });
    }

    fn renew(&mut self, me: u64) {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(&me) else { return };
        let clock = node.clock.read(now);
        let view = node.router.record().view;
        let mut requests = Vec::new();
        if node.router.record().member(me).is_none() {
            requests.push(Request::Join {
                member: Member {
                    incarnation: me,
                    name: node.name.clone(),
                    address: String::new(),
                    stage: Stage::Active,
                },
            });
        } else {
            let counter = node.lease.renew(clock);
            requests.push(Request::Renew { incarnation: me, counter, view });
            if node.leaves {
                requests.push(Request::Leave { incarnation: me });
            }
            let record = node.router.record().clone();
            node.released.retain(|bucket, epoch| {
                let holding = record.holding(*bucket);
                holding.owner == Some(me) && holding.epoch == *epoch
            });
            if !node.released.is_empty() {
                let (buckets, epochs) = node.released.iter().map(|(b, e)| (*b, *e)).unzip();
                requests.push(Request::Released { incarnation: me, buckets, epochs });
            }
        }
        for request in requests {
            self.ask(me, request);
        }
        self.after(400, Event::Renew { node: me });
    }

    fn told(&mut self, me: u64, answer: Answer) {
        let Some(node) = self.nodes.get_mut(&me) else { return };
        let was_member = node.router.record().member(me).is_some();
        match answer {
            Answer::Joined { record, .. } if record.member(me).is_some() => node.follow(record),
            Answer::Renewed { counter, record } => {
                node.lease.renewed(counter);
                if let Some(record) = record {
                    node.follow(record);
                }
            }
            Answer::News { record } if record.member(me).is_some() => node.follow(record),
            Answer::News { record } => {
                let is_newer = record.view > node.router.record().view;
                if was_member && is_newer {
                    self.lose(me);
                }
                return;
            }
            Answer::Refused { why: Refusal::Evicted } if was_member => return self.lose(me),
            Answer::Refused { .. } | Answer::Joined { .. } | Answer::Done => {}
        }
        self.schedule(me);
    }

    /// A node ends, and another life of it begins.
    fn lose(&mut self, me: u64) {
        self.was_lost = true;
        if let Some(node) = self.nodes.remove(&me) {
            self.start(node.name);
        }
    }

    /// What a step of a node has set going.
    fn schedule(&mut self, me: u64) {
        let Some(node) = self.nodes.get_mut(&me) else { return };
        for buckets in std::mem::take(&mut node.departing) {
            let delay = 1 + self.draw(300);
            self.after(delay, Event::Departed { node: me, buckets });
        }
    }

    fn beat(&mut self, me: u64) {
        let now = self.now;
        let is_quiet = now > FAULTS_MS + 20_000;
        let at = usize::try_from(self.draw(8)).expect("small");
        let bucket = self.buckets[at];
        let sends = !is_quiet && self.chance(500);
        let Some(node) = self.nodes.get_mut(&me) else { return };
        if sends && node.router.record().member(me).is_some() && !node.leaves {
            let number = node.sent.entry(bucket).or_default();
            *number += 1;
            let sent = Sent { from: me, bucket, number: *number };
            self.checks.sends(sent);
            node.send(sent);
        }
        if node.is_serving(now) {
            for (sent, epoch) in node.run() {
                self.checks.runs(sent, me, epoch);
            }
            self.write(me);
        }
        self.schedule(me);
        let delay = 5 + self.draw(20);
        let node = &self.nodes[&me];
        let record = node.router.record();
        let is_done = node.leaves && record.owned_by(me) == 0 && record.member(me).is_some();
        if is_done && is_quiet && node.out.values().all(crate::link::Outgoing::is_empty) {
            self.nodes.remove(&me);
            self.after(1, Event::Asked { request: Request::Goodbye { incarnation: me }, from: me });
            return;
        }
        self.after(delay, Event::Beat { node: me });
    }

    /// Dials where there is no connection, and writes what is queued.
    fn write(&mut self, me: u64) {
        let others: Vec<u64> = self.nodes[&me].out.keys().copied().collect();
        for to in others {
            if !self.nodes.contains_key(&to) || self.is_cut_off(me) || self.is_cut_off(to) {
                continue;
            }
            if !self.wires.contains_key(&(me, to)) && !self.dial(me, to) {
                continue;
            }
            loop {
                let delay = 1 + self.draw(30);
                let now = self.now;
                let Some(out) = self.nodes.get_mut(&me).and_then(|node| node.out.get_mut(&to))
                else {
                    break;
                };
                // The number that the item has on this link.
                let Some(bytes) = out.take() else { break };
                let at = u64::from_be_bytes(bytes[..8].try_into().expect("eight bytes"));
                let wire = self.wires.get_mut(&(me, to)).expect("dialled above");
                wire.arrives = wire.arrives.max(now + delay);
                let (delay, connection) = (wire.arrives - now, wire.connection);
                self.after(delay, Event::Frame { from: me, to, connection, at });
            }
        }
    }

    fn dial(&mut self, me: u64, to: u64) -> bool {
        let Some(other) = self.nodes.get_mut(&to) else { return false };
        if other.router.record().member(me).is_none() || other.paused_until > self.now {
            return false;
        }
        let incoming = other.into.entry(me).or_default();
        let (connection, received) = (incoming.connect(), incoming.received());
        let out = self.nodes.get_mut(&me).and_then(|node| node.out.get_mut(&to));
        out.expect("listed by the caller").resume(received).expect("it was sent");
        self.wires.insert((me, to), Wire { connection, arrives: self.now });
        true
    }

    fn is_current(&self, from: u64, to: u64, connection: u64) -> bool {
        self.wires.get(&(from, to)).is_some_and(|wire| wire.connection == connection)
    }

    fn frame(&mut self, from: u64, to: u64, connection: u64, at: u64) {
        if !self.is_current(from, to, connection) {
            return;
        }
        let now = self.now;
        let Some((number, view, item)) = self.item(from, to, at) else { return };
        let Some(node) = self.nodes.get_mut(&to) else { return };
        if node.router.record().member(from).is_none() {
            self.wires.remove(&(from, to));
            return;
        }
        if view > node.router.record().view || !node.is_serving(now) {
            // Later ones wait behind it.
            let wire = self.wires.get_mut(&(from, to)).expect("it is current");
            wire.arrives = wire.arrives.max(now + 7);
            return self.after(7, Event::Frame { from, to, connection, at });
        }
        match node.into.entry(from).or_default().arrive(connection, number) {
            Arrival::Next => node.handle(from, item),
            Arrival::Again => {}
            // One that waited behind another in this simulation comes again.
            Arrival::Wrong => return self.after(7, Event::Frame { from, to, connection, at }),
        }
        let received = self.nodes[&to].into.get(&from).map_or(0, |into| into.received());
        let delay = 1 + self.draw(30);
        self.after(delay, Event::Back { from: to, to: from, connection, received });
        self.schedule(to);
    }

    /// The item, its number on the link, and its sender's view.
    fn item(&self, from: u64, to: u64, at: u64) -> Option<(u64, u64, Item)> {
        let node = self.nodes.get(&from)?;
        let (view, item) = node.items.get(usize::try_from(at).ok()?)?.clone();
        let number = node.number_of(to, at)?;
        Some((number, view, item))
    }

    fn back(&mut self, from: u64, to: u64, connection: u64, received: u64) {
        if !self.is_current(to, from, connection) {
            return;
        }
        if let Some(out) = self.nodes.get_mut(&to).and_then(|node| node.out.get_mut(&from)) {
            out.acknowledge(received, received).expect("it was sent");
        }
    }

    fn fault(&mut self) {
        if self.now > FAULTS_MS {
            self.cut_off.clear();
            return;
        }
        let some: Vec<u64> = self.nodes.keys().copied().collect();
        let at = usize::try_from(self.draw(some.len() as u64)).expect("small");
        let Some(node) = some.get(at).copied() else { return };
        let faults = self.faults;
        match self.draw(10) {
            0..=2 if faults.cuts => self.wires.retain(|(from, to), _| *from != node && *to != node),
            3 if faults.pauses_ms > 0 => {
                let pause = self.draw(faults.pauses_ms);
                self.nodes.get_mut(&node).expect("it is there").paused_until = self.now + pause;
            }
            4 if faults.kills => {
                self.wires.retain(|(from, to), _| *from != node && *to != node);
                self.lose(node);
            }
            5 if faults.partitions => {
                let until = self.now + self.draw(25_000);
                self.cut_off.insert(node, until);
                self.wires.retain(|(from, to), _| *from != node && *to != node);
            }
            6 if faults.authority_stops => {
                // It comes back with what is on its disk.
                self.authority = None;
                self.authority_paused_until = self.now + self.draw(15_000);
            }
            7 if faults.pauses_ms > 0 => {
                self.authority_paused_until = self.now + self.draw(faults.pauses_ms / 2);
            }
            8 if faults.joins_and_leaves && some.len() < 5 => {
                let name = format!("node-{}", self.next_incarnation + 10);
                self.start(name);
            }
            9 if faults.joins_and_leaves && some.len() > 3 => {
                self.nodes.get_mut(&node).expect("it is there").leaves = true;
            }
            _ => {}
        }
        let delay = 200 + self.draw(4_000);
        self.after(delay, Event::Fault);
    }
}
