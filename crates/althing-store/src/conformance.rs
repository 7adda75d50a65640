//! What every store has to do, as a suite that every adapter runs. What is left to be delivered
//! has a part of its own, below.
//!
//! Each part uses keys of its own, so one store can be used for all of them. A violation panics
//! with the promise's name.

mod deliveries;

use std::sync::Arc;

use althing::{ActorId, Epoch};

use crate::store::{Event, Kept, Snapshot, Store, StoreError, Turn};

/// Runs the whole suite. `reopen` gives the store as another process would find it after this one
/// has ended; for a store that keeps nothing beyond its life, the same one again.
///
/// # Panics
/// If the store breaks a promise.
pub async fn run(
    store: Arc<dyn Store>,
    reopen: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    a_new_actor_has_nothing(&*store).await;
    what_was_committed_is_there(&*store).await;
    a_commit_that_does_not_follow_is_refused(&*store).await;
    an_older_epoch_is_refused(&*store).await;
    an_open_fences_those_before(&*store).await;
    commits_take_effect_in_the_order_of_their_calls(&*store).await;
    the_journal_keeps_its_order_and_its_pages(&*store).await;
    events_that_do_not_go_on_from_the_last_are_refused(&*store).await;
    a_snapshot_beside_the_journal_says_what_it_includes(&*store).await;
    actors_do_not_see_each_other(&*store).await;
    any_bytes_and_any_key_are_kept(&*store).await;
    anonymous_actors_are_refused(&*store).await;
    deliveries::run(&*store).await;
    what_was_acknowledged_is_there_afterwards(store, reopen).await;
}

fn id(key: &str) -> ActorId {
    ActorId::named("conformance", key)
}

fn turn(key: &str, epoch: u64, version: u64, state: &[u8]) -> Turn {
    let snapshot = Some(Snapshot { schema: 1, bytes: state.to_vec(), includes: 0 });
    Turn { snapshot, ..Turn::new(id(key), Epoch(epoch), version) }
}

fn event(number: u64, body: &str) -> Event {
    Event { number, schema: 1, bytes: body.as_bytes().to_vec() }
}

async fn state(store: &dyn Store, key: &str, epoch: u64) -> Vec<u8> {
    let kept = store.open(&id(key), Epoch(epoch)).await.expect("the epoch may open it");
    kept.snapshot.expect("it has been committed").bytes
}

async fn a_new_actor_has_nothing(store: &dyn Store) {
    let kept = store.open(&id("new"), Epoch(1)).await.expect("it opens");
    assert_eq!(kept, Kept::default(), "a new actor has nothing");
    assert_eq!(store.events(&id("new"), 0, 10).await.expect("it reads"), []);
}

async fn what_was_committed_is_there(store: &dyn Store) {
    store.open(&id("there"), Epoch(1)).await.expect("it opens");
    store.commit(turn("there", 1, 1, b"one")).await.expect("it follows");
    store.commit(turn("there", 1, 2, b"two")).await.expect("it follows");
    let kept = store.open(&id("there"), Epoch(1)).await.expect("it opens");
    let snapshot = Snapshot { schema: 1, bytes: b"two".to_vec(), includes: 0 };
    assert_eq!(kept, Kept { version: 2, snapshot: Some(snapshot), ..Kept::default() });
}

async fn a_commit_that_does_not_follow_is_refused(store: &dyn Store) {
    store.open(&id("follow"), Epoch(1)).await.expect("it opens");
    store.commit(turn("follow", 1, 1, b"one")).await.expect("it follows");
    for version in [0, 1, 3] {
        let refused =
            store.commit(turn("follow", 1, version, b"no")).await.expect_err("it does not follow");
        assert!(
            matches!(refused, StoreError::Conflict { held: 1, yours, .. } if yours == version),
            "{refused}"
        );
        assert!(!refused.may_have_written());
    }
    assert_eq!(state(store, "follow", 1).await, b"one", "a refused commit writes nothing");
}

