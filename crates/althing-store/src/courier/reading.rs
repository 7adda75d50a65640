//! How far the store has been read, and what turns leave while it is: pure, without clock or input.
//!
//! Everything up to the edge is in memory. What a turn leaves before the edge is taken at once; what
//! it leaves behind the edge is in the store, and the page that gets there finds it. A page that is
//! on its way may have been read before a commit or after it, so what turns leave for its part of
//! the store is kept beside it, and it says nothing about names that have changed meanwhile.

use std::collections::HashSet;
use std::time::Duration;

use althing::{ActorId, Timestamp};

use crate::delivery::{Delivery, Mark, Posting};

/// How far ahead deliveries are in memory.
const AHEAD: Duration = Duration::from_secs(90);
/// Pause between two looks at the store, for what others have left there: less than half of what is
/// ahead, so that nothing falls between them.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// The same after actors have come here or gone: what is due for those that have come is in the
/// store only. While many move, each look reads what is due on all nodes.
const LOOK_AGAIN: Duration = Duration::from_secs(3);
/// Deliveries in the first page.
const PAGE_FIRST: usize = 1_000;
/// Each page is twice the one before, up to this: one that is on its way holds up the writes of
/// others, and a small one costs as long a wait as a large one.
const PAGE_MAX: usize = 16_000;
/// Names that turns may change while a page is on its way, at most; beyond, it is read once more. A
/// page waits behind a transaction or two, and each may leave tens of thousands.
const MEANWHILE_MAX: usize = 262_144;
/// Pause after the store has failed.
pub(super) const STORE_PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Reading {
    in_memory_max: usize,
    step: Step,
    /// When the last look began.
    begun: Timestamp,
    /// Whether actors have come or gone since.
    is_wanted_soon: bool,
    edge: Edge,
    /// Whether something was left before the edge that is only in the store.
    has_missed: bool,
    page_max: usize,
    /// What was left behind the edge while a page was on its way.
    meanwhile: Vec<Delivery>,
    changed_meanwhile: HashSet<(ActorId, String)>,
    is_crowded: bool,
}

/// Up to where everything is in memory.
enum Edge {
    Nowhere,
    At(Timestamp),
    Behind(Mark),
}

enum Step {
    /// The next look is at that moment.
    Done(Timestamp),
    /// A page is on its way.
    Page(Wanted),
    /// To be read on when there is room.
    Full(Look),
}

/// One reading of the store, from its first page to the last.
#[derive(Clone)]
struct Look {
    begun: Timestamp,
    until: Timestamp,
    after: Option<Mark>,
}

struct Wanted {
    look: Look,
    limit: usize,
}

/// What to ask of the store.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PageWanted {
    pub(super) until: Timestamp,
    pub(super) after: Option<Mark>,
    pub(super) limit: usize,
}

impl Reading {
    pub(super) fn new(in_memory_max: usize) -> Self {
        Self {
            in_memory_max,
            step: Step::Done(Timestamp(0)),
            begun: Timestamp(0),
            is_wanted_soon: false,
            edge: Edge::Nowhere,
            has_missed: false,
            page_max: PAGE_FIRST,
            meanwhile: Vec::new(),
            changed_meanwhile: HashSet::new(),
            is_crowded: false,
        }
    }

    /// When the store is looked at next, if that is known.
    pub(super) fn next_look(&self) -> Option<Timestamp> {
        match self.step {
            Step::Done(at) => Some(at),
            Step::Page(_) | Step::Full(_) => None,
        }
    }

    pub(super) fn is_page_on_its_way(&self) -> bool {
        matches!(self.step, Step::Page(_))
    }

    /// Whether the store is read on once there is room.
    pub(super) fn is_full(&self) -> bool {
        matches!(self.step, Step::Full(_))
    }

    /// Something was left that is only in the store: all is read again, and nothing left from here
    /// on is taken before that, because it would overtake.
    pub(super) fn missed(&mut self) {
        self.has_missed = true;
        self.edge = Edge::Nowhere;
    }

    /// Actors have come here or gone: the store is looked at soon.
    pub(super) fn look_soon(&mut self) {
        self.is_wanted_soon = true;
        if let Step::Done(at) = &mut self.step {
            *at = (*at).min(later(self.begun, LOOK_AGAIN));
        }
    }

    /// What a turn has left; returned if it is to be taken now.
    pub(super) fn posted(&mut self, owner: ActorId, posting: Posting) -> Option<Delivery> {
        let page = match &self.step {
            Step::Page(wanted) => Some(wanted.look.until),
            Step::Done(_) | Step::Full(_) => None,
        };
        self.is_crowded |= page.is_some() && self.changed_meanwhile.len() >= MEANWHILE_MAX;
        let is_noted = page.is_some() && !self.is_crowded;
        let (name, delivery) = match posting {
            Posting::Put(delivery) => (delivery.name.clone(), Some(delivery)),
            Posting::Cancel(name) => (name, None),
        };
        if is_noted {
            self.changed_meanwhile.insert((owner, name));
        }
        let delivery = delivery?;
        if self.edge.has(&delivery) {
            return Some(delivery);
        }
        if is_noted && page.is_some_and(|until| delivery.due <= until) {
            self.meanwhile.push(delivery);
        }
        None
    }

