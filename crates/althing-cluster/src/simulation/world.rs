//! Time, and what happens when.

mod authority;
mod faults;
mod network;
mod store;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use althing::stable_hash::mix;

use self::authority::Seat;
use self::faults::Cut;
pub(super) use self::faults::Faults;
use self::network::Wire;
use self::store::{Asked, Store};
use super::checks::Checks;
use super::node::{Clock, Frame, GUEST, Node, labelled_bucket};
use crate::authority::Done;
use crate::authority::LEASE_DEFAULT;
use crate::bucket::pool_in;
use crate::lease::Timing;
use crate::protocol::{Answer, Request};

/// How long faults go on, and senders send; when every node says its last words to everybody, and
/// when those must have arrived.
const FAULTS_MS: u64 = 90_000;
const SENDERS_MS: u64 = 110_000;
const LAST_WORDS_MS: u64 = 135_000;
const END_MS: u64 = 150_000;

/// Buckets that are sent to.
const BUCKETS: u64 = 10;

/// Per thousand looks of a node: how often it unloads an actor.
const UNLOADED: u64 = 100;

const TIMING: Timing = Timing { lease: LEASE_DEFAULT };

#[derive(Debug)]
enum Event {
    /// Actors run, senders send, links are dialled.
    Beat {
        node: u64,
    },
    Renew {
        node: u64,
    },
    /// A candidate gets a request.
    Asked {
        seat: usize,
        request: Request,
        from: u64,
    },
    /// A node gets an answer.
    Told {
        node: u64,
        seat: usize,
        answer: Answer,
    },
    Tick {
        seat: usize,
    },
    /// A candidate starts again.
    Sits {
        seat: usize,
    },
    /// The store gets what a life of a candidate has asked of it.
    Stores {
        seat: usize,
        life: u64,
        asked: Asked,
        is_answered: bool,
    },
    /// A candidate gets an answer of the store.
    Stored {
        seat: usize,
        life: u64,
        done: Done,
    },
    Arrives {
        from: u64,
        to: u64,
        connection: u64,
        frame: Frame,
    },
    Acknowledged {
        from: u64,
        to: u64,
        connection: u64,
        received: u64,
    },
    Departed {
        node: u64,
        buckets: Vec<(u32, u64)>,
    },
    Fault,
    LastWords,
}

