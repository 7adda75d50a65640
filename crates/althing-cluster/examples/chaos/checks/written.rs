//! What was acknowledged is in the store, where the answer said, and once.

use std::collections::{BTreeMap, BTreeSet};

use crate::callers::Ack;
use crate::counter::Entry;
use crate::history::History;

/// Looks for answers to additions that the journal does not hold.
pub(crate) fn acknowledged_and_lost(history: &History) -> Vec<String> {
    let mut broken = Vec::new();
    let mut look = |ack: &Ack, who: &str, is_it: &dyn Fn(&Entry) -> bool| {
        let journal = history.journals.get(&ack.counter);
        let at = usize::try_from(ack.value).unwrap_or(0).checked_sub(1);
        let entry = at.and_then(|at| journal?.get(at));
        if !entry.is_some_and(|entry| is_it(entry) && entry.epoch == ack.epoch) {
            broken.push(format!(
                "{}: {who} was told that it is number {} in epoch {}, and there is {entry:?}",
                ack.counter, ack.value, ack.epoch,
            ));
        }
    };
    for ack in &history.requests {
        look(ack, &ack.request, &|entry| entry.request == ack.request);
    }
    for (sender, number, ack) in &history.asks {
        let is_it = |entry: &Entry| entry.sender == *sender && entry.number == *number;
        look(ack, &format!("{sender} with {number}"), &is_it);
    }
    for look in &history.looks {
        let len = history.journals.get(&look.counter).map_or(0, Vec::len);
        if look.value > len as u64 {
            let counter = &look.counter;
            broken.push(format!("{counter}: a look saw {}, and there are {len}", look.value));
        }
    }
    broken
}

/// Looks for requests and messages that had their effect twice, and for those that had one though
/// they were handed back.
pub(crate) fn done_twice(history: &History) -> Vec<String> {
    let mut broken = Vec::new();
    for (counter, journal) in &history.journals {
        let mut seen: BTreeMap<(&str, u64, &str), usize> = BTreeMap::new();
        for (entry, number) in journal.iter().zip(1..) {
            let key = if entry.request.is_empty() {
                (&*entry.sender, entry.number, "")
            } else {
                ("", 0, &*entry.request)
            };
            if let Some(first) = seen.insert(key, number) {
                broken.push(format!("{counter}: {entry:?} is number {first} and number {number}"));
            }
        }
    }
    let refused: BTreeSet<_> = history.refused.iter().collect();
    for (counter, journal) in &history.journals {
        for entry in journal.iter().filter(|entry| entry.request.is_empty()) {
            let key = (entry.sender.clone(), counter.clone(), entry.number);
            if refused.contains(&key) {
                broken.push(format!("{counter}: {entry:?} was handed back to its sender"));
            }
        }
    }
    broken
}
