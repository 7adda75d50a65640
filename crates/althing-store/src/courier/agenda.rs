//! What is to be sent in the next minutes, and what is on its way: pure, without clock or input.
//!
//! Letters of one actor to another are in one lane, of which only the first is sent: the next one
//! follows when it was taken. Lanes of an actor that is held do not go on. Reminders are sent
//! whenever they are due.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use althing::remote::Letter;
use althing::{ActorId, Timestamp};

use super::cron;
use crate::delivery::{Delivery, Mark, Settled};
use crate::post::reminder_name;
use crate::request::Reminding;

/// Pause after the first attempt that failed; it doubles with each that follows.
const RETRY_FIRST: Duration = Duration::from_millis(100);
/// The longest pause.
const RETRY_MAX: Duration = Duration::from_secs(60);

/// An owner and the name of one of its deliveries.
type Name = (ActorId, String);

/// Deliveries in memory.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    entries: HashMap<Name, Entry>,
    /// When to send the reminders that are not on their way.
    reminders: BTreeSet<(Timestamp, Name)>,
    /// When to send the first letters of lanes, those on their way left out.
    letters: BTreeSet<(Timestamp, Name)>,
    /// Who has letters, or is held.
    owners: HashMap<ActorId, Owner>,
    on_the_way: usize,
    /// Reminders of which an attempt has failed, those on their way again included.
    failed_reminders: usize,
}

#[derive(Debug, Default)]
struct Owner {
    /// Letters by target, the first of them first.
    lanes: HashMap<ActorId, Lane>,
    /// Whether none of them is sent that is not on its way.
    is_held: bool,
}

#[derive(Debug, Default)]
struct Lane {
    names: BTreeSet<String>,
    /// The one that is sent, or will be next.
    ahead: Option<String>,
}

#[derive(Debug)]
struct Entry {
    delivery: Delivery,
    attempts: u32,
    /// `None` while it is on its way, or behind another one.
    next_try: Option<Timestamp>,
    is_on_the_way: bool,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    /// What is sent, as it was when it was sent.
    pub(super) mark: Mark,
    pub(super) letter: Letter,
}

impl Agenda {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds a delivery, or puts it in the place of the one of its name. One that is known as it is
    /// changes nothing.
    pub(super) fn put(&mut self, delivery: Delivery) {
        let name = (delivery.owner.clone(), delivery.name.clone());
        if let Some(known) = self.entries.get(&name) {
            if known.delivery == delivery {
                return;
            }
            self.remove(&name);
        }
        let due = delivery.due;
        if reminder_name(&delivery.name).is_none() {
            let owner = self.owners.entry(delivery.owner.clone()).or_default();
            let lane = owner.lanes.entry(delivery.letter.to.clone()).or_default();
            lane.names.insert(delivery.name.clone());
        }
        let to = delivery.letter.to.clone();
        let entry = Entry { delivery, attempts: 0, next_try: None, is_on_the_way: false };
        self.entries.insert(name.clone(), entry);
        if reminder_name(&name.1).is_some() {
            self.try_at(name, due);
        } else {
            self.advance(&name.0, &to);
        }
    }

    pub(super) fn cancel(&mut self, owner: ActorId, name: String) {
        self.remove(&(owner, name));
    }

    /// Has no further letter of that owner sent: older ones may still come.
    pub(super) fn hold(&mut self, owner: ActorId) {
        self.owners.entry(owner).or_default().is_held = true;
    }

    /// Has the letters of that owner go on.
    pub(super) fn free(&mut self, owner: &ActorId) {
        let Some(held) = self.owners.get_mut(owner) else { return };
        held.is_held = false;
        let targets: Vec<_> = held.lanes.keys().cloned().collect();
        if targets.is_empty() {
            self.owners.remove(owner);
        }
        targets.iter().for_each(|to| self.advance(owner, to));
    }

    /// Has the letters of all owners go on.
    pub(super) fn free_all(&mut self) {
        let held = self.owners.iter().filter(|(_, owner)| owner.is_held);
        let held: Vec<_> = held.map(|(id, _)| id.clone()).collect();
        held.iter().for_each(|owner| self.free(owner));
    }

