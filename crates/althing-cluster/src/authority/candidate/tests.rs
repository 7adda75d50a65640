//! What a candidate does when the store is silent, refuses, or belongs to another.

use std::time::Duration;

use super::{Candidate, Done, Effect};
use crate::authority::storage::{Claimant, Lead, Replaced};
use crate::lease::Timing;
use crate::protocol::{Answer, Request};
use crate::record::{Member, Record, Stage};

const TIMING: Timing = Timing { lease: Duration::from_secs(6) };
const START: Duration = Duration::from_secs(100);

fn at(ms: u64) -> Duration {
    START + Duration::from_millis(ms)
}

fn claimant(id: u64) -> Claimant {
    Claimant { id, address: format!("host-{id}:7400") }
}

fn lead(id: u64, term: u64) -> Done {
    Done::Claimed(Some(Lead { leader: claimant(id), term }))
}

fn join(incarnation: u64) -> Request {
    let member = Member {
        incarnation,
        name: incarnation.to_string(),
        address: String::new(),
        stage: Stage::Active,
        since: 0,
        frame_len_max: 0,
        labels: crate::label::Labels::default(),
    };
    Request::Join { member, known: 0 }
}

fn renew(incarnation: u64, view: u64) -> Request {
    Request::Renew { incarnation, counter: 1, view, labels: None }
}

/// The record that is to be stored.
fn written(effects: &[Effect<u32>]) -> Record {
    let record = effects.iter().find_map(|effect| match effect {
        Effect::Replace { record, .. } => Some(record.clone()),
        _ => None,
    });
    record.unwrap_or_else(|| panic!("nothing is stored: {effects:?}"))
}

fn answers(effects: &[Effect<u32>]) -> Vec<(u32, &Answer)> {
    let answer = |effect| match effect {
        &Effect::Answer { to, ref answer } => Some((to, answer)),
        _ => None,
    };
    effects.iter().filter_map(answer).collect()
}

fn loads(effects: &[Effect<u32>]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Load))
}

fn is_dismissed(effects: &[Effect<u32>], who: u32) -> bool {
    matches!(answers(effects)[..], [(to, Answer::Elsewhere { .. })] if to == who)
}

/// One that leads since `at(0)`, with the member 7.
fn leading() -> (Candidate<u32>, Record) {
    let mut candidate = Candidate::new(claimant(1), TIMING, START);
    assert!(matches!(candidate.tick(at(0))[..], [Effect::Claim { .. }]));
    assert!(loads(&candidate.done(at(0), lead(1, 1))));
    let first = written(&candidate.done(at(0), Done::Loaded(Some(Record::empty()))));
    assert_eq!((first.writes, first.view, first.lease_ms), (1, 0, 6_000), "as it was");
    assert!(!candidate.is_leading(at(0)), "it is not stored");
    candidate.done(at(0), Done::Replaced(Some(Replaced::Done)));
    assert!(candidate.is_leading(at(0)));
    let joined = written(&candidate.asked(at(0), 0, join(7)));
    let told = candidate.done(at(0), Done::Replaced(Some(Replaced::Done)));
    assert!(matches!(answers(&told)[..], [(0, Answer::Joined { .. })]));
    (candidate, joined)
}

#[test]
fn a_write_whose_answer_is_lost_is_looked_up_and_may_have_counted() {
    let (mut candidate, _) = leading();
    let lost = written(&candidate.asked(at(100), 1, join(8)));
    let told = candidate.done(at(200), Done::Replaced(None));
    assert!(is_dismissed(&told, 1), "nobody is told what is not known: {told:?}");
    assert!(!candidate.is_leading(at(200)));
    // It knows nothing until it has stored something itself.
    assert!(answers(&candidate.asked(at(300), 2, renew(7, 1))).is_empty());
    assert!(loads(&candidate.tick(at(500))));
    let found = candidate.done(at(500), Done::Loaded(Some(lost.clone())));
    assert!(answers(&found).is_empty());
    assert_eq!(written(&found).writes, lost.writes + 1);
    let told = candidate.done(at(600), Done::Replaced(Some(Replaced::Done)));
    assert!(matches!(answers(&told)[..], [(2, Answer::Renewed { .. })]), "{told:?}");
    let again = candidate.asked(at(700), 3, join(8));
    let Answer::Joined { record, .. } = answers(&again)[0].1 else { panic!("{again:?}") };
    assert!(record.member(8).is_some(), "it had counted");
}

#[test]
fn a_write_that_was_lost_and_comes_late_finds_another_one_in_its_place() {
    let (mut candidate, joined) = leading();
    let lost = written(&candidate.asked(at(100), 1, join(8)));
    candidate.done(at(200), Done::Replaced(None));
    assert!(loads(&candidate.tick(at(500))));
    // The store has not done it.
    let next = written(&candidate.done(at(500), Done::Loaded(Some(joined))));
    assert_eq!(next.writes, lost.writes, "one of the two counts, and refuses the other");
    // It was the lost one after all.
    let told = candidate.done(at(600), Done::Replaced(Some(Replaced::Refused)));
    assert!(answers(&told).is_empty() && !candidate.is_leading(at(600)));
    assert!(told.is_empty() || !loads(&told), "first it asks whether it still has the lead");
    candidate.tick(at(700));
    assert!(loads(&candidate.done(at(700), lead(1, 1))));
    let next = written(&candidate.done(at(700), Done::Loaded(Some(lost.clone()))));
    assert_eq!(next.writes, lost.writes + 1);
}

