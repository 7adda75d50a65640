//! What every store promises of pinned and saved messages.

use folkmoot::storage::contract::{Directory, RoomLog, UserLog};
use folkmoot::storage::{
    ControlError, LeaveReason, Message, NewSaved, Offset, PageAnchor, Quote, Role, RoomEvent,
    Saving, Store, StoredMessage, UserId,
};

use crate::suite::{ANA, BO, HALL, NOW, epoch, message, populate, record, seq};

async fn append(store: &impl RoomLog, events: impl IntoIterator<Item = RoomEvent>) {
    let epoch = epoch(store).await;
    for event in events {
        let loaded = store.load_room(HALL, 0, NOW).await.expect("it can be read");
        let offset = loaded.expect("it exists").summary.last_offset.as_u64() + 1;
        store.append_room(epoch, record(offset, event)).await.expect("there is room");
    }
}

fn pinned(number: u64, on: bool) -> RoomEvent {
    RoomEvent::Pinned { seq: seq(number), by: BO, on }
}

/// The list, the marks of the history, and what the room's actor begins with.
async fn pins(store: &impl RoomLog) -> (Vec<u64>, Vec<u64>, Vec<u64>) {
    let listed = store.pins(HALL, None, 50, ANA).await.expect("it can be read");
    let page = store.history(HALL, PageAnchor::Latest, 100, ANA).await.expect("it can be read");
    let marked = page.messages.iter().filter(|stored| stored.is_pinned);
    let loaded = store.load_room(HALL, 0, NOW).await.expect("it can be read");
    let mut known = loaded.expect("it exists").pins;
    known.sort_unstable();
    (
        listed.iter().map(|pin| pin.message.message.seq.as_u64()).collect(),
        marked.map(|stored| stored.message.seq.as_u64()).collect(),
        known.iter().map(|seq| seq.as_u64()).collect(),
    )
}

pub(crate) async fn pins_come_last_first_and_go_with_their_messages(
    store: impl RoomLog + Directory,
) {
    populate(&store).await;
    let said = (1..=5).map(|number| RoomEvent::Message(message(number, ANA)));
    append(&store, said).await;
    append(&store, [3, 1, 5, 2, 4].map(|number| pinned(number, true))).await;
    append(&store, [pinned(4, false), pinned(3, false), pinned(3, true)]).await;
    assert_eq!(pins(&store).await, (vec![3, 2, 5, 1], vec![1, 2, 3, 5], vec![1, 2, 3, 5]));
    let first = store.pins(HALL, None, 1, ANA).await.expect("it can be read");
    assert_eq!((first[0].by.id, first[0].at.as_u64()), (BO, first[0].offset.as_u64()));
    let second = store.pins(HALL, Some(first[0].offset), 1, ANA).await.expect("it can be read");
    assert_eq!(second[0].message.message.seq, seq(2));
    append(&store, [RoomEvent::Deleted { seq: seq(5), by: ANA }]).await;
    assert_eq!(pins(&store).await, (vec![3, 2, 1], vec![1, 2, 3], vec![1, 2, 3]));
    append(&store, [RoomEvent::Expired { up_to: seq(2) }]).await;
    assert_eq!(pins(&store).await, (vec![3], vec![3], vec![3]));
    let beyond = store.pins(HALL, Some(Offset::from_u64(u64::MAX)), 50, ANA).await;
    assert_eq!(beyond.expect("any number may be asked for").len(), 1);
}

/// A message that answers another one.
fn answer(number: u64, quoted: u64) -> RoomEvent {
    let quote = Quote { seq: seq(quoted), user: ANA, name: "Ana".into(), body: "…".into() };
    RoomEvent::Message(Message { reply_to: Some(quote), ..message(number, BO) })
}

