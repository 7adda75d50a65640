//! Each check notices what it is there for: a history without fault, broken in one place.

use std::time::Duration;

use super::all;
use crate::callers::Ack;
use crate::counter::Entry;
use crate::history::{Activation, Deed, History, Incident, Told};

const COUNTER: &str = "counter-0";

fn entry(sender: &str, number: u64, request: &str, epoch: u64, life: &str) -> Entry {
    let (sender, request, life) = (sender.to_owned(), request.to_owned(), life.to_owned());
    Entry { sender, number, request, epoch, life }
}

fn ack(request: &str, value: u64, epoch: u64, from: i64, to: i64) -> Ack {
    let (counter, request) = (COUNTER.to_owned(), request.to_owned());
    Ack { counter, request, value, epoch, from, to, tries: 1 }
}

fn told(number: u64, from: i64) -> Told {
    let (sender, counter) = ("two.1/0".to_owned(), COUNTER.to_owned());
    Told { sender, counter, number, from, to: from + 10 }
}

fn activation(epoch: u64, life: &str, acts: &[i64]) -> Activation {
    let (counter, life) = (COUNTER.to_owned(), life.to_owned());
    Activation { counter, epoch, life, acts: acts.to_vec() }
}

fn incident(life: &str, deed: Deed, at: i64) -> Incident {
    Incident { life: life.to_owned(), deed, at }
}

/// One counter that lives on one node, and then, long after, on another; seconds apart.
fn history() -> History {
    let s = 1_000_000;
    let journal = vec![
        entry("caller-0", 1, "caller-0/1", 1, "one.1"),
        entry("two.1/0", 1, "", 1, "one.1"),
        entry("two.1/0", 2, "", 2, "two.1"),
        entry("caller-0", 2, "caller-0/2", 2, "two.1"),
        entry("two.1/0", 4, "", 2, "two.1"),
    ];
    History {
        lease: Duration::from_millis(10),
        journals: [(COUNTER.to_owned(), journal)].into(),
        activations: vec![
            activation(1, "one.1", &[s, 2 * s, 3 * s]),
            activation(2, "two.1", &[4 * s, 5 * s, 6 * s]),
        ],
        requests: vec![
            ack("caller-0/1", 1, 1, s, s + 5),
            ack("caller-0/2", 4, 2, 5 * s, 5 * s + 5),
        ],
        looks: vec![ack("", 1, 1, 2 * s, 2 * s + 5), ack("", 4, 2, 6 * s, 6 * s + 5)],
        asks: vec![("two.1/0".to_owned(), 2, ack("", 3, 2, 4 * s, 4 * s + 5))],
        told: vec![told(1, 3 * s), told(4, 6 * s)],
        ..History::default()
    }
}

/// What is said of the history once it was changed.
fn said(change: impl FnOnce(&mut History)) -> String {
    let mut history = history();
    change(&mut history);
    all(&history).join("\n")
}

fn assert_said(change: impl FnOnce(&mut History), part: &str) {
    let said = said(change);
    assert!(said.contains(part), "`{said}` says nothing of `{part}`");
}

#[test]
fn nothing_is_said_of_a_history_without_fault() {
    assert_eq!(said(|_| {}), "");
}

#[test]
fn activations_that_overlap_are_noticed() {
    assert_said(|it| it.activations[0].acts.push(4_000_001), "did something 1 us after epoch 2");
    // Also if a third one has begun before the second.
    let third = activation(3, "one.1", &[3_500_000]);
    assert_said(|it| it.activations.push(third), "after epoch 3 had begun");
}

#[test]
fn a_handler_may_run_on_for_a_moment_after_a_stop_and_no_longer() {
    let went_on = |it: &mut History, at| it.incidents.push(incident("one.1", Deed::WentOn, at));
    let with_act = |it: &mut History| it.activations[0].acts.push(4_100_000);
    assert_eq!(said(|it| (with_act(it), went_on(it, 4_000_000)).0), "");
    assert_said(|it| (with_act(it), went_on(it, 3_800_000)).0, "did something");
    let other = |it: &mut History| it.incidents.push(incident("two.1", Deed::WentOn, 4_000_000));
    assert_said(|it| (with_act(it), other(it)).0, "did something");
}