#[test]
fn one_whose_lead_has_run_out_answers_nobody_and_knows_nothing_when_it_leads_again() {
    let (mut candidate, joined) = leading();
    let told = candidate.asked(at(1_800), 1, renew(7, 1));
    assert!(matches!(answers(&told)[..], [(1, Answer::Renewed { .. })]));
    // Asked for at 0, for two seconds by the store's clock.
    assert!(is_dismissed(&candidate.asked(at(1_950), 2, renew(7, 1)), 2));
    // Another one may have led in between.
    candidate.tick(at(2_000));
    assert!(loads(&candidate.done(at(2_000), lead(1, 1))));
    assert!(answers(&candidate.asked(at(2_100), 3, renew(7, 1))).is_empty());
    candidate.done(at(2_100), Done::Loaded(Some(joined)));
    let told = candidate.done(at(2_100), Done::Replaced(Some(Replaced::Done)));
    assert!(matches!(answers(&told)[..], [(3, Answer::Renewed { .. })]), "{told:?}");
}

#[test]
fn one_who_hears_that_another_leads_names_it() {
    let (mut candidate, _) = leading();
    candidate.tick(at(1_000));
    let told = candidate.done(at(1_000), lead(2, 2));
    assert!(told.iter().any(|effect| matches!(effect, Effect::Dismiss)), "{told:?}");
    let told = candidate.asked(at(1_100), 1, renew(7, 1));
    let leader = Some("host-2:7400".to_owned());
    assert_eq!(answers(&told), [(1, &Answer::Elsewhere { leader })]);
}

#[test]
fn one_who_hears_of_an_earlier_life_of_its_own_names_nobody() {
    let (mut candidate, _) = leading();
    candidate.tick(at(1_000));
    let earlier = Claimant { id: 77, ..claimant(1) };
    candidate.done(at(1_000), Done::Claimed(Some(Lead { leader: earlier, term: 2 })));
    let told = candidate.asked(at(1_100), 1, renew(7, 1));
    assert_eq!(answers(&told), [(1, &Answer::Elsewhere { leader: None })]);
}

#[test]
fn a_lead_of_another_term_is_another_lead() {
    let (mut candidate, _) = leading();
    candidate.tick(at(1_000));
    // Another one had it, though this one never heard so.
    assert!(loads(&candidate.done(at(1_000), lead(1, 3))), "what it knew may be old");
    assert!(!candidate.is_leading(at(1_000)));
}

#[test]
fn a_renewal_waits_for_a_write_that_may_take_its_member_out() {
    let (mut candidate, _) = leading();
    written(&candidate.asked(at(100), 1, Request::Goodbye { incarnation: 7 }));
    assert!(answers(&candidate.asked(at(150), 2, renew(7, 1))).is_empty());
    let told = candidate.done(at(200), Done::Replaced(Some(Replaced::Done)));
    let told = answers(&told);
    assert!(matches!(told[..], [(1, Answer::Done), (2, Answer::Refused { .. })]), "{told:?}");
}

#[test]
fn nobody_is_served_from_a_record_that_is_older_than_members_know() {
    let (mut candidate, joined) = leading();
    let told = candidate.asked(at(100), 1, renew(7, 9));
    assert!(is_dismissed(&told, 1) && !candidate.is_leading(at(100)), "{told:?}");
    assert!(told.iter().any(|effect| matches!(effect, Effect::Behind { known: 9, stored: 1 })));
    // It looks again, as often as a member says so.
    assert!(loads(&candidate.tick(at(500))));
    candidate.done(at(500), Done::Loaded(Some(joined)));
    candidate.done(at(500), Done::Replaced(Some(Replaced::Done)));
    assert!(is_dismissed(&candidate.asked(at(600), 2, renew(7, 9)), 2));
}

#[test]
fn what_a_stranger_says_it_knows_holds_up_nobody() {
    let (mut candidate, _) = leading();
    let told = candidate.asked(at(100), 1, renew(8, u64::MAX));
    assert!(matches!(answers(&told)[..], [(1, Answer::Refused { .. })]), "{told:?}");
    assert!(candidate.is_leading(at(100)));
}

#[test]
fn a_store_in_trouble_is_not_asked_without_pause() {
    let mut candidate: Candidate<u32> = Candidate::new(claimant(1), TIMING, START);
    candidate.tick(at(0));
    assert!(loads(&candidate.done(at(0), lead(1, 1))));
    assert!(!loads(&candidate.done(at(1), Done::Loaded(None))));
    assert!(!loads(&candidate.tick(at(100))));
    assert!(loads(&candidate.tick(at(300))));
}

#[test]
fn one_that_cannot_read_the_record_makes_way_for_another() {
    let mut candidate: Candidate<u32> = Candidate::new(claimant(1), TIMING, START);
    assert!(matches!(candidate.tick(at(0))[..], [Effect::Claim { .. }]));
    assert!(loads(&candidate.done(at(0), lead(1, 1))));
    assert!(answers(&candidate.asked(at(0), 3, join(7))).is_empty());
    assert!(is_dismissed(&candidate.done(at(10), Done::Unreadable), 3));
    // The lead runs out in the store, and others look for it several times.
    let until = at(10) + TIMING.leads() * 2;
    let mut now = at(20);
    while now < until {
        assert!(candidate.tick(now).is_empty() && !candidate.is_leading(now), "at {now:?}");
        now += TIMING.look_every();
    }
    assert!(matches!(candidate.tick(until)[..], [Effect::Claim { .. }]));
}