async fn an_older_epoch_is_refused(store: &dyn Store) {
    store.open(&id("older"), Epoch(5)).await.expect("it opens");
    store.commit(turn("older", 5, 1, b"five")).await.expect("it follows");
    let refused = store.open(&id("older"), Epoch(4)).await.expect_err("an older epoch");
    assert!(
        matches!(refused, StoreError::Fenced { held: Epoch(5), yours: Epoch(4), .. }),
        "{refused}"
    );
    let refused = store.commit(turn("older", 4, 2, b"four")).await.expect_err("an older epoch");
    assert!(matches!(refused, StoreError::Fenced { .. }), "{refused}");
    assert_eq!(state(store, "older", 5).await, b"five");
}

async fn an_open_fences_those_before(store: &dyn Store) {
    store.open(&id("fence"), Epoch(1)).await.expect("it opens");
    store.commit(turn("fence", 1, 1, b"old")).await.expect("it follows");
    store.open(&id("fence"), Epoch(2)).await.expect("a later epoch");
    // The former owner does not know yet: its commit follows by version, and must not be written.
    let refused = store.commit(turn("fence", 1, 2, b"late")).await.expect_err("it is fenced");
    assert!(matches!(refused, StoreError::Fenced { .. }), "{refused}");
    assert_eq!(state(store, "fence", 2).await, b"old");
    store.commit(turn("fence", 2, 2, b"new")).await.expect("the owner goes on");
}

async fn commits_take_effect_in_the_order_of_their_calls(store: &dyn Store) {
    store.open(&id("order"), Epoch(1)).await.expect("it opens");
    let answers: Vec<_> = (1..=100)
        .map(|version| store.commit(turn("order", 1, version, version.to_string().as_bytes())))
        .collect();
    let opened = store.open(&id("order"), Epoch(1));
    // Polled in the opposite order.
    for answer in answers.into_iter().rev() {
        answer.await.expect("each follows on the one called before");
    }
    let kept = opened.await.expect("it opens");
    assert_eq!(kept.version, 100, "an open sees the commits called before it");
    assert_eq!(state(store, "order", 1).await, b"100");
}

async fn the_journal_keeps_its_order_and_its_pages(store: &dyn Store) {
    store.open(&id("journal"), Epoch(1)).await.expect("it opens");
    for version in 1..=5 {
        let first = version * 2 - 1;
        let events =
            vec![event(first, &format!("e{first}")), event(first + 1, &format!("e{}", first + 1))];
        let turn = Turn { snapshot: None, events, ..turn("journal", 1, version, b"") };
        store.commit(turn).await.expect("it follows");
    }
    let all = store.events(&id("journal"), 0, 100).await.expect("it reads");
    let expected: Vec<_> = (1..=10).map(|n| event(n, &format!("e{n}"))).collect();
    assert_eq!(all, expected);
    let page = store.events(&id("journal"), 4, 3).await.expect("it reads");
    assert_eq!(page, expected[4..7]);
    let kept = store.open(&id("journal"), Epoch(1)).await.expect("it opens");
    assert_eq!((kept.version, kept.last_event, kept.snapshot), (5, 10, None));
}

async fn events_that_do_not_go_on_from_the_last_are_refused(store: &dyn Store) {
    let with = |version, numbers: &[u64]| {
        let events = numbers.iter().map(|number| event(*number, &format!("e{number}"))).collect();
        Turn { snapshot: None, events, ..turn("gap", 1, version, b"") }
    };
    store.commit(with(1, &[1, 2])).await.expect("it follows");
    // One that is there, one behind a hole, a hole within, one twice, and the end of all numbers.
    let wrong: [(&[u64], u64, u64); 5] =
        [(&[2], 2, 2), (&[4], 2, 4), (&[3, 5], 3, 5), (&[3, 3], 3, 3), (&[u64::MAX], 2, u64::MAX)];
    for (numbers, before, first) in wrong {
        let refused = store.commit(with(2, numbers)).await.expect_err("it does not follow");
        assert!(
            matches!(refused, StoreError::Gap { held, yours, .. } if (held, yours) == (before, first)),
            "{refused}"
        );
    }
    store.commit(with(2, &[3])).await.expect("it follows");
    let expected = [event(1, "e1"), event(2, "e2"), event(3, "e3")];
    assert_eq!(store.events(&id("gap"), 0, 9).await.expect("it reads"), expected);
}

