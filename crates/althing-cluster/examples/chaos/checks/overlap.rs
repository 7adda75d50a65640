//! One life at a time: activations of one counter do not overlap, and epochs only rise.

use std::collections::BTreeMap;

use crate::clock::Micros;
use crate::history::{Activation, Deed, History};

/// For so long a handler may run on in a process that goes on after it was stopped, before that
/// notices that its lease has run out (docs/guarantees/cluster.md). The store refuses what it writes,
/// and no reply leaves.
const RUNS_ON: Micros = 250_000;

pub(crate) struct Overlaps {
    pub(crate) broken: Vec<String>,
    /// Things that were begun by a former owner just after it was let go on.
    pub(crate) ran_on: u64,
}

/// Looks for activations that did something after one of a later epoch had begun.
pub(crate) fn activations_overlap(history: &History) -> Overlaps {
    let mut overlaps = Overlaps { broken: Vec::new(), ran_on: 0 };
    for activations in by_counter(history).into_values() {
        // When the first one of all later epochs began.
        let mut later: Option<&Activation> = None;
        for activation in activations.into_iter().rev() {
            if let Some(later) = later {
                look_at(activation, later, history, &mut overlaps);
            }
            if later.is_none_or(|later| activation.acts[0] < later.acts[0]) {
                later = Some(activation);
            }
        }
    }
    overlaps
}

fn look_at(former: &Activation, later: &Activation, history: &History, overlaps: &mut Overlaps) {
    let begun = later.acts[0];
    for act in former.acts.iter().filter(|act| **act > begun) {
        let went_on = |at: Micros| (0..=RUNS_ON).contains(&(act - at));
        let mut incidents = history.incidents.iter();
        let runs_on = incidents.any(|incident| {
            incident.deed == Deed::WentOn && incident.life == former.life && went_on(incident.at)
        });
        if runs_on {
            overlaps.ran_on += 1;
        } else {
            overlaps.broken.push(format!(
                "{}: epoch {} on {} did something {} us after epoch {} had begun on {}",
                former.counter,
                former.epoch,
                former.life,
                act - begun,
                later.epoch,
                later.life,
            ));
        }
    }
}

/// By counter, in the order of epochs, and of one epoch in that of their beginnings.
fn by_counter(history: &History) -> BTreeMap<&str, Vec<&Activation>> {
    let mut all: BTreeMap<&str, Vec<&Activation>> = BTreeMap::new();
    for activation in &history.activations {
        all.entry(&activation.counter).or_default().push(activation);
    }
    for activations in all.values_mut() {
        activations.sort_by_key(|activation| (activation.epoch, activation.acts[0]));
    }
    all
}

/// Looks for epochs that fall in a journal, and for those of two nodes.
pub(crate) fn epochs_fall(history: &History) -> Vec<String> {
    let mut broken = Vec::new();
    for (counter, journal) in &history.journals {
        for (pair, number) in journal.windows(2).zip(1..) {
            let [before, after] = pair else { unreachable!("windows of two") };
            if after.epoch < before.epoch {
                broken.push(format!(
                    "{counter}: epoch {} was written behind epoch {}, as number {}",
                    after.epoch,
                    before.epoch,
                    number + 1,
                ));
            }
        }
    }
    let mut owners: BTreeMap<(&str, u64), &str> = BTreeMap::new();
    let mut own = |counter, epoch, life| {
        let owner = *owners.entry((counter, epoch)).or_insert(life);
        if owner != life {
            broken.push(format!("{counter}: epoch {epoch} is that of {owner} and of {life}"));
        }
    };
    for (counter, journal) in &history.journals {
        journal.iter().for_each(|entry| own(counter, entry.epoch, &entry.life));
    }
    for activation in &history.activations {
        own(&activation.counter, activation.epoch, &activation.life);
    }
    broken
}