pub(super) struct World {
    random: u64,
    faults: Faults,
    now: u64,
    order: u64,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    waiting: BTreeMap<u64, Event>,
    seats: Vec<Seat>,
    store: Store,
    nodes: BTreeMap<u64, Node>,
    wires: BTreeMap<(u64, u64), Wire>,
    /// Nodes that the authority does not reach, or that do not reach it.
    cut_off: BTreeMap<u64, (u64, Cut)>,
    /// Nodes that do not reach each other, until when.
    apart: BTreeMap<(u64, u64), u64>,
    /// Nodes and candidates that do not reach each other, until when.
    unreached: BTreeMap<(u64, usize), u64>,
    next_incarnation: u64,
    was_lost: bool,
    checks: Checks,
    buckets: Vec<u32>,
    /// Whether what happens is told, line by line.
    is_told: bool,
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
            seats: Vec::new(),
            store: Store::default(),
            nodes: BTreeMap::new(),
            wires: BTreeMap::new(),
            cut_off: BTreeMap::new(),
            apart: BTreeMap::new(),
            unreached: BTreeMap::new(),
            next_incarnation: 1,
            was_lost: false,
            checks: Checks::default(),
            buckets: (0..8).map(|n| n * 509 + 3).chain(["a", "b"].map(labelled_bucket)).collect(),
            is_told: std::env::var_os("CLUSTER_SEED").is_some(),
        };
        world.begin();
        world
    }

    fn note(&self, line: impl FnOnce() -> String) {
        if self.is_told {
            println!("{:>7} ms  {}", self.now, line());
        }
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

    /// Lets it all happen; returns how many messages ran.
    pub(super) fn run(mut self) -> usize {
        for n in 0..3 {
            self.start(format!("node-{n}"));
        }
        self.start(GUEST.to_owned());
        self.after(3_000, Event::Fault);
        self.after(LAST_WORDS_MS, Event::LastWords);
        while let Some(Reverse((at, order))) = self.events.pop() {
            self.now = at;
            if at > END_MS {
                break;
            }
            let event = self.waiting.remove(&order).expect("each event happens once");
            self.happen(event);
        }
        assert!(self.checks.count() > 200, "only {} messages ran", self.checks.count());
        assert!(self.faults.may_lose() || !self.was_lost, "a node that lived was evicted");
        if !self.was_lost {
            self.checks.all_ran();
        }
        self.checks.last_words_ran();
        self.checks.count()
    }

    fn start(&mut self, name: String) {
        let me = self.next_incarnation;
        self.next_incarnation += 1;
        self.note(|| format!("{me} starts as {name}"));
        let clock = Clock { offset_ms: self.draw(1_000_000), rate: 995 + self.draw(10) };
        self.nodes.insert(me, Node::new(me, name, clock, TIMING));
        self.after(1, Event::Beat { node: me });
        self.after(1, Event::Renew { node: me });
    }

    fn happen(&mut self, event: Event) {
        // Who is paused does it when it goes on.
        let until = match &event {
            Event::Beat { node }
            | Event::Renew { node }
            | Event::Told { node, .. }
            | Event::Departed { node, .. }
            | Event::Arrives { to: node, .. }
            | Event::Acknowledged { to: node, .. } => match self.nodes.get(node) {
                Some(node) => node.paused_until,
                None => return,
            },
            Event::Asked { seat, .. } | Event::Tick { seat } | Event::Stored { seat, .. } => {
                self.seats[*seat].paused_until
            }
            Event::Sits { .. } | Event::Stores { .. } | Event::Fault | Event::LastWords => 0,
        };
        if until > self.now {
            return self.after(until - self.now, event);
        }
        match event {
            Event::Beat { node } => self.beat(node),
            Event::Renew { node } => self.renew(node),
            Event::Asked { seat, request, from } => self.asked(seat, request, from),
            Event::Told { node, seat, answer } => self.told(node, seat, answer),
            Event::Tick { seat } => self.tick(seat),
            Event::Sits { seat } => self.sit(seat),
            Event::Stores { seat, life, asked, is_answered } => {
                self.stores(seat, life, asked, is_answered);
            }
            Event::Stored { seat, life, done } => self.stored(seat, life, done),
            Event::Arrives { from, to, connection, frame } => {
                self.arrives(from, to, connection, frame);
            }
            Event::Acknowledged { from, to, connection, received } => {
                self.acknowledged(from, to, connection, received);
            }
            Event::Departed { node, buckets } => {
                self.note(|| format!("{node} has stopped what ran of {}", self.known(&buckets)));
                if let Some(node) = self.nodes.get_mut(&node) {
                    node.departed(&buckets);
                }
                self.schedule(node);
            }
            Event::Fault => self.fault(),
            Event::LastWords => self.last_words(),
        }
    }

    /// A node ends, and another life of it begins.
    fn lose(&mut self, me: u64) {
        self.was_lost = true;
        if let Some(node) = self.nodes.remove(&me) {
            self.note(|| format!("{me} is lost"));
            self.start(node.name);
        }
    }

    /// Those of the buckets that are sent to.
    fn known(&self, buckets: &[(u32, u64)]) -> String {
        let known = buckets.iter().filter(|(bucket, _)| self.buckets.contains(bucket));
        format!("{:?}", known.collect::<Vec<_>>())
    }

    /// What a step of a node has set going.
    fn schedule(&mut self, me: u64) {
        let Some(node) = self.nodes.get_mut(&me) else { return };
        self.checks.refuses(&mut node.refused);
        let stops_ms = node.stops_ms;
        for buckets in std::mem::take(&mut node.departing) {
            let delay = 1 + self.draw(stops_ms);
            self.after(delay, Event::Departed { node: me, buckets });
        }
    }

    fn beat(&mut self, me: u64) {
        let now = self.now;
        let at = usize::try_from(self.draw(BUCKETS)).expect("small");
        let bucket = self.buckets[at];
        let sends = now < SENDERS_MS && self.chance(500);
        let Some(node) = self.nodes.get_mut(&me) else { return };
        if sends && let Some(sent) = node.send_next(bucket) {
            self.note(|| format!("{me} sends {bucket} number {}", sent.number));
            self.checks.sends(sent);
        }
        let Some(node) = self.nodes.get_mut(&me) else { return };
        if node.is_serving(now) {
            node.leave();
            let (is_guest, labels) = (node.is_guest(), node.labels());
            for (sent, epoch) in node.run() {
                assert!(!is_guest, "a guest ran {sent:?}");
                let is_labelled = pool_in(sent.bucket).is_some();
                assert!(
                    !is_labelled || !labels.own.is_empty(),
                    "{me} ran {sent:?} without its label"
                );
                self.note(|| format!("{me} runs {sent:?} in epoch {epoch}"));
                self.checks.runs(sent, me, epoch);
                self.assert_lives_once(sent.bucket, me);
            }
            self.write(me);
            if self.faults.upheavals && self.chance(UNLOADED) {
                self.unload(me);
            }
        }
        self.schedule(me);
        let delay = 5 + self.draw(20);
        self.after(delay, Event::Beat { node: me });
    }

    fn unload(&mut self, me: u64) {
        let at = usize::try_from(self.draw(BUCKETS)).expect("small");
        let bucket = self.buckets[at];
        if let Some(node) = self.nodes.get_mut(&me) {
            node.unload(bucket);
        }
    }

    /// Nobody else runs what has just run on `me`.
    fn assert_lives_once(&self, bucket: u32, me: u64) {
        for node in self.nodes.values().filter(|node| node.me != me) {
            let lives = node.life(bucket).is_some() && node.is_serving(self.now);
            assert!(!lives, "bucket {bucket} lives on {} and on {me}", node.me);
        }
    }

    fn last_words(&mut self) {
        for node in self.nodes.values_mut() {
            for bucket in &self.buckets {
                if let Some(sent) = node.send_next(*bucket) {
                    self.checks.sends_last(sent);
                }
            }
        }
    }
}
