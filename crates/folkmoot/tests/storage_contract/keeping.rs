//! What every store promises of messages that are kept no longer.

use folkmoot::storage::contract::{Directory, Keeping, RoomLog, UserLog};
use folkmoot::storage::{
    ControlError, Message, Offset, PageAnchor, Quote, Retention, RoomEvent, RoomRecord, Seq,
    UnixMillis,
};

use futures_util::future::join_all;

use crate::suite::{ANA, BO, HALL, NOW, epoch, message, populate, record, seq};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Says ten messages, a day between each and the next one; the second mentions Bo, the ninth quotes
/// the first. The offset of the last is given.
async fn ten_days(store: &(impl RoomLog + Directory)) -> u64 {
    populate(store).await;
    let epoch = epoch(store).await;
    for number in 1..=10 {
        let mut message = message(number, ANA);
        if number == 2 {
            message.mentions = vec![BO];
        }
        if number == 9 {
            let (name, body) = ("Ana".to_owned(), "body 1".to_owned());
            message.reply_to = Some(Quote { seq: seq(1), user: ANA, name, body });
        }
        let record = RoomRecord {
            at: UnixMillis::from_u64(number * DAY_MS),
            ..record(number + 1, RoomEvent::Message(message))
        };
        store.append_room(epoch, record).await.expect("there is room");
    }
    11
}

fn on_day(day: u64) -> UnixMillis {
    UnixMillis::from_u64(day * DAY_MS + 1)
}

async fn due(store: &impl Keeping, day: u64) -> Option<Seq> {
    let found = store.due(HALL, on_day(day)).await.expect("it can be read");
    let page = store.rooms_with_due(None, on_day(day)).await.expect("it can be read");
    assert_eq!(page.rooms.contains(&HALL), found.is_some(), "day {day}");
    found.map(|due| due.up_to)
}

pub(crate) async fn what_is_due_follows_from_the_rules(store: impl RoomLog + Directory + Keeping) {
    ten_days(&store).await;
    assert_eq!(due(&store, 1_000).await, None, "without a rule all are kept");
    let rule = |days, messages| Retention { days, messages };
    for (days, messages, day, up_to) in [
        (Some(3), None, 10, Some(7)),
        (Some(3), None, 3, None),
        (Some(3), None, 1_000, Some(10)),
        (None, Some(4), 10, Some(6)),
        (None, Some(10), 10, None),
        (Some(3), Some(8), 10, Some(7)),
        (Some(9), Some(4), 10, Some(6)),
    ] {
        store.set_retention(rule(days, messages)).await.expect("it can be set");
        assert_eq!(due(&store, day).await, up_to.map(seq), "{days:?} {messages:?} on {day}");
    }
    store.set_room_retention(HALL, Some(rule(None, None))).await.expect("it is there");
    assert_eq!(due(&store, 1_000).await, None, "the room has a rule of its own");
    store.set_room_retention(HALL, None).await.expect("it is there");
    assert_eq!(due(&store, 10).await, Some(seq(6)));
    let found = store.due(HALL, on_day(10)).await.expect("it can be read").expect("some are due");
    assert_eq!((found.messages, found.mentions), (6, vec![(BO, seq(2))]));
    let nowhere = folkmoot::storage::RoomId::from_u64(99);
    let missing = store.set_room_retention(nowhere, None).await;
    assert!(matches!(missing, Err(ControlError::NotFound(_))));
}

pub(crate) async fn a_message_from_a_clock_that_was_ahead_keeps_none_behind_it_for_longer(
    store: impl RoomLog + Directory + Keeping,
) {
    populate(&store).await;
    let epoch = epoch(&store).await;
    // The clock was a century ahead at the third and the last one.
    for (number, day) in (1..).zip([1, 2, 36_500, 4, 5, 9, 36_500]) {
        let record = RoomRecord {
            at: UnixMillis::from_u64(day * DAY_MS),
            ..record(number + 1, RoomEvent::Message(message(number, ANA)))
        };
        store.append_room(epoch, record).await.expect("there is room");
    }
    let rule = Retention { days: Some(3), messages: None };
    store.set_retention(rule).await.expect("it can be set");
    assert_eq!(due(&store, 4).await, Some(seq(1)));
    assert_eq!(due(&store, 6).await, Some(seq(2)), "whether the third is due nobody knows yet");
    assert_eq!(due(&store, 8).await, Some(seq(5)), "the third was sent before the fourth");
    assert_eq!(due(&store, 20).await, Some(seq(6)), "how old the last one is nobody knows");
}

