//! What is sent when, and what the store is told.

use super::*;

fn id(key: &str) -> ActorId {
    ActorId::named("test", key)
}

fn letter(name: &str, to: &str, due: u64) -> Delivery {
    let letter = Letter { to: id(to), message: "m".to_owned(), body: name.as_bytes().to_vec() };
    let (owner, name) = (id("owner"), name.to_owned());
    Delivery { owner, name, due: Timestamp(due), cron: None, letter }
}

fn names(attempts: &[Attempt]) -> Vec<&str> {
    attempts.iter().map(|attempt| attempt.mark.name.as_str()).collect()
}

fn take(agenda: &mut Agenda, now: u64, at_once: usize) -> Vec<Attempt> {
    agenda.take(Timestamp(now), Timestamp(now), at_once)
}

#[test]
fn letters_to_one_actor_go_one_after_the_other_and_those_to_others_at_once() {
    let mut agenda = Agenda::default();
    for (name, to) in [(">1", "a"), (">2", "a"), (">3", "b")] {
        agenda.put(letter(name, to, 5));
    }
    assert_eq!(take(&mut agenda, 4, 9), [], "not before they are due");
    let first = take(&mut agenda, 5, 9);
    assert_eq!(names(&first), [">1", ">3"]);
    assert_eq!(take(&mut agenda, 9, 9), []);
    let settled = agenda.taken(first[0].mark.clone(), Timestamp(9));
    assert_eq!(settled, Settled { mark: first[0].mark.clone(), next: None });
    assert_eq!(names(&take(&mut agenda, 9, 9)), [">2"]);
}

#[test]
fn what_failed_is_tried_again_after_a_pause_that_doubles_and_holds_up_its_lane() {
    let mut agenda = Agenda::default();
    agenda.put(letter(">1", "a", 0));
    agenda.put(letter(">2", "a", 0));
    let mut now = 0;
    for pause in [100, 200, 400, 800] {
        let sent = take(&mut agenda, now, 9);
        assert_eq!(names(&sent), [">1"]);
        agenda.failed(&sent[0].mark, Timestamp(now));
        assert_eq!(agenda.next_letter(), Some(Timestamp(now + pause)));
        now += pause;
    }
}

#[test]
fn what_is_set_aside_holds_up_nobody_and_is_there_again_when_it_is_read_again() {
    let mut agenda = Agenda::default();
    agenda.put(letter(">1", "a", 0));
    agenda.put(letter(">2", "a", 0));
    let sent = take(&mut agenda, 0, 9);
    assert_eq!(names(&sent), [">1"]);
    agenda.set_aside(&sent[0].mark);
    assert_eq!((agenda.on_the_way(), agenda.len()), (0, 1));
    let next = take(&mut agenda, 0, 9);
    assert_eq!(names(&next), [">2"]);
    agenda.put(letter(">1", "a", 0));
    agenda.taken(next[0].mark.clone(), Timestamp(0));
    assert_eq!(names(&take(&mut agenda, 0, 9)), [">1"]);
}

#[test]
fn only_so_many_are_on_their_way() {
    let mut agenda = Agenda::default();
    for n in 0..10 {
        agenda.put(letter(&format!(">{n}"), &n.to_string(), 0));
    }
    let sent = take(&mut agenda, 0, 3);
    assert_eq!(sent.len(), 3);
    assert_eq!(take(&mut agenda, 0, 3), []);
    agenda.taken(sent[0].mark.clone(), Timestamp(0));
    agenda.failed(&sent[1].mark, Timestamp(0));
    assert_eq!(take(&mut agenda, 0, 3).len(), 2);
}

#[test]
fn what_was_replaced_or_cancelled_on_its_way_is_not_taken() {
    let mut agenda = Agenda::default();
    agenda.put(letter("@tea", "owner", 1));
    let sent = take(&mut agenda, 1, 9).remove(0);
    agenda.put(letter("@tea", "owner", 50));
    assert_eq!(agenda.taken(sent.mark, Timestamp(2)).next, None);
    assert_eq!(agenda.next_reminder(), Some(Timestamp(50)), "the new one is still to come");
    agenda.cancel(id("owner"), "@tea".to_owned());
    assert_eq!((agenda.next_reminder(), agenda.len()), (None, 0));
}

#[test]
fn what_was_replaced_and_sent_again_meanwhile_is_not_taken_by_the_first_answer() {
    let mut agenda = Agenda::default();
    agenda.put(letter("@tea", "owner", 1));
    let first = take(&mut agenda, 1, 9).remove(0);
    let cron = Some("* * * * *".to_owned());
    agenda.put(Delivery { cron, ..letter("@tea", "owner", 2) });
    let second = take(&mut agenda, 2, 9).remove(0);
    assert_eq!(agenda.taken(first.mark, Timestamp(3)).next, None);
    assert_eq!((agenda.on_the_way(), agenda.len()), (1, 1));
    assert_eq!(agenda.taken(second.mark, Timestamp(3)).next, Some(Timestamp(60_000)));
    assert_eq!((agenda.on_the_way(), agenda.len()), (0, 1));
}