    /// Forgets the letters of that owner that are not on their way. All of them: if it comes back,
    /// none goes before one that was forgotten.
    pub(super) fn forget_letters(&mut self, owner: &ActorId) {
        let Some(Owner { lanes, .. }) = self.owners.get(owner) else { return };
        let names = lanes.values().flat_map(|lane| &lane.names);
        let names: Vec<Name> = names.map(|name| (owner.clone(), name.clone())).collect();
        let is_waiting = |name: &&Name| self.entries.get(name).is_some_and(|it| !it.is_on_the_way);
        let waiting: Vec<_> = names.iter().filter(is_waiting).collect();
        waiting.into_iter().for_each(|name| self.remove(name));
    }

    /// Makes room for what is behind reminders that fail: forgets those, if they are many. The store has them, and
    /// they are tried again once it is read anew.
    pub(super) fn forget_failed_reminders(&mut self, many: usize) {
        if self.failed_reminders < many.max(1) {
            return;
        }
        let failed = self.entries.iter().filter(|(name, entry)| {
            entry.attempts > 0 && !entry.is_on_the_way && reminder_name(&name.1).is_some()
        });
        let failed: Vec<Name> = failed.map(|(name, _)| name.clone()).collect();
        failed.iter().for_each(|name| self.remove(name));
    }

    /// Forgets all that is not on its way.
    pub(super) fn forget_waiting(&mut self) {
        let waiting = self.entries.iter().filter(|(_, entry)| !entry.is_on_the_way);
        let waiting: Vec<Name> = waiting.map(|(name, _)| name.clone()).collect();
        waiting.iter().for_each(|name| self.remove(name));
    }

    pub(super) fn on_the_way(&self) -> usize {
        self.on_the_way
    }

    /// When a letter is to be sent next.
    pub(super) fn next_letter(&self) -> Option<Timestamp> {
        self.letters.first().map(|(at, _)| *at)
    }

    /// When a reminder is to be sent next.
    pub(super) fn next_reminder(&self) -> Option<Timestamp> {
        self.reminders.first().map(|(at, _)| *at)
    }

    /// What is to be sent now, so that `at_once` are on their way at most; of reminders only what
    /// was to be sent until then.
    pub(super) fn take(
        &mut self,
        now: Timestamp,
        reminders_until: Timestamp,
        at_once: usize,
    ) -> Vec<Attempt> {
        let mut attempts = Vec::new();
        while self.on_the_way < at_once {
            let letter = self.next_letter().filter(|at| *at <= now);
            let reminder = self.next_reminder().filter(|at| *at <= reminders_until.min(now));
            let queue = match (letter, reminder) {
                (None, None) => break,
                (letter, Some(at)) if letter.is_none_or(|letter| at < letter) => {
                    &mut self.reminders
                }
                _ => &mut self.letters,
            };
            let Some((_, name)) = queue.pop_first() else { break };
            let Some(entry) = self.entries.get_mut(&name) else { continue };
            (entry.next_try, entry.is_on_the_way) = (None, true);
            self.on_the_way += 1;
            attempts.push(entry.attempt());
        }
        attempts
    }

    /// Takes down that an attempt was answered; returns what to tell the store.
    pub(super) fn taken(&mut self, mark: Mark, now: Timestamp) -> Settled {
        self.on_the_way -= 1;
        let name = (mark.owner.clone(), mark.name.clone());
        // Its owner may have replaced it meanwhile.
        let entry = self.entries.get(&name).filter(|entry| entry.delivery.due == mark.due);
        let again = entry.filter(|entry| entry.is_on_the_way).map(|it| it.delivery.clone());
        let Some(mut delivery) = again else { return Settled { mark, next: None } };
        let next = delivery.cron.as_ref().and_then(|cron| cron::next_after(cron, now).ok());
        self.remove(&name);
        if let Some(next) = next {
            delivery.due = next;
            self.put(delivery);
        }
        Settled { mark, next }
    }

