//! A page from memory is the page that the store gives, whatever happened.

use proptest::prelude::*;

use super::*;
use crate::storage::record::Quote;
use crate::storage::{NewAccount, NewDevice, NewRoom, Record, RoomId, Store, StoreOptions};

const ANNA: UserId = UserId::from_u64(1);
const ROOM: RoomId = RoomId::from_u64(9);

fn seq(number: u64) -> Seq {
    Seq::from_u64(number)
}

/// What may happen: a message, answering an earlier one or not, or a change of one.
#[derive(Debug, Clone)]
enum Step {
    Say {
        reply_to: Option<u64>,
    },
    Edit(u64),
    Delete(u64),
    Pin {
        seq: u64,
        on: bool,
    },
    React {
        seq: u64,
        user: u64,
        emoji: u8,
        on: bool,
    },
    /// All up to this one are kept no longer.
    Expire(u64),
}

fn any_step() -> impl Strategy<Value = Step> {
    let number = || 1u64..30;
    prop_oneof![
        4 => proptest::option::of(number()).prop_map(|reply_to| Step::Say { reply_to }),
        2 => number().prop_map(Step::Edit),
        1 => number().prop_map(Step::Delete),
        2 => (number(), any::<bool>()).prop_map(|(seq, on)| Step::Pin { seq, on }),
        1 => (1u64..12).prop_map(Step::Expire),
        4 => (number(), 1u64..4, 0u8..3, any::<bool>())
            .prop_map(|(seq, user, emoji, on)| Step::React { seq, user, emoji, on }),
    ]
}

/// The events of a history, as a room would decide them.
fn events(steps: &[Step]) -> Vec<RoomEvent> {
    let (mut first, mut last) = (1, 0);
    let mut deleted = Vec::new();
    let mut events = Vec::new();
    for (place, step) in steps.iter().enumerate() {
        let is_there =
            |seq: &u64, deleted: &[u64]| (first..=last).contains(seq) && !deleted.contains(seq);
        match step {
            Step::Say { reply_to } => {
                let quoted = reply_to.filter(|seq| is_there(seq, &deleted));
                last += 1;
                let quote = quoted.map(|number| Quote {
                    seq: seq(number),
                    user: ANNA,
                    name: "Anna".to_owned(),
                    body: "quoted".to_owned(),
                });
                events.push(RoomEvent::Message(Message {
                    seq: seq(last),
                    user: ANNA,
                    name: "Anna".to_owned(),
                    key: format!("key {last}"),
                    content_hash: last,
                    body: format!("body {last}"),
                    reply_to: quote,
                    mentions: vec![UserId::from_u64(2)],
                    mention_all: last % 5 == 0,
                    attachments: Vec::new(),
                }));
            }
            Step::Edit(number) if is_there(number, &deleted) => {
                let (body, mentions) = (format!("edited {place}"), Vec::new());
                events.push(RoomEvent::Edited { seq: seq(*number), body, mentions });
            }
            Step::Delete(number) if is_there(number, &deleted) => {
                deleted.push(*number);
                events.push(RoomEvent::Deleted { seq: seq(*number), by: ANNA });
            }
            Step::Pin { seq: number, on } if is_there(number, &deleted) => {
                events.push(RoomEvent::Pinned { seq: seq(*number), by: ANNA, on: *on });
            }
            Step::React { seq: number, user, emoji, on } if is_there(number, &deleted) => {
                let (user, emoji) = (UserId::from_u64(*user), format!("e{emoji}"));
                events.push(RoomEvent::Reaction { seq: seq(*number), user, emoji, on: *on });
            }
            Step::Expire(number) if (first..=last).contains(number) => {
                first = number + 1;
                events.push(RoomEvent::Expired { up_to: seq(*number) });
            }
            Step::Edit(_)
            | Step::Delete(_)
            | Step::Pin { .. }
            | Step::React { .. }
            | Step::Expire(_) => {}
        }
    }
    events
}