#[test]
fn what_was_set_anew_stays_while_what_was_sent_before_is_set_aside_or_let_go() {
    for due in [1, 50] {
        for end in [Agenda::set_aside, Agenda::let_go] {
            let mut agenda = Agenda::default();
            agenda.put(letter("@tea", "owner", 1));
            let sent = take(&mut agenda, 1, 9).remove(0);
            agenda.cancel(id("owner"), "@tea".to_owned());
            agenda.put(letter("@tea", "owner", due));
            end(&mut agenda, &sent.mark);
            assert_eq!((agenda.on_the_way(), agenda.len()), (0, 1));
            assert_eq!(agenda.next_reminder(), Some(Timestamp(due)));
        }
    }
}

#[test]
fn a_cron_delivery_is_another_request_each_time_and_skips_what_was_missed() {
    let mut agenda = Agenda::default();
    let cron = Some("* * * * *".to_owned());
    agenda.put(Delivery { cron, ..letter("@tick", "owner", 60_000) });
    let first = take(&mut agenda, 600_500, 9).remove(0);
    let settled = agenda.taken(first.mark.clone(), Timestamp(600_500));
    assert_eq!(settled.next, Some(Timestamp(660_000)), "the next one after now");
    let second = take(&mut agenda, 660_000, 9).remove(0);
    assert_ne!(first.letter.body, second.letter.body);
    assert_eq!(first.letter.body, Reminding::of(&id("owner"), "tick", Timestamp(60_000)).bytes());
}

#[test]
fn what_is_known_as_it_is_changes_nothing() {
    let mut agenda = Agenda::default();
    agenda.put(letter(">1", "a", 0));
    let sent = take(&mut agenda, 0, 9);
    agenda.put(letter(">1", "a", 0));
    assert_eq!(take(&mut agenda, 0, 9), [], "it is on its way");
    assert_eq!(agenda.taken(sent[0].mark.clone(), Timestamp(1)).next, None);
    assert_eq!(agenda.len(), 0);
}

#[test]
fn reminders_wait_to_be_sent_together_and_letters_do_not() {
    let mut agenda = Agenda::default();
    agenda.put(letter("@tea", "owner", 5));
    agenda.put(letter(">1", "a", 7));
    assert_eq!(names(&agenda.take(Timestamp(8), Timestamp(4), 9)), [">1"]);
    assert_eq!(names(&agenda.take(Timestamp(8), Timestamp(8), 9)), ["@tea"]);
}

#[test]
fn what_waits_can_be_forgotten_and_what_is_on_its_way_stays() {
    let mut agenda = Agenda::default();
    for (name, to) in [(">1", "a"), (">2", "a"), (">3", "b"), ("@tea", "owner")] {
        agenda.put(letter(name, to, 5));
    }
    let sent = take(&mut agenda, 5, 1);
    assert_eq!(names(&sent), [">1"]);
    agenda.forget_waiting();
    assert_eq!(agenda.len(), 1);
    assert_eq!(take(&mut agenda, 9, 9), []);
    agenda.put(letter(">2", "a", 5));
    assert_eq!(take(&mut agenda, 9, 9), [], "it is behind the one on its way");
    agenda.taken(sent[0].mark.clone(), Timestamp(9));
    assert_eq!(names(&take(&mut agenda, 9, 9)), [">2"]);
}

#[test]
fn letters_of_who_is_held_wait_for_older_ones_that_still_come() {
    let mut agenda = Agenda::default();
    agenda.put(letter(">1", "a", 0));
    let before = take(&mut agenda, 0, 9);
    agenda.hold(id("owner"));
    agenda.put(letter(">5", "a", 0));
    agenda.put(letter(">6", "b", 0));
    agenda.taken(before[0].mark.clone(), Timestamp(0));
    assert_eq!(take(&mut agenda, 0, 9), [], "held");
    for name in [">3", ">4"] {
        agenda.put(letter(name, "b", 0));
    }
    agenda.free(&id("owner"));
    let mut first = names(&take(&mut agenda, 0, 9)).join(" ");
    assert!([">5 >3", ">3 >5"].contains(&&*first), "{first}");
    // Held without a letter, and freed.
    agenda.hold(id("other"));
    agenda.free_all();
    let other = Delivery { owner: id("other"), ..letter(">1", "a", 0) };
    agenda.put(other);
    first = names(&take(&mut agenda, 0, 9)).join(" ");
    assert_eq!(first, ">1");
}

#[test]
fn of_who_lives_elsewhere_nothing_is_sent_that_was_behind() {
    let mut agenda = Agenda::default();
    for (name, to) in [(">1", "a"), (">2", "a"), (">3", "b"), (">4", "b")] {
        agenda.put(letter(name, to, 0));
    }
    let sent = take(&mut agenda, 0, 1);
    assert_eq!(names(&sent), [">1"]);
    agenda.let_go(&sent[0].mark);
    assert_eq!((agenda.len(), agenda.on_the_way()), (0, 0));
    assert_eq!(agenda.next_letter(), None);
}
