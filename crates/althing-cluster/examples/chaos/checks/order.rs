//! Order: of each sender, and of all answers in the time of those who got them.

use std::collections::BTreeMap;

use crate::callers::Ack;
use crate::clock::Micros;
use crate::history::History;

/// Looks for messages of one sender to one counter that overtook each other.
pub(crate) fn senders_out_of_order(history: &History) -> Vec<String> {
    let mut broken = Vec::new();
    for (counter, journal) in &history.journals {
        let mut last: BTreeMap<&str, u64> = BTreeMap::new();
        for entry in journal.iter().filter(|entry| entry.request.is_empty()) {
            let before = last.insert(&entry.sender, entry.number).unwrap_or(0);
            if entry.number < before {
                let (sender, number) = (&entry.sender, entry.number);
                broken.push(format!("{counter}: {number} of {sender} came behind {before}"));
            }
        }
    }
    broken
}

/// Looks for answers that say less, or an earlier epoch, than one that was there before they were
/// asked for: what an owner would answer that has been replaced.
pub(crate) fn answers_out_of_order(history: &History) -> Vec<String> {
    let mut by_counter: BTreeMap<&str, Vec<(&Ack, Kind)>> = BTreeMap::new();
    let asks = history.asks.iter().map(|(.., ack)| (ack, Kind::Addition));
    let requests = history.requests.iter().map(|ack| (ack, Kind::Addition));
    let looks = history.looks.iter().map(|ack| (ack, Kind::Look));
    for (ack, kind) in asks.chain(requests).chain(looks) {
        by_counter.entry(&ack.counter).or_default().push((ack, kind));
    }
    by_counter.into_values().flat_map(|mut acks| of_one_counter(&mut acks)).collect()
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// It made the value, so nobody has seen that before.
    Addition,
    /// It saw the value.
    Look,
}

fn of_one_counter(acks: &mut [(&Ack, Kind)]) -> Vec<String> {
    let mut broken = Vec::new();
    // An addition comes before the looks that saw it.
    acks.sort_by_key(|(ack, kind)| (ack.value, *kind));
    // From the last to the first: the earliest end of all that come behind.
    let mut earliest: Option<&Ack> = None;
    let mut of_looks: Option<(u64, Option<&Ack>)> = None;
    for (ack, kind) in acks.iter().rev() {
        // Looks that saw one value have no order among themselves.
        let behind = match (kind, of_looks) {
            (Kind::Look, Some((value, before))) if value == ack.value => before,
            _ => earliest,
        };
        if *kind == Kind::Look && of_looks.is_none_or(|(value, _)| value != ack.value) {
            of_looks = Some((ack.value, earliest));
        }
        if let Some(other) = behind.filter(|other| other.to < ack.from) {
            broken.push(too_little(other, ack));
        }
        earliest = sooner(earliest, ack);
    }
    // Epochs in the order of time.
    let mut by_end: Vec<&Ack> = acks.iter().map(|(ack, _)| *ack).collect();
    by_end.sort_by_key(|ack| ack.to);
    let mut by_begin = by_end.clone();
    by_begin.sort_by_key(|ack| ack.from);
    let (mut ended, mut highest): (_, Option<&Ack>) = (by_end.into_iter().peekable(), None);
    for ack in by_begin {
        while let Some(over) = ended.next_if(|over| over.to < ack.from) {
            if highest.is_none_or(|highest| over.epoch > highest.epoch) {
                highest = Some(over);
            }
        }
        if let Some(other) = highest.filter(|other| other.epoch > ack.epoch) {
            broken.push(too_little(other, ack));
        }
    }
    broken
}

fn sooner<'a>(one: Option<&'a Ack>, other: &'a Ack) -> Option<&'a Ack> {
    let end = |ack: &Ack| -> Micros { ack.to };
    Some(one.filter(|one| end(one) <= end(other)).unwrap_or(other))
}

fn too_little(before: &Ack, after: &Ack) -> String {
    format!(
        "{}: value {} of epoch {} was there {} us before value {} of epoch {} was asked for",
        after.counter,
        before.value,
        before.epoch,
        after.from - before.to,
        after.value,
        after.epoch,
    )
}
