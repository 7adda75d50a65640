//! Whether this process is the authority, and what it writes: a step function without clock, store
//! or network.
//!
//! A candidate asks the store for the lead again and again. With the lead it loads the record,
//! stores it once more, and only then decides and answers: from then on no write of another
//! leader, and none of its own that went unanswered, can count any more. One write is under way at
//! a time; what is asked meanwhile waits and is decided together.
//!
//! Nothing that came after the lead had run out is answered, by this process's own clock and
//! counted from before the lead was asked for. Nobody is served from a record that is older than
//! what a member knows. `T` is where an answer goes.

use std::collections::VecDeque;
use std::time::Duration;

use super::ledger::Ledger;
use super::storage::{Claimant, Lead, Replaced};
use crate::lease::Timing;
use crate::protocol::{Answer, Refusal, Request};
use crate::record::Record;

/// Requests that wait for a write; each node has a few of its own.
const WAITING_MAX: usize = 8_192;

/// What is to be done; each of the first three is answered once by `done`.
#[derive(Debug)]
pub(crate) enum Effect<T> {
    Claim {
        me: Claimant,
    },
    Load,
    Replace {
        expected: u64,
        record: Record,
    },
    Answer {
        to: T,
        answer: Answer,
    },
    /// The record has changed, and counts.
    News {
        record: Record,
    },
    /// Whoever is connected is to look for the leader.
    Dismiss,
    /// A member knows a later view than the record that counts here. Either another one leads, or
    /// the store has lost what it had acknowledged.
    Behind {
        known: u64,
        stored: u64,
    },
}

/// What the store has said; `None` where it is unknown what it has done.
#[derive(Debug)]
pub(crate) enum Done {
    Claimed(Option<Lead>),
    Loaded(Option<Record>),
    /// There is a record, and this process cannot read it: it is damaged, or of a later version.
    Unreadable,
    Replaced(Option<Replaced>),
}

/// Who asks, on a connection.
pub(crate) trait Asks {
    /// Whether it may speak for the node of that name.
    fn may_be(&self, node: &str) -> bool;
}

#[cfg(test)]
impl Asks for u32 {
    fn may_be(&self, _node: &str) -> bool {
        true
    }
}

#[cfg(test)]
impl Asks for u64 {
    fn may_be(&self, _node: &str) -> bool {
        true
    }
}

/// One process that may be the authority.
pub(crate) struct Candidate<T> {
    me: Claimant,
    /// What this process was told; a record with members may demand a longer lease.
    wanted: Timing,
    /// The lease of the record that counts.
    timing: Timing,
    lead: Option<Held>,
    /// Who leads as far as this process knows.
    leader: Option<Claimant>,
    /// When the lead was asked for, of the question that is under way.
    claimed: Option<Duration>,
    next_claim: Duration,
    work: Work<T>,
    /// When the record may be loaded, after something has gone wrong.
    load_at: Duration,
    /// `None` unless this process leads and knows what counts.
    ledger: Option<Ledger>,
    waiting: VecDeque<(T, Request)>,
}

struct Held {
    term: u64,
    until: Duration,
}

/// What is under way at the store.
enum Work<T> {
    Nothing,
    Loading,
    /// The first record of a reign.
    TakingOver(Record),
    /// A decision, and who is told once it counts.
    Writing(Record, Vec<(T, Answer)>),
    /// Something whose end nobody waits for any more.
    Void,
}

impl<T: Asks> Candidate<T> {
    pub(crate) fn new(me: Claimant, wanted: Timing, now: Duration) -> Self {
        Self {
            me,
            wanted,
            timing: wanted,
            lead: None,
            leader: None,
            claimed: None,
            next_claim: now,
            work: Work::Nothing,
            load_at: now,
            ledger: None,
            waiting: VecDeque::new(),
        }
    }

    /// Whether it decides at that moment.
    pub(crate) fn is_leading(&self, now: Duration) -> bool {
        self.ledger.is_some() && self.has_lead(now)
    }

    /// Whether the store was asked for the lead and has not answered.
    pub(crate) fn is_claiming(&self) -> bool {
        self.claimed.is_some()
    }

