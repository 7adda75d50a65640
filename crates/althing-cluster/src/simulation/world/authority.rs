//! The candidates, and the conversation of each node with them.

use super::store::Asked;
use super::{Clock, Cut, Done, Event, Node, TIMING, World};
use crate::authority::{Candidate, Claimant, Effect};
use crate::protocol::{Answer, Refusal, Request};
use crate::record::{Member, Stage};
use crate::simulation::node::SEATS;

/// Per thousand, of requests and answers alike.
const LOST: u64 = 20;
const DOUBLED: u64 = 20;

/// Answers that a process writes late, because it hung when it had decided.
const WRITTEN_LATE: u64 = 3;

/// How late a request may come for the second time, and an answer: longer than a lease.
const LATE_MS: u64 = 20_000;

/// How long a node waits for a candidate before it asks another one.
const SILENCE_MS: u64 = 900;

/// A process that may be the authority.
pub(super) struct Seat {
    candidate: Option<Candidate<u64>>,
    pub(super) life: u64,
    clock: Clock,
    pub(super) paused_until: u64,
    /// Until when it does not reach the store.
    pub(super) storeless_until: u64,
}

impl Seat {
    pub(super) fn dies(&mut self) {
        self.candidate = None;
        self.life += 1;
        self.paused_until = 0;
    }
}

impl World {
    pub(super) fn begin(&mut self) {
        for seat in 0..SEATS {
            let clock = Clock { offset_ms: self.draw(1_000_000), rate: 995 + self.draw(10) };
            let (paused_until, storeless_until) = (0, 0);
            let life = 0;
            self.seats.push(Seat { candidate: None, life, clock, paused_until, storeless_until });
            let delay = self.draw(500);
            self.after(delay, Event::Sits { seat });
            self.after(delay, Event::Tick { seat });
        }
        self.store.clock = Clock { offset_ms: 5_000_000, rate: 995 + self.draw(10) };
    }

    pub(super) fn leads(&self, seat: usize) -> bool {
        let seat = &self.seats[seat];
        let now = seat.clock.read(self.now);
        seat.candidate.as_ref().is_some_and(|candidate| candidate.is_leading(now))
    }

    /// A candidate starts, in a new life.
    pub(super) fn sit(&mut self, at: usize) {
        let seat = &mut self.seats[at];
        if seat.candidate.is_none() {
            seat.life += 1;
            let id = (at as u64 + 1) << 32 | seat.life;
            let me = Claimant { id, address: at.to_string() };
            seat.candidate = Some(Candidate::new(me, TIMING, seat.clock.read(self.now)));
        }
    }

    pub(super) fn tick(&mut self, seat: usize) {
        let now = self.seats[seat].clock.read(self.now);
        let ticked = self.seats[seat].candidate.as_mut().map(|candidate| candidate.tick(now));
        self.obey(seat, ticked.unwrap_or_default());
        self.after(100, Event::Tick { seat });
    }

    pub(super) fn asked(&mut self, seat: usize, request: Request, from: u64) {
        let now = self.seats[seat].clock.read(self.now);
        let Some(candidate) = &mut self.seats[seat].candidate else { return };
        let effects = candidate.asked(now, from, request);
        self.obey(seat, effects);
    }

    pub(super) fn stored(&mut self, seat: usize, life: u64, done: Done) {
        let now = self.seats[seat].clock.read(self.now);
        let of_this_life = Some(&mut self.seats[seat]).filter(|seat| seat.life == life);
        let candidate = of_this_life.and_then(|seat| seat.candidate.as_mut());
        let effects = candidate.map(|candidate| candidate.done(now, done));
        self.obey(seat, effects.unwrap_or_default());
    }

    fn obey(&mut self, seat: usize, effects: Vec<Effect<u64>>) {
        for effect in effects {
            match effect {
                Effect::Claim { me } => self.ask_store(seat, Asked::Claim(me)),
                Effect::Load => self.ask_store(seat, Asked::Load),
                Effect::Replace { expected, record } => {
                    self.ask_store(seat, Asked::Replace(expected, record));
                }
                Effect::Answer { to, answer } => self.tell(to, seat, answer),
                Effect::News { record } => {
                    self.note(|| format!("candidate {seat} tells view {}", record.view));
                    let asks_it = |node: &&Node| node.asks == seat;
                    let told: Vec<u64> =
                        self.nodes.values().filter(asks_it).map(|node| node.me).collect();
                    for node in told {
                        self.tell(node, seat, Answer::News { record: record.clone() });
                    }
                }
                Effect::Behind { known, stored } => {
                    assert!(self.faults.clocks_jump, "view {stored} counts, {known} was told");
                    self.note(|| format!("candidate {seat} has {stored}, members know {known}"));
                }
                Effect::Dismiss => self.note(|| format!("candidate {seat} leads no more")),
            }
        }
    }

    fn is_cut(&self, node: u64, seat: usize, which: Cut) -> bool {
        let is_cut = |(until, cut): &(u64, Cut)| {
            *until > self.now && (*cut == which || *cut == Cut::Everything)
        };
        let unreached = self.unreached.get(&(node, seat));
        self.cut_off.get(&node).is_some_and(is_cut)
            || unreached.is_some_and(|until| *until > self.now)
    }