#[test]
fn epochs_that_fall_or_have_two_owners_are_noticed() {
    let journal = |it: &mut History, at: usize, epoch| {
        it.journals.get_mut(COUNTER).expect("it is there")[at].epoch = epoch;
    };
    assert_said(|it| journal(it, 4, 1), "epoch 1 was written behind epoch 2");
    assert_said(|it| it.activations[1].epoch = 1, "epoch 1 is that of");
}

#[test]
fn what_was_acknowledged_and_is_not_there_is_noticed() {
    let pop = |it: &mut History| _ = it.journals.get_mut(COUNTER).expect("there").remove(3);
    assert_said(pop, "caller-0/2 was told that it is number 4");
    let cut = |it: &mut History| it.journals.get_mut(COUNTER).expect("there").truncate(3);
    assert_said(cut, "a look saw 4, and there are 3");
    assert_said(|it| it.asks[0].2.value = 2, "two.1/0 with 2 was told that it is number 2");
}

#[test]
fn what_was_done_twice_or_though_it_was_handed_back_is_noticed() {
    let again = |it: &mut History, at: usize| {
        let journal = it.journals.get_mut(COUNTER).expect("it is there");
        let entry = Entry { epoch: 2, life: "two.1".to_owned(), ..journal[at].clone() };
        journal.push(entry);
    };
    assert_said(|it| again(it, 0), "is number 1 and number 6");
    assert_said(|it| again(it, 4), "is number 5 and number 6");
    let handed_back = ("two.1/0".to_owned(), COUNTER.to_owned(), 4);
    assert_said(|it| it.refused.push(handed_back), "was handed back");
}

#[test]
fn messages_that_overtook_each_other_are_noticed() {
    let swap = |it: &mut History| it.journals.get_mut(COUNTER).expect("it is there").swap(2, 4);
    assert_said(swap, "2 of two.1/0 came behind 4");
}

#[test]
fn answers_of_an_owner_that_was_replaced_are_noticed() {
    let stale = ack("", 2, 2, 5_500_000, 5_500_005);
    assert_said(|it| it.looks.push(stale), "value 2 of epoch 2 was asked for");
    let former = ack("", 4, 1, 5_500_000, 5_500_005);
    assert_said(|it| it.looks.push(former), "of epoch 1 was asked for");
    // Nobody sees an addition that was not asked for yet.
    let early = ack("", 4, 2, 4_500_000, 4_500_005);
    assert_said(|it| it.looks.push(early), "value 4 of epoch 2 was asked for");
    // Two looks may see the same, one after the other.
    let same = ack("", 4, 2, 6_500_000, 6_500_005);
    assert_eq!(said(|it| it.looks.push(same)), "");
}

#[test]
fn a_tell_may_be_lost_with_a_node_and_not_otherwise() {
    let lose = |it: &mut History| it.told.push(told(3, 5_000_000));
    assert_said(lose, "3 of two.1/0 was lost");
    let died = |it: &mut History, at| it.incidents.push(incident("three.1", Deed::Died, at));
    assert_eq!(said(|it| (lose(it), died(it, 4_990_000)).0), "");
    assert_said(|it| (lose(it), died(it, 1_000_000)).0, "was lost");
    assert_said(|it| (lose(it), died(it, 7_000_000)).0, "was lost");
    // One that was evicted may have been so since its fault began.
    let evicted = |it: &mut History| {
        it.incidents.push(incident("three", Deed::Disturbed { from: 4_000_000 }, 8_990_000));
        it.incidents.push(incident("three.1", Deed::Evicted, 9_000_000));
    };
    assert_eq!(said(|it| (lose(it), evicted(it)).0), "");
    // The commit of one that was stopped for long has failed when it goes on.
    let stopped = |it: &mut History, went_on| {
        let stop = Deed::Disturbed { from: 5_000_001 };
        it.incidents.push(incident("two", stop, went_on + 1));
        it.incidents.push(incident("two.1", Deed::WentOn, went_on));
    };
    assert_eq!(said(|it| (lose(it), stopped(it, 15_100_000)).0), "");
    assert_said(|it| (lose(it), stopped(it, 14_900_000)).0, "was lost");
}
