//! Tells that were accepted and never ran: that may be when a node dies, or is stopped for so long
//! that its commits fail, and not otherwise.

use std::collections::{BTreeMap, BTreeSet};

use crate::clock::Micros;
use crate::history::{Deed, History, Told};

/// A message waits no longer for a new owner: it takes two leases where the authority died, too.
const HELD_LEASES: u32 = 3;

/// Within this PostgreSQL has to answer (`PostgresOptions::answer_within`). The commit of a process
/// that is stopped for longer has failed when that goes on, and the turn of a tell with it.
const ANSWER_WITHIN: Micros = 10_000_000;

/// A time in which a node was dead or about to be evicted, and not all others knew.
#[derive(Clone, Copy, Debug)]
struct Death {
    from: Micros,
    to: Micros,
}

/// A tell that never ran, and the time in which it was lost: until a later one of its sender came.
struct Lost<'a> {
    told: &'a Told,
    until: Micros,
}

/// How many accepted tells never ran.
pub(crate) fn lost(history: &History) -> usize {
    all(history).len()
}

/// Looks for tells that were lost while no node was dead.
pub(crate) fn lost_between_the_living(history: &History) -> Vec<String> {
    let deaths = deaths(history);
    let meets = |lost: &Lost<'_>| {
        deaths.iter().any(|death| death.from <= lost.until && lost.told.from <= death.to)
    };
    let broken = all(history).into_iter().filter(|lost| !meets(lost));
    let text = |Lost { told, until }: Lost<'_>| {
        let Told { sender, counter, number, from, .. } = told;
        format!("{counter}: {number} of {sender} was lost between {from} and {until}: no node died")
    };
    broken.map(text).collect()
}

fn all(history: &History) -> Vec<Lost<'_>> {
    let mut there = BTreeSet::new();
    let mut last: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for (counter, journal) in &history.journals {
        for entry in journal.iter().filter(|entry| entry.request.is_empty()) {
            there.insert((&**counter, &*entry.sender, entry.number));
            let last = last.entry((counter, &entry.sender)).or_default();
            *last = entry.number.max(*last);
        }
    }
    // When each of those that ran was accepted, by counter, sender and number.
    let ran = |told: &&Told| there.contains(&(&*told.counter, &*told.sender, told.number));
    let mut accepted: BTreeMap<(&str, &str, u64), Micros> = BTreeMap::new();
    for told in history.told.iter().filter(ran) {
        accepted.insert((&told.counter, &told.sender, told.number), told.to);
    }
    let until = |told: &Told| {
        let (counter, sender) = (&*told.counter, &*told.sender);
        let later = accepted.range((counter, sender, told.number)..);
        let later = later.take_while(|((its, of, _), _)| *its == counter && *of == sender);
        // The next one may have been held by its sender while the first was lost with the owner, and
        // has run once that was replaced.
        let held = Micros::try_from((history.lease * HELD_LEASES).as_micros()).unwrap_or(0);
        later.map(|(_, to)| *to + held).next().unwrap_or(Micros::MAX)
    };
    let lost = history.told.iter().filter(|told| !ran(told));
    lost.map(|told| Lost { told, until: until(told) }).collect()
}

fn deaths(history: &History) -> Vec<Death> {
    // A node that is gone is evicted after little more than a lease, and others hear of it; one that
    // cannot hear freezes by then.
    let leases = |count: u32| -> Micros {
        Micros::try_from((history.lease * count).as_micros()).unwrap_or(Micros::MAX)
    };
    let name = |life: &str| life.split('.').next().unwrap_or_default().to_owned();
    let mut deaths = Vec::new();
    for incident in &history.incidents {
        let (of, at) = (name(&incident.life), incident.at);
        let mut others = history.incidents.iter();
        let from = match incident.deed {
            Deed::Died => at,
            Deed::LeftInPart => at - leases(4),
            // It may have been evicted at any time since the fault began that kept it from its lease.
            Deed::Evicted => {
                let began = history.incidents.iter().filter_map(|other| match other.deed {
                    Deed::Disturbed { from } if other.life == of => {
                        (from < at && other.at > at - leases(3)).then_some(from)
                    }
                    _ => None,
                });
                began.min().unwrap_or(at - leases(3))
            }
            Deed::WentOn => {
                deaths.extend(stopped_for_long(history, &of, at));
                continue;
            }
            _ => continue,
        };
        let is_next = |deed| deed == Deed::Joined;
        let next =
            others.find(|other| other.at > at && name(&other.life) == of && is_next(other.deed));
        let known = next.map_or(at, |joined| joined.at).max(at);
        deaths.push(Death { from, to: known + leases(3) });
    }
    deaths
}

/// The time for which a node was stopped that goes on then, if its commits have failed meanwhile.
fn stopped_for_long(history: &History, node: &str, went_on: Micros) -> Option<Death> {
    let began = history.incidents.iter().filter_map(|other| match other.deed {
        Deed::Disturbed { from } if other.life == node => {
            (from < went_on && other.at >= went_on).then_some(from)
        }
        _ => None,
    });
    let from = began.min()?;
    (went_on - from > ANSWER_WITHIN).then_some(Death { from, to: went_on })
}
