//! Makes a program from a seed.
//!
//! Each program uses a random part of the instructions only, and each of them with a random weight
//! ("swarm testing", Groce et al., 2012): programs that use everything at once seldom get deep into
//! anything. Asks of actors lead from lower to higher numbers in most programs, so that a cycle
//! which is reported there is a lie.

mod lives;
mod motifs;
mod topics;

use crate::program::{
    ActorPlan, AfterPanic, Birth, ClientPlace, ClientPlan, DropOp, Flavour, Items, Lane, NodePlan,
    Op, Patience, Program, ReplyPlan, Send, Siblings, TopicPlan, Way,
};
use crate::random::Random;

/// How deep messages carry messages.
const DEPTH_MAX: usize = 3;

/// What an instruction may be; a program gives each a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Tell,
    Ask,
    AskOddly,
    Broadcast,
    Wait,
    Panic,
    Replies,
    Detach,
    Timer,
    Attach,
    Subscribe,
    Publish,
    PublishOddly,
    Stream,
    Watch,
    Link,
    Stop,
    StopAndWait,
    Kill,
    End,
    Fail,
    Passivate,
    Activate,
    Spawn,
    Name,
    Gate,
    Hold,
    Turn,
    /// Several instructions that together come to moments which single ones seldom meet.
    Motif,
    Shutdown,
}

/// With how often a program has them at all, in sixteenths.
const KINDS: [(Kind, usize); 30] = [
    (Kind::Tell, 15),
    (Kind::Ask, 13),
    (Kind::AskOddly, 5),
    (Kind::Broadcast, 3),
    (Kind::Wait, 10),
    (Kind::Panic, 5),
    (Kind::Replies, 5),
    (Kind::Detach, 6),
    (Kind::Timer, 5),
    (Kind::Attach, 3),
    (Kind::Subscribe, 8),
    (Kind::Publish, 8),
    (Kind::PublishOddly, 3),
    (Kind::Stream, 4),
    (Kind::Watch, 5),
    (Kind::Link, 2),
    (Kind::Stop, 6),
    (Kind::StopAndWait, 4),
    (Kind::Kill, 5),
    (Kind::End, 4),
    (Kind::Fail, 3),
    (Kind::Passivate, 5),
    (Kind::Activate, 2),
    (Kind::Spawn, 6),
    (Kind::Name, 3),
    (Kind::Gate, 4),
    (Kind::Hold, 3),
    (Kind::Turn, 3),
    (Kind::Motif, 5),
    (Kind::Shutdown, 1),
];

struct Generator {
    random: Random,
    weights: Vec<(Kind, usize)>,
    actors: usize,
    topics: usize,
    nodes: usize,
    /// Whether actors ask higher numbers only.
    is_layered: bool,
    /// What drops may do, if anything.
    drops: Vec<DropKind>,
    uses_lanes: bool,
    uses_ways: bool,
    /// How many tells in a row at most.
    burst_max: usize,
}

#[derive(Clone, Copy)]
enum DropKind {
    Tell,
    Topic,
    Spawn,
    End,
    Panic,
}

/// The program of a seed.
pub(crate) fn generate(seed: u64) -> Program {
    let mut random = Random::new(seed);
    let flavour = random.pick(&[
        Flavour::Paused,
        Flavour::CurrentThread,
        Flavour::CurrentThread,
        Flavour::TwoWorkers,
        Flavour::ThreeWorkers,
        Flavour::ThreeWorkers,
        Flavour::Several,
    ]);
    let nodes = if flavour == Flavour::Several { random.within(2, 3) } else { random.within(1, 2) };
    let is_large = random.once_in(16);
    let actors = if is_large { random.within(8, 12) } else { random.within(2, 7) };
    let mut generator = Generator {
        weights: weights(&mut random),
        actors,
        topics: random.pick(&[0, 1, 1, 2]),
        nodes,
        is_layered: !random.once_in(4),
        drops: drops(&mut random),
        uses_lanes: random.once_in(3),
        uses_ways: !random.once_in(3),
        burst_max: random.pick(&[1, 2, 4, 20]),
        random,
    };
    generator.program(seed, flavour, is_large)
}