pub(crate) async fn many_messages_from_a_clock_that_was_ahead_keep_none_behind_them_for_longer(
    store: impl RoomLog + Directory + Keeping,
) {
    populate(&store).await;
    let epoch = epoch(&store).await;
    let ahead = 1_100;
    let appends = (1..=ahead + 1).map(|number| {
        let day = if number <= ahead { 36_500 } else { 4 };
        let record = RoomRecord {
            at: UnixMillis::from_u64(day * DAY_MS),
            ..record(number + 1, RoomEvent::Message(message(number, ANA)))
        };
        store.append_room(epoch, record)
    });
    for appended in join_all(appends).await {
        appended.expect("there is room");
    }
    let rule = Retention { days: Some(3), messages: None };
    store.set_retention(rule).await.expect("it can be set");
    assert_eq!(due(&store, 6).await, None, "the last one is of the fourth day");
    let mut gone = 0;
    while let Some(up_to) = due(&store, 8).await {
        gone += 1;
        let expired = record(ahead + 2 + gone, RoomEvent::Expired { up_to });
        store.append_room(epoch, expired).await.expect("there is room");
    }
    assert_eq!(gone, 2, "a thousand at once");
    let page = store.history(HALL, PageAnchor::After(seq(0)), 100, ANA).await;
    assert_eq!(page.expect("it can be read").messages.len(), 0);
}

pub(crate) async fn what_has_expired_is_gone_with_all_that_hung_on_it(
    store: impl RoomLog + UserLog + Directory + Keeping,
) {
    let last = ten_days(&store).await;
    let epoch = epoch(&store).await;
    let reaction = RoomEvent::Reaction { seq: seq(1), user: ANA, emoji: "x".to_owned(), on: true };
    let edit = RoomEvent::Edited { seq: seq(1), body: "edited 1".into(), mentions: Vec::new() };
    let expired = RoomEvent::Expired { up_to: seq(6) };
    for (offset, event) in (last + 1..).zip([reaction, edit, expired]) {
        store.append_room(epoch, record(offset, event)).await.expect("there is room");
    }
    let page = store.history(HALL, PageAnchor::After(seq(0)), 100, ANA).await;
    let page = page.expect("it can be read");
    let left: Vec<u64> = page.messages.iter().map(|one| one.message.seq.as_u64()).collect();
    assert_eq!((left, page.first_seq, page.last_seq), ((7..=10).collect(), seq(7), seq(10)));
    let Message { reply_to, .. } = &page.messages[2].message;
    assert_eq!(reply_to.as_ref().map(|quote| quote.body.as_str()), Some(""), "a quote of it");
    assert!(store.message(HALL, seq(6), ANA).await.expect("it can be read").is_none());
    assert!(store.reactions(HALL, seq(1), 10).await.expect("it can be read").is_empty());
    // The sixth has the offset 7: who was away since before it has to fetch anew.
    for (since, is_whole) in [(1, false), (6, false), (7, true), (12, true), (14, true)] {
        let events = store.room_events(HALL, Offset::from_u64(since), 100).await;
        let events = events.expect("it can be read");
        assert_eq!(events.is_some(), is_whole, "since {since}");
        let text = format!("{events:?}");
        assert!(!text.contains("edited 1") && !text.contains("\"body 1\""), "{text}");
    }
    let loaded = store.load_room(HALL, 100, NOW).await.expect("it can be read");
    let summary = loaded.expect("it exists").summary;
    assert_eq!((summary.first_seq, summary.last_seq), (seq(7), seq(10)));
    let left = store.unindexed().await.expect("it can be read");
    let [unindexed] = left[..] else { panic!("{left:?}") };
    assert_eq!((unindexed.from, unindexed.until), (seq(1), seq(7)));
    store.note_indexed_from(HALL, seq(7)).await.expect("it can be noted");
    assert!(store.unindexed().await.expect("it can be read").is_empty());
    // The last of them goes, and numbers go on all the same.
    let expired = RoomEvent::Expired { up_to: seq(10) };
    store.append_room(epoch, record(15, expired)).await.expect("there is room");
    let said = record(16, RoomEvent::Message(message(11, ANA)));
    store.append_room(epoch, said).await.expect("there is room");
    let page = store.history(HALL, PageAnchor::Latest, 100, ANA).await.expect("it can be read");
    assert_eq!((page.messages.len(), page.first_seq, page.last_seq), (1, seq(11), seq(11)));
}