    /// The page to read now, with so many in memory. The store is asked for it before anything else
    /// is said here.
    pub(super) fn next_page(&mut self, now: Timestamp, in_memory: usize) -> Option<PageWanted> {
        let look = match &self.step {
            Step::Done(at) if *at <= now || self.has_missed => {
                Look { begun: now, until: later(now, AHEAD), after: None }
            }
            Step::Full(_) if self.has_missed && in_memory <= self.in_memory_max / 2 => {
                Look { begun: now, until: later(now, AHEAD), after: None }
            }
            Step::Full(look) if in_memory <= self.in_memory_max / 2 => look.clone(),
            Step::Done(_) | Step::Page(_) | Step::Full(_) => return None,
        };
        Some(self.want(look))
    }

    fn want(&mut self, look: Look) -> PageWanted {
        if look.after.is_none() {
            self.has_missed = false;
            (self.begun, self.is_wanted_soon) = (look.begun, false);
        }
        let limit = self.page_max.min(self.in_memory_max).max(1);
        let wanted = PageWanted { until: look.until, after: look.after.clone(), limit };
        self.step = Step::Page(Wanted { look, limit });
        wanted
    }

    /// Takes a page; returns what of it, and of what was left meanwhile, is to be taken now, in
    /// this order. `is_known` says what the page has from before it was taken.
    pub(super) fn page_came(
        &mut self,
        found: Vec<Delivery>,
        is_known: impl Fn(&Delivery) -> bool,
    ) -> Vec<Delivery> {
        let Some(mut wanted) = self.end_page() else { return Vec::new() };
        let is_last = found.len() < wanted.limit;
        let last = found.last().map(Delivery::mark);
        let changed = std::mem::take(&mut self.changed_meanwhile);
        let meanwhile = std::mem::take(&mut self.meanwhile);
        if std::mem::take(&mut self.is_crowded) || self.has_missed {
            // Nobody knows what of it is old, and what was left meanwhile is in the store: it is
            // read once more.
            self.step = Step::Full(wanted.look);
            return Vec::new();
        }
        let is_of_now = |delivery: &Delivery| {
            let is_changed = !changed.is_empty()
                && changed.contains(&(delivery.owner.clone(), delivery.name.clone()));
            !is_changed && !is_known(delivery)
        };
        let mut taken: Vec<_> = found.into_iter().filter(is_of_now).collect();
        self.edge.advance(match &last {
            Some(last) if !is_last => Edge::Behind(last.clone()),
            _ => Edge::At(wanted.look.until),
        });
        taken.extend(meanwhile.into_iter().filter(|delivery| self.edge.has(delivery)));
        if is_last {
            self.page_max = PAGE_FIRST;
            let pause = if self.is_wanted_soon { LOOK_AGAIN } else { LOOK_EVERY };
            self.step = Step::Done(later(wanted.look.begun, pause));
        } else {
            self.page_max = (self.page_max * 2).min(PAGE_MAX);
            wanted.look.after = last;
            self.step = Step::Full(wanted.look);
        }
        taken
    }

    /// The page after the one that came, while there is room; between two readings `next_page`
    /// waits for more of it.
    pub(super) fn read_on(&mut self, in_memory: usize) -> Option<PageWanted> {
        match &self.step {
            Step::Full(look) if !self.has_missed && in_memory < self.in_memory_max => {
                let look = look.clone();
                Some(self.want(look))
            }
            _ => None,
        }
    }

    /// The store has failed: nothing of what was left meanwhile is lost, as all is read again.
    pub(super) fn page_failed(&mut self, now: Timestamp) {
        if self.end_page().is_some() {
            self.meanwhile.clear();
            self.changed_meanwhile.clear();
            self.is_crowded = false;
            self.edge = Edge::Nowhere;
            self.step = Step::Done(later(now, STORE_PAUSE));
        }
    }

    fn end_page(&mut self) -> Option<Wanted> {
        match std::mem::replace(&mut self.step, Step::Done(Timestamp(0))) {
            Step::Page(wanted) => Some(wanted),
            other => {
                self.step = other;
                None
            }
        }
    }
}

impl Edge {
    /// Whether that is before the edge, so that memory has what there is of it.
    fn has(&self, delivery: &Delivery) -> bool {
        match self {
            Self::Nowhere => false,
            Self::At(at) => delivery.due <= *at,
            Self::Behind(Mark { due, owner, name }) => {
                (&delivery.due, &delivery.owner, &delivery.name) <= (due, owner, name)
            }
        }
    }

    /// A look that begins anew does not take back what an earlier one has read.
    fn advance(&mut self, to: Self) {
        let is_further = match (&*self, &to) {
            (Self::Nowhere, _) => true,
            (_, Self::Nowhere) => false,
            (Self::At(before), Self::At(after)) => after > before,
            (Self::At(before), Self::Behind(after)) => after.due > *before,
            (Self::Behind(before), Self::At(after)) => *after >= before.due,
            (Self::Behind(before), Self::Behind(after)) => after > before,
        };
        if is_further {
            *self = to;
        }
    }
}

pub(super) fn later(now: Timestamp, by: Duration) -> Timestamp {
    Timestamp(now.0.saturating_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests;