async fn store(name: &str) -> (std::path::PathBuf, Store) {
    let directory =
        std::env::temp_dir().join(format!("folkmoot-recent-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    let store = Store::open(&StoreOptions::small(&directory)).unwrap();
    let (at, name) = (UnixMillis::from_u64(1), "anna".to_owned());
    let (display_name, password_hash) = ("Anna".to_owned(), "!".to_owned());
    let account = NewAccount { id: ANNA, name, display_name, password_hash, at };
    let id = crate::storage::DeviceId::from_u64(2);
    let device = NewDevice { id, user: ANNA, label: String::new(), token_hash: [1; 32], at };
    store.create_account(account, device).await.unwrap();
    (directory, store)
}

/// Plays a history in a room of its own, into the store and into memory, and compares all pages.
async fn compare(store: &Store, room: RoomId, steps: &[Step]) {
    let (name, topic, at) = ("hall".to_owned(), String::new(), UnixMillis::from_u64(1));
    store.create_room(NewRoom { id: room, name, topic, owner: ANNA, at }).await.unwrap();
    let mut recent = Recent::default();
    for (place, event) in events(steps).into_iter().enumerate() {
        let offset = Offset::from_u64(place as u64 + 2);
        let record = RoomRecord { room, offset, at: UnixMillis::from_u64(place as u64 / 2), event };
        drop(store.append(store.write_epoch(), &Record::Room(record.clone())));
        recent.apply(&record);
    }
    if recent.newest().is_none() {
        return;
    }
    let numbers = (0..36).step_by(3).map(seq);
    let anchors = numbers
        .flat_map(|seq| [PageAnchor::Before(seq), PageAnchor::After(seq), PageAnchor::Around(seq)]);
    for anchor in anchors.chain([PageAnchor::Latest]) {
        for limit in [1, 4, 100] {
            let stored = store.history(room, anchor, limit, UserId::from_u64(2)).await.unwrap();
            let remembered = recent.page(anchor, limit, UserId::from_u64(2));
            // What begins before the first that is kept may be left to the store.
            let first = recent.first_kept().as_u64();
            let may_be_left = match anchor {
                PageAnchor::Latest | PageAnchor::Before(_) => false,
                PageAnchor::After(seq) => seq.as_u64() + 1 < first,
                PageAnchor::Around(seq) => seq.as_u64() < first + 50,
            };
            if remembered.is_some() || first == 1 || !may_be_left {
                assert_eq!(remembered, Some(stored), "{anchor:?} {limit} of {steps:?}");
            }
        }
    }
}

#[test]
fn a_page_from_memory_is_the_page_that_the_store_gives() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (directory, store) = runtime.block_on(store("pages"));
    let mut runner =
        proptest::test_runner::TestRunner::new(ProptestConfig { cases: 8, ..Default::default() });
    let mut room = ROOM.as_u64();
    let room = std::cell::RefCell::new(&mut room);
    runner
        .run(&proptest::collection::vec(any_step(), 0..60), |steps| {
            **room.borrow_mut() += 1;
            let id = RoomId::from_u64(**room.borrow());
            runtime.block_on(compare(&store, id, &steps));
            Ok(())
        })
        .unwrap();
    runtime.block_on(store.close());
    std::fs::remove_dir_all(directory).unwrap();
}

fn said(recent: &mut Recent, number: u64, body: &str) {
    let mut event = events(&[Step::Say { reply_to: None }]).remove(0);
    if let RoomEvent::Message(message) = &mut event {
        (message.seq, message.body) = (seq(number), body.to_owned());
    }
    let at = UnixMillis::from_u64(number);
    recent.apply(&RoomRecord { room: ROOM, offset: Offset::from_u64(number + 1), at, event });
}

#[test]
fn what_memory_does_not_reach_is_left_to_the_store() {
    let mut recent = Recent::default();
    for number in 1..=LEN_MAX as u64 + 10 {
        said(&mut recent, number, "x");
    }
    assert!(recent.page(PageAnchor::Before(seq(12)), 2, ANNA).is_none());
    assert!(recent.page(PageAnchor::After(seq(9)), 2, ANNA).is_none());
    assert!(recent.page(PageAnchor::After(seq(10)), 2, ANNA).is_some());
    assert!(recent.page(PageAnchor::Latest, 100, ANNA).is_some());
    assert!(Recent::default().page(PageAnchor::Latest, 1, ANNA).is_none());
}

#[test]
fn the_longest_messages_take_no_more_memory_than_many_short_ones() {
    let mut recent = Recent::default();
    let body = "x".repeat(32 * 1024);
    for number in 1..=100 {
        said(&mut recent, number, &body);
    }
    assert!(recent.bytes <= BYTES_MAX && !recent.messages.is_empty());
}

#[test]
fn reactions_by_the_hundred_are_left_to_the_store() {
    let mut recent = Recent::default();
    said(&mut recent, 1, "x");
    for user in 0..=REACTIONS_MAX as u64 {
        assert!(recent.page(PageAnchor::Latest, 1, ANNA).is_some());
        let (user, emoji) = (UserId::from_u64(user), "e".to_owned());
        let event = RoomEvent::Reaction { seq: seq(1), user, emoji, on: true };
        let (offset, at) = (Offset::from_u64(3), UnixMillis::from_u64(3));
        recent.apply(&RoomRecord { room: ROOM, offset, at, event });
    }
    assert!(recent.page(PageAnchor::Latest, 1, ANNA).is_none());
}