    /// The lease of the members.
    pub(crate) fn timing(&self) -> Timing {
        self.timing
    }

    fn has_lead(&self, now: Duration) -> bool {
        self.lead.as_ref().is_some_and(|held| now < held.until)
    }

    /// Time goes on.
    pub(crate) fn tick(&mut self, now: Duration) -> Vec<Effect<T>> {
        let mut effects = Vec::new();
        if self.claimed.is_none() && now >= self.next_claim {
            self.claimed = Some(now);
            // To look costs the store less than to hold.
            let times = if self.lead.is_some() { 2 } else { 1 };
            self.next_claim = now + self.wanted.look_every() * times;
            effects.push(Effect::Claim { me: self.me.clone() });
        }
        self.go_on(now, &mut effects);
        effects
    }

    /// A request that was read before `now`.
    pub(crate) fn asked(&mut self, now: Duration, to: T, request: Request) -> Vec<Effect<T>> {
        let mut effects = Vec::new();
        if self.waiting.len() < WAITING_MAX {
            self.waiting.push_back((to, request));
        } else {
            effects.push(Effect::Answer { to, answer: Answer::Elsewhere { leader: None } });
        }
        self.go_on(now, &mut effects);
        effects
    }

    /// The store has said something.
    pub(crate) fn done(&mut self, now: Duration, done: Done) -> Vec<Effect<T>> {
        let mut effects = Vec::new();
        match done {
            Done::Claimed(lead) => self.claimed(now, lead, &mut effects),
            Done::Loaded(record) => {
                let is_wanted =
                    matches!(std::mem::replace(&mut self.work, Work::Nothing), Work::Loading);
                if let Some(record) = record.filter(|_| is_wanted && self.has_lead(now)) {
                    let (expected, record) = (record.writes, succeed(record, self.wanted));
                    effects.push(Effect::Replace { expected, record: record.clone() });
                    self.work = Work::TakingOver(record);
                } else {
                    self.rest(now);
                }
            }
            Done::Unreadable => {
                self.work = Work::Nothing;
                // Another one may be able to; with the lead kept here nobody would answer.
                self.step_down(&mut effects);
                self.next_claim = self.next_claim.max(now + self.wanted.leads() * 2);
            }
            Done::Replaced(replaced) => self.replaced(now, replaced, &mut effects),
        }
        self.go_on(now, &mut effects);
        effects
    }

    /// Gives up the lead for good; the store is told by the caller.
    pub(crate) fn resign(&mut self) -> Vec<Effect<T>> {
        let mut effects = Vec::new();
        self.step_down(&mut effects);
        self.next_claim = Duration::MAX;
        effects
    }

    fn claimed(&mut self, now: Duration, lead: Option<Lead>, effects: &mut Vec<Effect<T>>) {
        let sent = self.claimed.take().unwrap_or(now);
        let Some(Lead { leader, term }) = lead else { return };
        let is_mine = leader == self.me && self.next_claim < Duration::MAX;
        self.leader = Some(leader);
        if !is_mine {
            return self.step_down(effects);
        }
        // Somebody else may have led while this one had no lead.
        let goes_on =
            self.has_lead(now) && self.lead.as_ref().is_some_and(|held| held.term == term);
        if !goes_on {
            self.step_down(effects);
        }
        self.lead = Some(Held { term, until: sent + self.wanted.believes() });
    }

    fn replaced(
        &mut self,
        now: Duration,
        replaced: Option<Replaced>,
        effects: &mut Vec<Effect<T>>,
    ) {
        let work = std::mem::replace(&mut self.work, Work::Nothing);
        match (replaced, work) {
            (_, Work::Nothing | Work::Loading | Work::Void) => {}
            (Some(Replaced::Done), Work::TakingOver(record)) if self.has_lead(now) => {
                self.timing = Timing { lease: Duration::from_millis(record.lease_ms) };
                self.ledger = Some(Ledger::new(self.timing, record.clone(), now));
                effects.push(Effect::News { record });
            }
            (Some(Replaced::Done), Work::Writing(record, answers)) if self.has_lead(now) => {
                let answers = answers.into_iter();
                effects.extend(answers.map(|(to, answer)| Effect::Answer { to, answer }));
                effects.push(Effect::News { record });
            }
            (Some(Replaced::Refused), work) => {
                self.dismiss(work, effects);
                // Somebody else writes: is the lead still here?
                self.step_down(effects);
                self.next_claim = self.next_claim.min(now);
            }
            // The lead has run out, or nobody knows what counts: begin with what the store has.
            (_, work) => {
                self.dismiss(work, effects);
                self.forget(effects);
                self.rest(now);
            }
        }
    }