fn weights(random: &mut Random) -> Vec<(Kind, usize)> {
    let mut weights = Vec::new();
    for (kind, sixteenths) in KINDS {
        if random.below(16) < sixteenths {
            let often = matches!(kind, Kind::Tell | Kind::Ask | Kind::Publish | Kind::Subscribe);
            weights.push((kind, random.within(1, 4) * if often { 3 } else { 1 }));
        }
    }
    weights.push((Kind::Tell, 1));
    weights
}

fn drops(random: &mut Random) -> Vec<DropKind> {
    if !random.once_in(3) {
        return Vec::new();
    }
    let all = [DropKind::Tell, DropKind::Topic, DropKind::Spawn, DropKind::End, DropKind::Panic];
    all.into_iter().filter(|_| random.once_in(2)).collect()
}

impl Generator {
    fn program(&mut self, seed: u64, flavour: Flavour, is_large: bool) -> Program {
        let nodes: Vec<_> = (0..self.nodes).map(|_| self.node()).collect();
        let actors = (0..self.actors).map(|index| self.actor(index, &nodes)).collect();
        let topics = (0..self.topics).map(|_| self.topic()).collect();
        let len_max = if is_large { 12 } else { 5 };
        let clients =
            (0..self.random.within(1, 3)).map(|_| self.client(flavour, len_max)).collect();
        Program { seed, flavour, nodes, actors, topics, clients }
    }

    fn node(&mut self) -> NodePlan {
        let random = &mut self.random;
        let panics = [
            AfterPanic::Restart,
            AfterPanic::Restart,
            AfterPanic::RestartOnce,
            AfterPanic::Resume,
            AfterPanic::Stop,
            AfterPanic::Escalate,
        ];
        NodePlan {
            mailbox: random.pick(&[None, None, None, Some(1), Some(2), Some(8), Some(1_024)]),
            after_panic: random.pick(&panics),
            siblings: random.pick(&[
                Siblings::Alone,
                Siblings::Alone,
                Siblings::All,
                Siblings::Rest,
            ]),
            batch_budget: random.pick(&[1, 3, 128, 128]),
            passivates: random.once_in(3),
            has_factory: !random.once_in(4),
            counts: !random.once_in(4),
        }
    }

    fn actor(&mut self, index: usize, nodes: &[NodePlan]) -> ActorPlan {
        let node = self.random.below(nodes.len());
        let mut births = vec![Birth::Spawned, Birth::SpawnedWithFactory, Birth::SpawnedByName];
        if nodes[node].has_factory {
            births.extend([Birth::Named, Birth::Named]);
        }
        if self.has(Kind::Spawn) && index > 0 {
            births.extend([Birth::Later, Birth::Later]);
        }
        ActorPlan {
            node,
            birth: self.random.pick(&births),
            started: self.hook(index),
            stopping: self.hook(index),
            terminated: self.hook(index),
            dropped: self.dropped(12),
            fails_once: self.random.once_in(24),
        }
    }

    fn hook(&mut self, index: usize) -> Vec<Op> {
        let mut ops = if self.random.once_in(3) { self.ops(2, 1, Some(index)) } else { Vec::new() };
        if self.random.once_in(4) {
            // Others come in while it waits.
            ops.push(Op::Sleep(self.random.pick(&[1, 2, 4])));
        }
        ops
    }

    fn topic(&mut self) -> TopicPlan {
        let node = self.random.below(self.nodes);
        let subscribers = (0..self.actors).filter(|_| self.random.once_in(2)).collect();
        TopicPlan { node, replay: self.random.pick(&[0, 1, 4, 64]), subscribers }
    }

    fn client(&mut self, flavour: Flavour, len_max: usize) -> ClientPlan {
        let node = self.random.below(self.nodes);
        let is_thread = flavour != Flavour::Paused && self.random.once_in(3);
        let place = if is_thread { ClientPlace::Thread(node) } else { ClientPlace::Task(node) };
        ClientPlan { place, ops: self.ops(len_max, DEPTH_MAX, None) }
    }