    /// Takes down that an attempt failed: it is tried again after a pause.
    pub(super) fn failed(&mut self, mark: &Mark, now: Timestamp) {
        self.on_the_way -= 1;
        let name = (mark.owner.clone(), mark.name.clone());
        let Some(entry) = self.entries.get_mut(&name) else { return };
        if entry.delivery.due != mark.due || !entry.is_on_the_way {
            return;
        }
        entry.is_on_the_way = false;
        let pause = (RETRY_FIRST * 2_u32.pow(entry.attempts.min(16))).min(RETRY_MAX);
        if entry.attempts == 0 && reminder_name(&name.1).is_some() {
            self.failed_reminders += 1;
        }
        entry.attempts += 1;
        let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        self.try_at(name, Timestamp(now.0.saturating_add(pause_ms)));
    }

    /// Forgets an attempt, and all letters behind it: its actor lives elsewhere now.
    pub(super) fn let_go(&mut self, mark: &Mark) {
        self.on_the_way -= 1;
        self.forget_letters(&mark.owner);
        self.forget_sent(mark);
    }

    /// Forgets an attempt, and has those behind it go on: it cannot be sent as things are.
    pub(super) fn set_aside(&mut self, mark: &Mark) {
        self.on_the_way -= 1;
        self.forget_sent(mark);
    }

    /// Forgets what is on its way, and not what its owner has put in its place meanwhile.
    fn forget_sent(&mut self, mark: &Mark) {
        let name = (mark.owner.clone(), mark.name.clone());
        let is_it = |entry: &Entry| entry.is_on_the_way && entry.delivery.due == mark.due;
        if self.entries.get(&name).is_some_and(is_it) {
            self.remove(&name);
        }
    }

    fn try_at(&mut self, name: Name, at: Timestamp) {
        if let Some(entry) = self.entries.get_mut(&name) {
            entry.next_try = Some(at);
            let is_reminder = reminder_name(&name.1).is_some();
            let queue = if is_reminder { &mut self.reminders } else { &mut self.letters };
            queue.insert((at, name));
        }
    }

    /// Has the first letter of a lane be sent.
    fn advance(&mut self, owner: &ActorId, to: &ActorId) {
        let owned = self.owners.get_mut(owner).filter(|owner| !owner.is_held);
        let Some(Lane { names, ahead }) = owned.and_then(|it| it.lanes.get_mut(to)) else { return };
        if ahead.is_some() {
            return;
        }
        *ahead = names.first().cloned();
        let Some(first) = names.first().map(|name| (owner.clone(), name.clone())) else { return };
        if let Some(due) = self.entries.get(&first).map(|entry| entry.delivery.due) {
            self.try_at(first, due);
        }
    }

    fn remove(&mut self, name: &Name) {
        let Some(entry) = self.entries.remove(name) else { return };
        if let Some(at) = entry.next_try {
            let place = (at, name.clone());
            _ = self.reminders.remove(&place) || self.letters.remove(&place);
        }
        if reminder_name(&name.1).is_none() {
            let to = &entry.delivery.letter.to;
            self.leave_lane(&name.0, to, &name.1);
            self.advance(&name.0, to);
        } else if entry.attempts > 0 {
            self.failed_reminders -= 1;
        }
    }

    fn leave_lane(&mut self, owner: &ActorId, to: &ActorId, name: &str) {
        let Some(owned) = self.owners.get_mut(owner) else { return };
        let Some(lane) = owned.lanes.get_mut(to) else { return };
        lane.names.remove(name);
        lane.ahead.take_if(|ahead| ahead == name);
        if lane.names.is_empty() {
            owned.lanes.remove(to);
        }
        if owned.lanes.is_empty() && !owned.is_held {
            self.owners.remove(owner);
        }
    }
}

impl Entry {
    fn attempt(&self) -> Attempt {
        let Delivery { owner, name, due, letter, .. } = &self.delivery;
        let mut letter = letter.clone();
        // Each time is another request.
        if let Some(name) = reminder_name(name) {
            letter.body = Reminding::of(owner, name, *due).bytes();
        }
        Attempt { mark: self.delivery.mark(), letter }
    }
}

#[cfg(test)]
mod tests;