async fn a_snapshot_beside_the_journal_says_what_it_includes(store: &dyn Store) {
    store.open(&id("fold"), Epoch(1)).await.expect("it opens");
    let first = Turn {
        snapshot: None,
        events: vec![event(1, "a"), event(2, "b")],
        ..turn("fold", 1, 1, b"")
    };
    store.commit(first).await.expect("it follows");
    let snapshot = Some(Snapshot { schema: 3, bytes: b"ab".to_vec(), includes: 2 });
    let second = Turn { snapshot: snapshot.clone(), events: vec![], ..turn("fold", 1, 2, b"") };
    store.commit(second).await.expect("it follows");
    let third = Turn { snapshot: None, events: vec![event(3, "c")], ..turn("fold", 1, 3, b"") };
    store.commit(third).await.expect("it follows");
    let kept = store.open(&id("fold"), Epoch(1)).await.expect("it opens");
    assert_eq!(kept, Kept { version: 3, snapshot, last_event: 3, replies: vec![] });
    assert_eq!(store.events(&id("fold"), 2, 10).await.expect("it reads"), [event(3, "c")]);
}

async fn actors_do_not_see_each_other(store: &dyn Store) {
    for (kind, key) in [("one", "a/b"), ("one/a", "b"), ("one", "a"), ("two", "a")] {
        let id = ActorId::named(kind, key);
        assert_eq!(store.open(&id, Epoch(1)).await.expect("it opens"), Kept::default(), "{id}");
        let snapshot =
            Some(Snapshot { schema: 1, bytes: id.to_string().into_bytes(), includes: 0 });
        let turn = Turn { snapshot, ..Turn::new(id, Epoch(1), 1) };
        store.commit(turn).await.expect("it follows");
    }
}

async fn any_bytes_and_any_key_are_kept(store: &dyn Store) {
    let long = "k".repeat(1_000);
    let keys = [
        "",
        "'; DROP TABLE actors; --",
        "ключ",
        "a\u{1f600}b",
        "line\nbreak",
        "nul",
        "nul\0",
        "nul\0l",
        &long,
    ];
    let large: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
    for key in keys {
        for (version, bytes) in [(1, &b"\0\xff"[..]), (2, &[]), (3, &large)] {
            store.open(&id(key), Epoch(1)).await.expect("it opens");
            store.commit(turn(key, 1, version, bytes)).await.expect("it follows");
            assert!(state(store, key, 1).await == bytes, "{key:?}");
        }
    }
    let highest = Epoch(u64::MAX >> 1);
    store.open(&id("epochs"), highest).await.expect("any epoch");
    let refused = store.open(&id("epochs"), Epoch(0)).await.expect_err("an older epoch");
    assert!(matches!(refused, StoreError::Fenced { held, .. } if held == highest), "{refused}");
}

async fn anonymous_actors_are_refused(store: &dyn Store) {
    let anonymous = althing::Node::builder("conformance").build().spawn(Nobody).id();
    let refused = store.open(&anonymous, Epoch(1)).await.expect_err("it has no key");
    assert!(matches!(refused, StoreError::NoKey(id) if id == anonymous));
}

struct Nobody;

impl althing::Actor for Nobody {
    const NAME: &'static str = "conformance.nobody";
}

async fn what_was_acknowledged_is_there_afterwards(
    store: Arc<dyn Store>,
    reopen: impl AsyncFnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
) {
    store.open(&id("again"), Epoch(3)).await.expect("it opens");
    let left = deliveries::posted("again", "left", 9);
    let replies = vec![deliveries::reply(1, "asked")];
    let (events, postings) = (vec![event(1, "first")], vec![left]);
    let commit = Turn { events, postings, replies, ..turn("again", 3, 1, b"kept") };
    store.commit(commit.clone()).await.expect("it follows");
    let store = reopen(store).await;
    let refused = store.open(&id("again"), Epoch(2)).await.expect_err("the epoch is kept, too");
    assert!(matches!(refused, StoreError::Fenced { .. }), "{refused}");
    assert_eq!(state(&*store, "again", 3).await, b"kept");
    assert_eq!(deliveries::kept_of(&*store, "again").await, commit.postings);
    let kept = store.open(&id("again"), Epoch(3)).await.expect("it opens");
    assert_eq!(kept.replies, commit.replies);
    assert_eq!(store.events(&id("again"), 0, 9).await.expect("it reads"), [event(1, "first")]);
}