    fn dismiss(&self, work: Work<T>, effects: &mut Vec<Effect<T>>) {
        if let Work::Writing(_, answers) = work {
            effects.extend(answers.into_iter().map(|(to, _)| self.elsewhere(to)));
        }
    }

    fn elsewhere(&self, to: T) -> Effect<T> {
        // An earlier life of this one had the same address, and does not lead either.
        let leader = self.leader.as_ref().filter(|leader| leader.address != self.me.address);
        let leader = leader.map(|leader| leader.address.clone());
        Effect::Answer { to, answer: Answer::Elsewhere { leader } }
    }

    fn turn_away(&mut self, effects: &mut Vec<Effect<T>>) {
        while let Some((to, _)) = self.waiting.pop_front() {
            effects.push(self.elsewhere(to));
        }
    }

    /// A store in trouble is not asked without pause.
    fn rest(&mut self, now: Duration) {
        self.load_at = now + self.wanted.look_every();
    }

    fn step_down(&mut self, effects: &mut Vec<Effect<T>>) {
        self.lead = None;
        self.forget(effects);
    }

    /// What this process knows of the record counts no more.
    fn forget(&mut self, effects: &mut Vec<Effect<T>>) {
        self.work = match std::mem::replace(&mut self.work, Work::Void) {
            Work::Nothing => Work::Nothing,
            work => {
                self.dismiss(work, effects);
                Work::Void
            }
        };
        if self.ledger.take().is_some() {
            effects.push(Effect::Dismiss);
        }
    }

    /// Does what can be done now.
    fn go_on(&mut self, now: Duration, effects: &mut Vec<Effect<T>>) {
        if self.lead.is_some() && !self.has_lead(now) {
            self.step_down(effects);
        }
        if self.lead.is_none() {
            return self.turn_away(effects);
        }
        if !matches!(self.work, Work::Nothing) {
            return;
        }
        let Some(ledger) = &mut self.ledger else {
            if now >= self.load_at {
                self.work = Work::Loading;
                effects.push(Effect::Load);
            }
            return;
        };
        let before = ledger.record().view;
        let known = |(_, request): &(T, Request)| match request {
            Request::Renew { incarnation, view, .. } => {
                ledger.record().member(*incarnation).map_or(0, |_| *view)
            }
            _ => 0,
        };
        let known = self.waiting.iter().map(known).max().unwrap_or(0);
        if known > before {
            effects.push(Effect::Behind { known, stored: before });
            self.rest(now);
            self.turn_away(effects);
            return self.forget(effects);
        }
        let mut answers = Vec::new();
        for (to, request) in self.waiting.drain(..) {
            let name = request.speaks_for(ledger.record());
            let answer = match name.is_none_or(|name| to.may_be(name)) {
                true => ledger.request(now, request),
                false => Answer::Refused { why: Refusal::Certificate },
            };
            answers.push((to, answer));
        }
        ledger.tick(now);
        if ledger.record().view == before {
            effects.extend(answers.into_iter().map(|(to, answer)| Effect::Answer { to, answer }));
            return;
        }
        let (expected, record) = ledger.store();
        effects.push(Effect::Replace { expected, record: record.clone() });
        self.work = Work::Writing(record, answers);
    }
}

/// The first record of a reign: as it was, stored once more. The lease does not become shorter than
/// members believe.
fn succeed(record: Record, wanted: Timing) -> Record {
    let wanted = u64::try_from(wanted.lease.as_millis()).unwrap_or(u64::MAX);
    let given = if record.members.is_empty() { 0 } else { record.lease_ms };
    Record { writes: record.writes + 1, lease_ms: wanted.max(given), ..record }
}

#[cfg(test)]
mod tests;