    fn tell(&mut self, node: u64, seat: usize, answer: Answer) {
        if !self.is_cut(node, seat, Cut::Answers) && !self.chance(LOST) {
            let longest = if self.chance(WRITTEN_LATE) { LATE_MS } else { 40 };
            let delay = 1 + self.draw(longest);
            self.after(delay, Event::Told { node, seat, answer });
        }
    }

    fn ask(&mut self, from: u64, request: Request) {
        let seat = self.nodes[&from].asks;
        if self.is_cut(from, seat, Cut::Requests) || self.chance(LOST) {
            return;
        }
        // Now and then it arrives twice, the second time late.
        if self.chance(DOUBLED) {
            let delay = self.draw(LATE_MS);
            self.after(delay, Event::Asked { seat, request: request.clone(), from });
        }
        let delay = 1 + self.draw(40);
        self.after(delay, Event::Asked { seat, request, from });
    }

    /// Another candidate is asked when the one that was is silent, or leads to another.
    fn look_elsewhere(&mut self, me: u64, leader: Option<Option<String>>) {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(&me) else { return };
        let clock = node.clock.read(now);
        match leader {
            Some(leader) => node.seeds.elsewhere(clock, leader),
            None => node.seeds.silent(&node.asks.to_string(), clock + TIMING.renew_every()),
        }
        let next = node.seeds.next().expect("some are known");
        (node.asks, node.heard) = (next.parse().expect("a number"), now);
        let asks = node.asks;
        self.note(|| format!("{me} asks candidate {asks} from now on"));
    }

    pub(super) fn renew(&mut self, me: u64) {
        let now = self.now;
        if self.nodes.get(&me).is_some_and(|node| now > node.heard + SILENCE_MS) {
            self.look_elsewhere(me, None);
        }
        let Some(node) = self.nodes.get_mut(&me) else { return };
        let clock = node.clock.read(now);
        let view = node.router.record().view;
        let mut requests = Vec::new();
        if node.router.record().member(me).is_none() {
            let (name, address) = (node.name.clone(), String::new());
            let stage = if node.is_guest() { Stage::Guest } else { Stage::Active };
            let (incarnation, labels) = (me, node.labels());
            let member =
                Member { incarnation, name, address, stage, since: 0, frame_len_max: 0, labels };
            requests.push(Request::Join { member, known: node.known });
        } else {
            let counter = node.lease.renew(clock);
            requests.push(Request::Renew { incarnation: me, counter, view, labels: None });
            if node.leaves || node.is_drained {
                requests.push(Request::Leave { incarnation: me });
            }
            if node.says_goodbye {
                requests.push(Request::Goodbye { incarnation: me });
            }
            let record = node.router.record().clone();
            node.released.retain(|bucket, epoch| {
                let holding = record.holding(*bucket);
                holding.owner == Some(me) && holding.epoch == *epoch
            });
            node.pinned.retain(|bucket, to| {
                record.member(*to).is_some() && record.holding(*bucket).pinned != Some(*to)
            });
            if !node.pinned.is_empty() {
                let (buckets, to) = node.pinned.iter().map(|(b, to)| (*b, *to)).unzip();
                requests.push(Request::Pin { incarnation: me, buckets, to });
            }
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

    pub(super) fn told(&mut self, me: u64, seat: usize, answer: Answer) {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(&me) else { return };
        if node.asks == seat {
            node.heard = now;
        }
        let was_member = node.router.record().member(me).is_some();
        let (record, renewed) = match answer {
            Answer::Joined { record, .. } => (Some(record), None),
            Answer::Renewed { counter, record } => (record, Some(counter)),
            Answer::News { record } => (Some(record), None),
            Answer::Refused { why: Refusal::Evicted } if was_member => return self.ended(me),
            Answer::Outdated { view } => {
                node.known = node.known.max(view);
                (None, None)
            }
            Answer::Elsewhere { leader } if node.asks == seat => {
                return self.look_elsewhere(me, Some(leader));
            }
            Answer::Refused { .. } | Answer::Done | Answer::Elsewhere { .. } => (None, None),
        };
        if let Some(record) = record.filter(|record| record.view > node.router.record().view) {
            match record.member(me).map(|member| member.since) {
                Some(since) if !was_member || since == node.since => {
                    node.since = since;
                    let holdings: Vec<_> = self
                        .buckets
                        .iter()
                        .map(|bucket| (*bucket, record.holding(*bucket)))
                        .collect();
                    for (bucket, holding) in &holdings {
                        self.checks.holds(*bucket, *holding);
                    }
                    node.follow(record);
                    self.note(|| format!("{me} knows {holdings:?}"));
                }
                _ if was_member => return self.ended(me),
                _ => {}
            }
        }
        if let Some(counter) = renewed
            && let Some(node) = self.nodes.get_mut(&me)
        {
            node.lease.renewed(counter);
        }
        self.schedule(me);
    }

    /// A node hears that it is no member any more.
    fn ended(&mut self, me: u64) {
        if self.nodes.get(&me).is_some_and(|node| node.says_goodbye) {
            self.nodes.remove(&me);
        } else {
            self.lose(me);
        }
    }
}
