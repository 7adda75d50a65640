//! The promises of pinned messages, as the rules alone keep them.

use folkmoot_protocol::limits::PINS_PER_ROOM_MAX;

use super::tests::{ANNA, BOB, CARA, DORA, admit, at, post, room, run, seq};
use super::*;
use crate::room::command::{Archivist, Command};

fn pin(number: u64) -> Command {
    Command::Pin { seq: seq(number), on: true }
}

fn unpin(number: u64) -> Command {
    Command::Pin { seq: seq(number), on: false }
}

fn pinned(room: &RoomState) -> Vec<u64> {
    room.pins.iter().map(|seq| seq.as_u64()).collect()
}

#[test]
fn moderators_and_owners_pin_and_members_do_not() {
    let mut room = room();
    post(&mut room, CARA, "a", "tea at four");
    post(&mut room, CARA, "b", "or at five");
    let event = run(&mut room, BOB, pin(1)).unwrap().unwrap().event;
    assert_eq!(event, RoomEvent::Pinned { seq: seq(1), by: BOB, on: true });
    assert!(run(&mut room, ANNA, pin(2)).unwrap().is_some());
    assert_eq!(pinned(&room), [1, 2]);
    for command in [pin(1), unpin(1)] {
        let refused = run(&mut room, CARA, command.clone());
        assert!(matches!(refused, Err(Refusal::NotAllowed(_))), "{refused:?}");
        assert_eq!(run(&mut room, DORA, command), Err(Refusal::NotMember));
    }
    assert!(run(&mut room, ANNA, unpin(1)).unwrap().is_some());
    assert_eq!(pinned(&room), [2]);
}

#[test]
fn what_is_so_already_changes_nothing_and_what_is_not_there_is_refused() {
    let mut room = room();
    post(&mut room, CARA, "a", "tea");
    run(&mut room, BOB, pin(1)).unwrap();
    assert_eq!(run(&mut room, ANNA, pin(1)), Ok(None));
    run(&mut room, BOB, unpin(1)).unwrap();
    assert_eq!(run(&mut room, BOB, unpin(1)), Ok(None));
    for number in [0, 2] {
        assert_eq!(run(&mut room, BOB, pin(number)), Err(Refusal::NoMessage(seq(number))));
    }
}

#[test]
fn two_people_pin_both_and_whom_one_of_them_blocks_does_not() {
    let mut room = RoomState::new(RoomId::from_u64(9), Kind::Direct, "".into(), "".into(), 1);
    run(&mut room, ANNA, admit("anna", Role::Member)).unwrap();
    run(&mut room, BOB, admit("bob", Role::Member)).unwrap();
    post(&mut room, ANNA, "a", "the key is under the mat");
    assert!(run(&mut room, BOB, pin(1)).unwrap().is_some());
    assert!(run(&mut room, ANNA, unpin(1)).unwrap().is_some());
    room.blockers.insert(ANNA);
    assert_eq!(run(&mut room, BOB, pin(1)), Err(Refusal::Blocked));
}

#[test]
fn nothing_is_pinned_by_who_may_not_write() {
    let mut room = room();
    post(&mut room, CARA, "a", "tea");
    let until = at(100);
    run(&mut room, ANNA, Command::Mute { user: BOB, until: Some(until) }).unwrap();
    assert_eq!(run(&mut room, BOB, pin(1)), Err(Refusal::Muted { until }));
    run(&mut room, ANNA, Command::Archive { on: true, by: Archivist::Owner }).unwrap();
    assert_eq!(run(&mut room, ANNA, pin(1)), Err(Refusal::Archived));
}

#[test]
fn a_room_keeps_so_many_pins_and_names_their_number() {
    let mut room = room();
    let max = u64::from(PINS_PER_ROOM_MAX);
    for number in 1..=max + 1 {
        post(&mut room, CARA, &number.to_string(), "tea");
    }
    for number in 1..=max {
        assert!(run(&mut room, BOB, pin(number)).unwrap().is_some());
    }
    let refused = run(&mut room, BOB, pin(max + 1)).unwrap_err();
    assert_eq!(refused, Refusal::TooManyPins);
    assert!(refused.to_string().contains(&format!("at most {max}")), "{refused}");
    assert_eq!(run(&mut room, BOB, pin(1)), Ok(None), "one of them is taken still");
    // A deletion makes room for another one.
    run(&mut room, CARA, Command::Delete { seq: seq(7) }).unwrap();
    assert!(run(&mut room, BOB, pin(max + 1)).unwrap().is_some());
}

#[test]
fn a_pin_goes_with_its_message() {
    let mut room = room();
    for number in 1..=4 {
        post(&mut room, CARA, &number.to_string(), "tea");
        run(&mut room, BOB, pin(number)).unwrap();
    }
    run(&mut room, CARA, Command::Delete { seq: seq(4) }).unwrap();
    assert_eq!(pinned(&room), [1, 2, 3]);
    assert_eq!(run(&mut room, BOB, unpin(4)), Err(Refusal::NoMessage(seq(4))));
    let expired = room.expire(seq(2)).unwrap();
    room.commit(expired, at(0));
    assert_eq!(pinned(&room), [3]);
    assert_eq!(run(&mut room, BOB, pin(1)), Err(Refusal::NoMessage(seq(1))));
    run(&mut room, CARA, Command::Erase { seq: seq(3) }).unwrap();
    assert!(pinned(&room).is_empty());
}