    /// Up to `len_max` instructions for the actor `by`, or for somebody outside.
    fn ops(&mut self, len_max: usize, depth: usize, by: Option<usize>) -> Vec<Op> {
        let mut ops: Vec<_> =
            (0..self.random.within(1, len_max)).map(|_| self.op(depth, by)).collect();
        if self.has(Kind::Motif) && self.random.once_in(3) {
            let motif = self.motif(by);
            let at = self.random.below(ops.len() + 1);
            ops.splice(at..at, motif);
        }
        ops
    }

    fn inner(&mut self, depth: usize, by: Option<usize>) -> Vec<Op> {
        if depth == 0 || self.random.once_in(4) {
            return Vec::new();
        }
        self.ops(3, depth - 1, by)
    }

    fn has(&self, kind: Kind) -> bool {
        self.weights.iter().any(|weight| weight.0 == kind)
    }

    fn kind(&mut self) -> Kind {
        let total = self.weights.iter().map(|weight| weight.1).sum();
        let mut left = self.random.below(total);
        for (kind, weight) in &self.weights {
            if left < *weight {
                return *kind;
            }
            left -= weight;
        }
        Kind::Tell
    }

    fn anyone(&mut self) -> usize {
        self.random.below(self.actors)
    }

    fn op(&mut self, depth: usize, by: Option<usize>) -> Op {
        let kind = self.kind();
        match kind {
            Kind::Tell => self.tell(depth),
            Kind::Ask | Kind::AskOddly => self.ask(kind, depth, by),
            Kind::Broadcast => Op::Broadcast { node: self.random.below(self.nodes) },
            Kind::Wait => self.wait(),
            Kind::Panic if by.is_some() && self.random.once_in(2) => Op::Panic,
            Kind::Replies => Op::SettleReplies,
            Kind::Detach => self.detach(depth, by),
            Kind::Timer => self.timer(depth, by),
            Kind::Attach => self.attach(depth, by),
            Kind::Subscribe | Kind::Publish | Kind::PublishOddly | Kind::Stream => {
                self.topic_op(kind, depth)
            }
            Kind::Watch if self.random.once_in(4) => Op::Unwatch(self.anyone()),
            Kind::Watch => Op::Watch(self.anyone()),
            Kind::Link => Op::Link(self.anyone()),
            Kind::Stop => Op::Stop(self.anyone()),
            Kind::StopAndWait => self.stop_and_wait(by),
            Kind::Kill if self.random.once_in(4) => Op::Fence(self.anyone()),
            Kind::Kill => Op::Kill(self.anyone()),
            Kind::End => Op::StopSelf,
            Kind::Fail => Op::FailSelf,
            Kind::Passivate => Op::Passivate,
            Kind::Activate => Op::Activate(self.anyone()),
            Kind::Spawn => Op::Spawn(self.anyone()),
            Kind::Name if self.random.once_in(2) => Op::Upgrade(self.anyone()),
            Kind::Name => Op::SpawnNamed(self.anyone()),
            Kind::Hold => self.hold(by),
            Kind::Turn => self.turn(),
            Kind::Gate if self.random.once_in(2) => Op::ShutGate,
            Kind::Gate => Op::OpenGate,
            Kind::Shutdown if self.random.once_in(4) => {
                let node = self.random.below(self.nodes);
                if self.random.once_in(2) { Op::KillNode { node } } else { Op::Shutdown { node } }
            }
            Kind::Panic | Kind::Shutdown | Kind::Motif => Op::Yield,
        }
    }

    fn tell(&mut self, depth: usize) -> Op {
        let to = self.anyone();
        let send = self.send(to, depth);
        let patience = [Patience::Try, Patience::Try, Patience::Wait, Patience::Recipient];
        let times = self.random.within(1, self.burst_max);
        Op::Tell(send, self.random.pick(&patience), u8::try_from(times).expect("a short burst"))
    }

    fn send(&mut self, to: usize, depth: usize) -> Send {
        let ways = [Way::Write, Way::Read, Way::Delayed];
        let way = if self.uses_ways { self.random.pick(&ways) } else { Way::Write };
        let lanes = [Lane::Normal, Lane::Normal, Lane::High, Lane::Low];
        let lane = if self.uses_lanes { self.random.pick(&lanes) } else { Lane::Normal };
        let replies = [
            ReplyPlan::Now,
            ReplyPlan::Keep,
            ReplyPlan::Detach(u16::try_from(self.random.below(5)).expect("a small number")),
            ReplyPlan::Drop,
            ReplyPlan::HandOn(self.higher(Some(to)).unwrap_or(to)),
        ];
        Send {
            to,
            way,
            lane,
            gated: self.has(Kind::Gate) && self.random.once_in(2),
            reply: self.random.pick(&replies),
            ops: self.inner(depth, Some(to)),
            dropped: self.dropped(4),
        }
    }