pub(crate) async fn a_thread_is_a_message_and_all_that_grew_out_of_it(
    store: impl RoomLog + Directory,
) {
    async fn thread(store: &impl RoomLog, of: u64, after: Option<u64>, limit: u32) -> Vec<u64> {
        let found = store.thread(HALL, seq(of), after.map(seq), limit, ANA).await;
        let found = found.expect("it can be read");
        found.iter().map(|stored| stored.message.seq.as_u64()).collect()
    }
    populate(&store).await;
    let said = [1, 2].map(|number| RoomEvent::Message(message(number, ANA)));
    append(&store, said).await;
    // 3 and 6 answer 1, 5 answers 3, 7 answers 5; 4 answers 2.
    append(&store, [(3, 1), (4, 2), (5, 3), (6, 1), (7, 5)].map(|(n, to)| answer(n, to))).await;
    assert_eq!(thread(&store, 1, None, 50).await, [1, 3, 5, 6, 7]);
    assert_eq!(thread(&store, 3, None, 50).await, [3, 5, 7]);
    assert_eq!(thread(&store, 7, None, 50).await, [7]);
    assert_eq!(thread(&store, 1, None, 2).await, [1, 3]);
    assert_eq!(thread(&store, 1, Some(3), 2).await, [5, 6]);
    assert_eq!(thread(&store, 9, None, 50).await, [0; 0]);
    assert_eq!(thread(&store, u64::MAX, None, 50).await, [0; 0]);
    append(&store, [RoomEvent::Deleted { seq: seq(3), by: ANA }]).await;
    // Its answers have lost what they quote, and with that their place; they stay in the history.
    assert_eq!(thread(&store, 1, None, 50).await, [1, 3, 6]);
    assert_eq!(thread(&store, 5, None, 50).await, [5, 7]);
}

async fn save(store: &impl Directory, number: u64) -> Result<Saving, ControlError> {
    let new = NewSaved { user: BO, room: HALL, seq: seq(number), at: NOW };
    store.save_message(new, 3).await
}

/// What Bo sees: the list and the numbers.
async fn saved(store: &impl UserLog, user: UserId) -> (Vec<u64>, Vec<u64>) {
    let listed = store.saved(user, None, 50).await.expect("it can be read");
    let numbers = store.saved_numbers(user).await.expect("it can be read");
    (
        listed.iter().map(|saved| saved.message.message.seq.as_u64()).collect(),
        numbers.iter().map(|(_, seq)| seq.as_u64()).collect(),
    )
}

pub(crate) async fn saved_messages_are_shown_to_members_and_end_at_a_number(
    store: impl RoomLog + UserLog + Directory,
) {
    populate(&store).await;
    let bo_joins = || {
        let (name, display_name) = ("bo".to_owned(), "Bo".to_owned());
        RoomEvent::Joined { user: BO, name, display_name, role: Role::Member }
    };
    append(&store, [bo_joins()]).await;
    append(&store, (1..=5).map(|number| RoomEvent::Message(message(number, ANA)))).await;
    for number in [2, 1, 3, 2] {
        assert_eq!(save(&store, number).await.expect("it is there"), Saving::Done);
    }
    assert_eq!(saved(&store, BO).await, (vec![3, 1, 2], vec![1, 2, 3]));
    assert_eq!(saved(&store, ANA).await, (vec![], vec![]));
    assert_eq!(save(&store, 4).await.expect("it is there"), Saving::Full);
    let none = save(&store, 6).await;
    assert!(matches!(none, Err(ControlError::NotFound(_))), "{none:?}");
    let page = store.saved(BO, None, 1).await.expect("it can be read");
    let next = store.saved(BO, Some(page[0].number), 5).await.expect("it can be read");
    let next: Vec<_> = next.iter().map(|saved| saved.message.message.seq.as_u64()).collect();
    assert_eq!(next, [1, 2]);
    // A deletion that is still in the log makes room already.
    append(&store, [RoomEvent::Deleted { seq: seq(1), by: ANA }]).await;
    assert_eq!(save(&store, 4).await.expect("it is there"), Saving::Done);
    let gone = save(&store, 1).await;
    assert!(matches!(gone, Err(ControlError::NotFound(_))), "{gone:?}");
    assert_eq!(saved(&store, BO).await, (vec![4, 3, 2], vec![2, 3, 4]));
    let leaves = RoomEvent::Left { user: BO, by: None, reason: LeaveReason::Left };
    append(&store, [leaves]).await;
    assert_eq!(saved(&store, BO).await, (vec![], vec![]));
    append(&store, [bo_joins()]).await;
    append(&store, [RoomEvent::Expired { up_to: seq(3) }]).await;
    assert_eq!(saved(&store, BO).await, (vec![4], vec![4]));
    store.unsave_message(BO, HALL, seq(4)).await.expect("one's own can be taken off");
    assert_eq!(saved(&store, BO).await, (vec![], vec![]));
}

/// Reactions to a message: emoji, how many, and whether Bo is one of them.
type Seen = Vec<(String, u64, bool)>;

