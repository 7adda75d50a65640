//! What every store promises of pinned and saved messages.

use folkmoot::storage::contract::{Directory, RoomLog, UserLog};
use folkmoot::storage::{
    ControlError, LeaveReason, Message, NewSaved, Offset, PageAnchor, Quote, Role, RoomEvent,
    Saving, UserId,
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