    /// Who may be asked, or waited for, by `by`.
    fn higher(&mut self, by: Option<usize>) -> Option<usize> {
        match by {
            Some(by) if self.is_layered => {
                (by + 1 < self.actors).then(|| self.random.within(by + 1, self.actors - 1))
            }
            _ => Some(self.anyone()),
        }
    }

    fn ask(&mut self, kind: Kind, depth: usize, by: Option<usize>) -> Op {
        let Some(to) = self.higher(by) else { return self.tell(depth) };
        let send = self.send(to, depth);
        if kind == Kind::Ask {
            let timeout = self.random.once_in(3).then(|| self.random.pick(&[1, 5, 40, 150]));
            return Op::Ask(send, timeout);
        }
        match self.random.below(4) {
            3 => Op::AskInLoop(to),
            0 => {
                let other = self.higher(by).unwrap_or(to);
                Op::AskBoth(send, self.send(other, depth))
            }
            1 => Op::PollAsk(send, self.random.pick(&[1, 2, 40])),
            _ => Op::MoveAsk(send),
        }
    }

    fn wait(&mut self) -> Op {
        match self.random.below(8) {
            0..=3 => Op::Yield,
            // The longest is long enough for an idle actor to be unloaded where the clock is
            // virtual.
            4 | 5 => Op::Sleep(self.random.pick(&[1, 2, 3, 4, 5, 6, 45])),
            6 => Op::Block,
            _ => Op::Blocking,
        }
    }

    fn detach(&mut self, depth: usize, by: Option<usize>) -> Op {
        let by = by.map(|_| self.actors - 1);
        if self.random.once_in(2) {
            return Op::Detach(self.inner(depth, None));
        }
        let ticks = self.random.pick(&[0, 1, 2, 3, 45]);
        Op::Pipe(ticks, self.inner(depth, by))
    }

    fn timer(&mut self, depth: usize, by: Option<usize>) -> Op {
        match self.random.below(9) {
            kind @ (0..=2 | 8) => {
                let ticks = self.random.pick(&[0, 1, 2, 3, 4, 5, 6, 7, 45]);
                let by = by.map(|_| self.actors - 1);
                let ops = self.inner(depth, by);
                if kind == 8 { Op::WakeAfter(ticks, ops) } else { Op::After(ticks, ops) }
            }
            3 => Op::AfterForever,
            4 | 5 => {
                let clone_panics = !self.drops.is_empty() && self.random.once_in(4);
                Op::Every { period: self.random.pick(&[0, 1, 3]), clone_panics }
            }
            _ => Op::CancelTimer,
        }
    }

    fn attach(&mut self, depth: usize, by: Option<usize>) -> Op {
        if self.random.once_in(5) {
            return Op::Attach { items: Items::Never, ticks: 0, ops: Vec::new() };
        }
        let items = Items::Some(self.random.pick(&[0, 1, 3, 5]));
        let by = by.map(|_| self.actors - 1);
        Op::Attach { items, ticks: self.random.pick(&[0, 0, 1, 3]), ops: self.inner(depth, by) }
    }

    /// What a drop does, once in `times`.
    fn dropped(&mut self, times: usize) -> Vec<DropOp> {
        if self.drops.is_empty() || !self.random.once_in(times) {
            return Vec::new();
        }
        let kind = self.drops[self.random.below(self.drops.len())];
        let topic = self.random.below(self.topics.max(1));
        vec![match kind {
            DropKind::Tell => DropOp::Tell(self.anyone()),
            DropKind::Topic if self.random.once_in(2) => DropOp::Publish(topic),
            DropKind::Topic => DropOp::AskTopic(topic),
            DropKind::Spawn => DropOp::Spawn(self.anyone()),
            DropKind::End => self.ending_drop(topic),
            DropKind::Panic => DropOp::Panic,
        }]
    }
}