/// A page's reactions, by message.
fn reactions<'a>(page: impl Iterator<Item = &'a StoredMessage>) -> Vec<(u64, Seen)> {
    let of = |stored: &StoredMessage| {
        let seen = stored.reactions.iter();
        let seen = seen.map(|one| (one.emoji.clone(), one.count, one.is_mine)).collect::<Seen>();
        (stored.message.seq.as_u64(), seen)
    };
    page.map(of).collect()
}

/// The rows of a page and of what hangs on them come by a few statements, however many they are: on
/// a database elsewhere each is a journey.
pub(crate) async fn a_page_takes_as_many_statements_for_forty_messages_as_for_two(store: Store) {
    const LEN: u64 = 40;
    populate(&store).await;
    let bo = ("bo".to_owned(), "Bo".to_owned());
    let joined = RoomEvent::Joined { user: BO, name: bo.0, display_name: bo.1, role: Role::Member };
    append(&store, [joined]).await;
    append(&store, [RoomEvent::Message(message(1, ANA))]).await;
    // Every third one answers the one before it, the others the first.
    let to = |number| if number % 3 == 0 { number - 1 } else { 1 };
    append(&store, (2..=LEN).map(|number| answer(number, to(number)))).await;
    append(&store, (1..=LEN).map(|number| pinned(number, true))).await;
    let react = |number, user, emoji: &str| {
        let seq = seq(number);
        RoomEvent::Reaction { seq, user, emoji: emoji.to_owned(), on: true }
    };
    let given = (1..=LEN).flat_map(|n| [react(n, ANA, "b"), react(n, BO, "b"), react(n, ANA, "a")]);
    append(&store, given).await;
    for number in 1..=LEN {
        let new = NewSaved { user: BO, room: HALL, seq: seq(number), at: NOW };
        store.save_message(new, 100).await.expect("it is there");
    }
    let seen = || vec![("b".to_owned(), 2, true), ("a".to_owned(), 1, false)];
    let up = |len| (1..=len).map(|number| (number, seen())).collect::<Vec<_>>();
    let down = |len| (LEN - len + 1..=LEN).rev().map(|n| (n, seen())).collect::<Vec<_>>();
    let mut counts = Vec::new();
    for len in [2, u32::try_from(LEN).expect("a small constant")] {
        let before = store.stats().statements_read;
        let thread = store.thread(HALL, seq(1), None, len, BO).await.expect("it can be read");
        let after_thread = store.stats().statements_read;
        let pins = store.pins(HALL, None, len, BO).await.expect("it can be read");
        let after_pins = store.stats().statements_read;
        let saved = store.saved(BO, None, len).await.expect("it can be read");
        let after_saved = store.stats().statements_read;
        let len = u64::from(len);
        assert_eq!(reactions(thread.iter()), up(len));
        assert_eq!(reactions(pins.iter().map(|pin| &pin.message)), down(len));
        assert!(pins.iter().all(|pin| pin.by.id == BO));
        assert_eq!(reactions(saved.iter().map(|saved| &saved.message)), down(len));
        let spent = [before, after_thread, after_pins, after_saved];
        counts.push([0, 1, 2].map(|part| spent[part + 1] - spent[part]));
    }
    assert_eq!(counts[0], counts[1], "of the thread, the pins and what is saved");
}

pub(crate) async fn of_a_thread_that_is_too_long_its_first_thousand_are_shown(store: Store) {
    populate(&store).await;
    append(&store, [RoomEvent::Message(message(1, ANA))]).await;
    let epoch = epoch(&store).await;
    let loaded = store.load_room(HALL, 0, NOW).await.expect("it can be read");
    let offset = loaded.expect("it exists").summary.last_offset.as_u64();
    // Each odd one is the newest of a chain, each even one answers the first.
    let to = |number| if number % 2 == 0 { 1 } else { number - 2 };
    let said = (2..=1_102).map(|n| record(offset + n - 1, answer(n, to(n))));
    let mut acknowledged = Vec::new();
    for record in said {
        acknowledged.push(store.append_room(epoch, record));
    }
    for append in acknowledged {
        append.await.expect("there is room");
    }
    let mut found = Vec::new();
    while let Ok(page) = store.thread(HALL, seq(1), found.last().copied(), 300, ANA).await
        && !page.is_empty()
    {
        found.extend(page.iter().map(|stored| stored.message.seq));
    }
    assert_eq!(found, (1..=1_000).map(seq).collect::<Vec<_>>());
}
