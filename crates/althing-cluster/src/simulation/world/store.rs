//! The store of the candidates: what it does with what it is asked, in time, late, or without a
//! word.

use super::{Clock, Done, Event, TIMING, World};
use crate::authority::{Claimant, Lead, Replaced, patience};
use crate::record::Record;

/// Per thousand: what it does without saying so, does not do, does late, or takes its time for.
const TROUBLE: u64 = 20;
const SLOW: u64 = 30;
const SLOW_MS: u64 = 800;

/// How late something that was given up may still be done.
const LATE_MS: u64 = 20_000;

/// How far its clock jumps.
const JUMP_MS: u64 = 30_000;

#[derive(Clone, Debug)]
pub(super) enum Asked {
    Claim(Claimant),
    Load,
    Replace(u64, Record),
}

pub(super) struct Store {
    record: Record,
    lead: Option<Lead>,
    /// By its clock.
    lead_until_ms: u128,
    pub(super) clock: Clock,
    pub(super) away_until: u64,
}

impl Default for Store {
    fn default() -> Self {
        let clock = Clock { offset_ms: 0, rate: 1_000 };
        Self { record: Record::empty(), lead: None, lead_until_ms: 0, clock, away_until: 0 }
    }
}

impl Store {
    /// Its clock is set forward, or back.
    pub(super) fn jumps(&mut self, now: u64) {
        self.clock.offset_ms = if now.is_multiple_of(2) {
            self.clock.offset_ms + JUMP_MS
        } else {
            self.clock.offset_ms - JUMP_MS / 4
        };
    }

    pub(super) fn ends_faults(&mut self) {
        self.away_until = 0;
    }

    fn claim(&mut self, now: u64, me: Claimant) -> Lead {
        let now = self.clock.read(now).as_millis();
        let term = self.lead.as_ref().map_or(0, |lead| lead.term);
        let is_mine = self.lead.as_ref().is_some_and(|lead| lead.leader == me);
        if !is_mine && now < self.lead_until_ms {
            return self.lead.clone().expect("it has not run out");
        }
        let lead = Lead { leader: me, term: term + u64::from(!is_mine) };
        self.lead = Some(lead.clone());
        self.lead_until_ms = now + TIMING.leads().as_millis();
        lead
    }

    fn does(&mut self, now: u64, asked: Asked) -> Done {
        match asked {
            Asked::Claim(me) => Done::Claimed(Some(self.claim(now, me))),
            Asked::Load => Done::Loaded(Some(self.record.clone())),
            Asked::Replace(expected, _) if expected != self.record.writes => {
                Done::Replaced(Some(Replaced::Refused))
            }
            Asked::Replace(_, record) => {
                self.record = record;
                Done::Replaced(Some(Replaced::Done))
            }
        }
    }
}

impl World {
    pub(super) fn ask_store(&mut self, seat: usize, asked: Asked) {
        let life = self.seats[seat].life;
        let is_cut =
            self.now < self.store.away_until || self.now < self.seats[seat].storeless_until;
        let longest = if self.chance(SLOW) { SLOW_MS } else { 30 };
        let delay = 1 + self.draw(longest);
        let is_trouble = self.faults.leaders_change && self.chance(TROUBLE);
        if !is_cut && !is_trouble {
            return self.after(delay, Event::Stores { seat, life, asked, is_answered: true });
        }
        let unknown = match &asked {
            Asked::Claim(_) => Done::Claimed(None),
            Asked::Load => Done::Loaded(None),
            Asked::Replace(..) => Done::Replaced(None),
        };
        self.note(|| format!("candidate {seat} hears nothing of {}", name(&asked)));
        let when = match self.draw(3) {
            0 => None,
            1 => Some(self.draw(LATE_MS)),
            _ if is_cut => None,
            _ => Some(delay),
        };
        if let Some(delay) = when {
            self.after(delay, Event::Stores { seat, life, asked, is_answered: false });
        }
        let patience = u64::try_from(patience(TIMING.leads()).as_millis()).expect("short");
        self.after(patience, Event::Stored { seat, life, done: unknown });
    }

    pub(super) fn stores(&mut self, seat: usize, life: u64, asked: Asked, is_answered: bool) {
        let named = name(&asked);
        let done = self.store.does(self.now, asked);
        if !named.starts_with("Claim") {
            self.note(|| format!("the store did {named} of candidate {seat}: {}", told(&done)));
        }
        if is_answered {
            let delay = 1 + self.draw(30);
            self.after(delay, Event::Stored { seat, life, done });
        }
    }
}

fn name(asked: &Asked) -> String {
    match asked {
        Asked::Claim(_) => "Claim".to_owned(),
        Asked::Load => "Load".to_owned(),
        Asked::Replace(expected, record) => {
            format!("Replace {expected} by {}, view {}", record.writes, record.view)
        }
    }
}

fn told(done: &Done) -> String {
    match done {
        Done::Loaded(Some(record)) => format!("{}, view {}", record.writes, record.view),
        other => format!("{other:?}"),
    }
}
