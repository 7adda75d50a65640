//! The authority, its disk, and the conversation of each node with it.

use std::time::Duration;

use super::{Cut, Event, TIMING, World};
use crate::authority::Ledger;
use crate::protocol::{Answer, Refusal, Request};
use crate::record::{Member, Stage};

/// Per thousand, of requests and answers alike.
const LOST: u64 = 20;
const DOUBLED: u64 = 20;

/// How late a request may come for the second time: longer than a lease.
const LATE_MS: u64 = 20_000;

impl World {
    /// Decides, stores, and tells the news to everybody.
    fn decide<T>(&mut self, decide: impl FnOnce(&mut Ledger, Duration) -> T) -> T {
        let now = self.authority_clock.read(self.now);
        let disk = &self.disk;
        let ledger = self.authority.get_or_insert_with(|| Ledger::new(TIMING, disk.clone(), now));
        let decision = decide(ledger, now);
        if ledger.record().view != self.disk.view {
            self.disk = ledger.record().clone();
            for node in self.nodes.keys().copied().collect::<Vec<_>>() {
                let record = self.disk.clone();
                self.tell(node, Answer::News { record });
            }
        }
        decision
    }

    pub(super) fn tick(&mut self) {
        self.decide(|ledger, now| ledger.tick(now));
        self.after(300, Event::Tick);
    }

    fn is_cut(&self, node: u64, which: Cut) -> bool {
        let is_cut = |(until, cut): &(u64, Cut)| {
            *until > self.now && (*cut == which || *cut == Cut::Everything)
        };
        self.cut_off.get(&node).is_some_and(is_cut)
    }

    fn tell(&mut self, node: u64, answer: Answer) {
        if !self.is_cut(node, Cut::Answers) && !self.chance(LOST) {
            let delay = 1 + self.draw(40);
            self.after(delay, Event::Told { node, answer });
        }
    }

    pub(super) fn asked(&mut self, request: Request, from: u64) {
        let answer = self.decide(|ledger, now| ledger.request(now, request));
        self.tell(from, answer);
    }

    fn ask(&mut self, from: u64, request: Request) {
        if self.is_cut(from, Cut::Requests) || self.chance(LOST) {
            return;
        }
        // Now and then it arrives twice, the second time late.
        if self.chance(DOUBLED) {
            let delay = self.draw(LATE_MS);
            self.after(delay, Event::Asked { request: request.clone(), from });
        }
        let delay = 1 + self.draw(40);
        self.after(delay, Event::Asked { request, from });
    }

    pub(super) fn renew(&mut self, me: u64) {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(&me) else { return };
        let clock = node.clock.read(now);
        let view = node.router.record().view;
        let mut requests = Vec::new();
        if node.router.record().member(me).is_none() {
            let (name, address) = (node.name.clone(), String::new());
            let stage = Stage::Active;
            let member =
                Member { incarnation: me, name, address, stage, since: 0, frame_len_max: 0 };
            requests.push(Request::Join { member, known: node.known });
        } else {
            let counter = node.lease.renew(clock);
            requests.push(Request::Renew { incarnation: me, counter, view });
            if node.leaves {
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

    pub(super) fn told(&mut self, me: u64, answer: Answer) {
        let Some(node) = self.nodes.get_mut(&me) else { return };
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
            Answer::Refused { .. } | Answer::Done => (None, None),
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
