//! What a user of read states is promised.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use folkmoot_read_states::{
    Change, Options, ROOMS_MAX, ReadState, ReadStates, ReadStatesError, Row, RowStore, SqliteRows,
};
use support::errors::Errors;
use support::{Faulty, acknowledge, load, mention};

/// Small enough that of a thousand users most are evicted.
const SMALL: usize = 64 * 2_048;

async fn open(directory: &std::path::Path, options: Options) -> ReadStates {
    let store = SqliteRows::open(&directory.join("read-states.db")).unwrap();
    ReadStates::open(Arc::new(store), options).await.unwrap()
}

fn with_log(directory: &std::path::Path) -> Options {
    Options { log: Some(directory.join("log")), ..Options::default() }
}

#[tokio::test]
async fn an_acknowledgement_moves_forward_only() {
    let directory = tempfile::tempdir().unwrap();
    let states = open(directory.path(), Options::default()).await;
    assert_eq!(states.one(1, 2).await, Ok(ReadState { room: 2, ..ReadState::default() }));
    for (message, left) in [(10, 3), (9, 7)] {
        _ = states.change(1, 2, acknowledge(message, left)).unwrap();
    }
    assert_eq!(states.all(1).await.unwrap(), [ReadState { room: 2, last_read: 10, mentions: 3 }]);
}

#[tokio::test]
async fn a_mention_that_was_read_already_does_not_count() {
    let directory = tempfile::tempdir().unwrap();
    let states = open(directory.path(), Options::default()).await;
    for change in [acknowledge(10, 0), mention(10), mention(11), mention(12)] {
        _ = states.change(1, 2, change).unwrap();
    }
    assert_eq!(states.one(1, 2).await.unwrap().mentions, 2);
    _ = states.change(1, 2, Change::Forget).unwrap();
    assert_eq!(states.all(1).await.unwrap(), []);
}

#[tokio::test]
async fn a_user_who_is_not_in_memory_is_not_loaded_for_a_change() {
    let directory = tempfile::tempdir().unwrap();
    let store = Faulty::new(SqliteRows::open(&directory.path().join("read-states.db")).unwrap());
    let states = ReadStates::open(store.clone(), Options::default()).await.unwrap();
    for message in 1..=5 {
        assert_eq!(states.change(1, 2, mention(message)).unwrap().state(), None);
    }
    assert_eq!(store.loads(), 0);
    assert_eq!(states.one(1, 2).await.unwrap().mentions, 5);
    assert_eq!(store.loads(), 1);
    assert!(states.change(1, 2, acknowledge(5, 0)).unwrap().state().is_some());
}

/// What is durable survives, though the store has nothing of it: the files as they are at that
/// moment are all that a crash leaves.
#[tokio::test]
async fn a_durable_change_survives_a_crash() {
    let (before, after) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let states = open(before.path(), with_log(before.path())).await;
    _ = states.all(1).await.unwrap();
    for (user, change) in
        [(1, mention(1)), (1, mention(2)), (2, mention(1)), (1, acknowledge(1, 1))]
    {
        let changed = states.change(user, 7, change).unwrap();
        states.durable(changed).await.unwrap();
    }
    support::copy(before.path(), after.path());
    // Found twice, by the crash and by the crash after it, it still counts once.
    for _ in 0..2 {
        let states = open(after.path(), with_log(after.path())).await;
        let one = states.one(1, 7).await.unwrap();
        assert_eq!(one, ReadState { room: 7, last_read: 1, mentions: 1 });
        assert_eq!(states.one(2, 7).await.unwrap().mentions, 1);
    }
}

#[tokio::test]
async fn after_a_crash_the_rows_of_many_users_are_read_at_once() {
    let (before, after) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let states = open(before.path(), with_log(before.path())).await;
    for user in 0..500 {
        let changed = states.change(user, 7, mention(user + 1)).unwrap();
        states.durable(changed).await.unwrap();
    }
    support::copy(before.path(), after.path());
    let store = Faulty::new(SqliteRows::open(&after.path().join("read-states.db")).unwrap());
    store.hold_loads(true);
    let opening = tokio::spawn(ReadStates::open(store.clone(), with_log(after.path())));
    let many = async {
        while store.loads() < 100 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), many).await.expect("they are read one by one");
    store.hold_loads(false);
    let states = opening.await.unwrap().unwrap();
    for user in 0..500 {
        assert_eq!(states.one(user, 7).await.unwrap().mentions, 1, "{user}");
    }
}

#[tokio::test]
async fn what_is_due_is_stored_though_the_log_cannot_begin_a_segment() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteRows::open(&directory.path().join("read-states.db")).unwrap());
    let states = ReadStates::open(store.clone(), with_log(directory.path())).await.unwrap();
    let changed = states.change(1, 7, mention(1)).unwrap();
    states.durable(changed).await.unwrap();
    // Something that has the name of the next one.
    let in_the_way = directory.path().join("log/00000000000000000003.log");
    std::fs::create_dir(&in_the_way).unwrap();
    states.store_all().await.unwrap_err();
    assert!(store.load(1).await.unwrap().is_some());
    std::fs::remove_dir(&in_the_way).unwrap();
    states.store_all().await.unwrap();
}

/// A user is brought into memory with older changes while others, who were changed later, wait for
/// the store.
#[tokio::test]
async fn the_log_forgets_only_what_its_round_has_stored() {
    let (before, after) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = Faulty::new(SqliteRows::open(&before.path().join("read-states.db")).unwrap());
    let states = ReadStates::open(store.clone(), with_log(before.path())).await.unwrap();
    // In every shard somebody.
    for user in 0..1_000 {
        _ = states.all(user).await.unwrap();
    }
    let changed = states.change(5_000, 7, mention(1)).unwrap();
    states.durable(changed).await.unwrap();
    store.hold_loads(true);
    let loads = store.loads();
    let round = tokio::spawn({
        let states = states.clone();
        async move { states.store_all().await }
    });
    while store.loads() == loads {
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(Duration::from_millis(5)).await;
    for user in 0..1_000 {
        _ = states.change(user, 7, acknowledge(1, 0)).unwrap();
    }
    store.hold_loads(false);
    round.await.unwrap().unwrap();
    support::copy(before.path(), after.path());
    let states = open(after.path(), with_log(after.path())).await;
    assert_eq!(states.one(5_000, 7).await.unwrap().mentions, 1);
}

#[tokio::test]
async fn a_change_that_changes_nothing_waits_for_what_it_relies_on() {
    let (before, after) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let states = open(before.path(), with_log(before.path())).await;
    _ = states.all(1).await.unwrap();
    _ = states.change(1, 7, acknowledge(10, 0)).unwrap();
    let again = states.change(1, 7, acknowledge(9, 0)).unwrap();
    states.durable(again).await.unwrap();
    support::copy(before.path(), after.path());
    let states = open(after.path(), with_log(after.path())).await;
    assert_eq!(states.one(1, 7).await.unwrap().last_read, 10);
}

#[tokio::test]
async fn a_mention_of_many_counts_for_all_of_them_or_for_none() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { waiting_max: 64, ..Options::default() };
    let states = open(directory.path(), options).await;
    _ = states.all(1).await.unwrap();
    // One change may wait in a shard.
    _ = states.change(2, 6, mention(1)).unwrap();
    let refused = states.mention(&[1, 2], 7, 1);
    assert_eq!(refused, Err(ReadStatesError::Busy { waiting: 1 }));
    assert_eq!(states.one(1, 7).await.unwrap().mentions, 0);
    states.store_all().await.unwrap();
    _ = states.mention(&[1, 2], 7, 1).unwrap();
    for user in [1, 2] {
        assert_eq!(states.one(user, 7).await.unwrap().mentions, 1);
    }
    // Both of those in memory and those who are not, and who is named twice is mentioned once.
    let changed = states.mention(&[1, 3, 1, 3, 1], 8, 1).unwrap();
    assert_eq!(changed.len(), 2);
    for user in [1, 3] {
        assert_eq!(states.one(user, 8).await.unwrap().mentions, 1);
    }
}

#[tokio::test]
async fn a_torn_tail_of_the_log_loses_only_what_was_not_durable() {
    let directory = tempfile::tempdir().unwrap();
    let states = open(directory.path(), with_log(directory.path())).await;
    for message in 1..=100 {
        let changed = states.change(1, 7, mention(message)).unwrap();
        states.durable(changed).await.unwrap();
    }
    for cut in [1, 43, 44, 45, 44 * 50 + 7] {
        let torn = tempfile::tempdir().unwrap();
        support::copy(directory.path(), torn.path());
        support::cut_log(torn.path(), cut);
        let states = open(torn.path(), with_log(torn.path())).await;
        let lost = cut.div_ceil(44);
        assert_eq!(states.one(1, 7).await.unwrap().mentions, 100 - lost as u32, "{cut} bytes");
    }
}

/// A change that the disk has spoilt takes none of those along that were acknowledged after it.
#[tokio::test]
async fn a_flipped_bit_in_the_log_loses_its_own_change_only() {
    let directory = tempfile::tempdir().unwrap();
    let states = open(directory.path(), with_log(directory.path())).await;
    for message in 1..=100 {
        let changed = states.change(1, 7, mention(message)).unwrap();
        states.durable(changed).await.unwrap();
    }
    for byte in [0, 20, 43, 44 * 50 + 17, 44 * 100 - 1] {
        let spoilt = tempfile::tempdir().unwrap();
        support::copy(directory.path(), spoilt.path());
        support::flip_bit_of_log(spoilt.path(), byte);
        let states = open(spoilt.path(), with_log(spoilt.path())).await;
        assert_eq!(states.one(1, 7).await.unwrap().mentions, 99, "byte {byte}");
    }
}

#[tokio::test]
async fn who_is_evicted_with_changes_stays_readable_while_the_store_is_away() {
    let directory = tempfile::tempdir().unwrap();
    let store = Faulty::new(SqliteRows::open(&directory.path().join("read-states.db")).unwrap());
    let options = Options { bytes_max: SMALL, ..Options::default() };
    let states = ReadStates::open(store.clone(), options).await.unwrap();
    store.fail_saves(true);
    for user in 0..1_000 {
        _ = states.all(user).await.unwrap();
        _ = states.change(user, 1, acknowledge(user + 1, 0)).unwrap();
    }
    assert!(states.sizes().bytes < 2 * SMALL, "{:?}", states.sizes());
    for user in 0..1_000 {
        assert_eq!(states.one(user, 1).await.unwrap().last_read, user + 1);
    }
    assert!(states.store_all().await.is_err());
    store.fail_saves(false);
    states.store_all().await.unwrap();
    for user in 0..1_000 {
        assert_eq!(store.load(user).await.unwrap().unwrap().entries[0].last_read, user + 1);
    }
}

/// Nobody is brought into memory, but those who are there come into more and more rooms.
#[tokio::test]
async fn users_in_memory_who_come_into_more_rooms_take_no_more_memory_than_there_is() {
    let directory = tempfile::tempdir().unwrap();
    // Half of what they come to.
    let options = Options { bytes_max: 1 << 20, ..Options::default() };
    let states = open(directory.path(), options).await;
    for user in 0..300 {
        _ = states.all(user).await.unwrap();
    }
    for room in 1..=300 {
        for user in 0..300 {
            _ = states.change(user, room, acknowledge(1, 0)).unwrap();
        }
    }
    assert!(states.sizes().bytes <= 1 << 20, "{:?}", states.sizes());
    for user in 0..300 {
        assert_eq!(states.all(user).await.unwrap().len(), 300);
    }
}

#[tokio::test]
async fn users_who_come_and_go_while_the_store_is_away_wait_once() {
    let directory = tempfile::tempdir().unwrap();
    let store = Faulty::new(SqliteRows::open(&directory.path().join("read-states.db")).unwrap());
    // Of a shard's 16 users some three fit in.
    let options = Options { bytes_max: 64 * 512, ..Options::default() };
    let states = ReadStates::open(store.clone(), options).await.unwrap();
    store.fail_saves(true);
    for user in 0..1_000 {
        _ = states.all(user).await.unwrap();
        _ = states.change(user, 1, acknowledge(1, 0)).unwrap();
    }
    for time in 2..=20 {
        for user in 0..1_000 {
            _ = states.change(user, 1, acknowledge(time, 0)).unwrap();
        }
        // Whoever is brought in makes them leave.
        for user in 0..300 {
            _ = states.all(time * 10_000 + user).await.unwrap();
        }
    }
    assert!(states.sizes().waiting < 6_000, "{:?}", states.sizes());
    store.fail_saves(false);
    states.store_all().await.unwrap();
    for user in 0..1_000 {
        assert_eq!(store.load(user).await.unwrap().unwrap().entries[0].last_read, 20);
    }
}

#[tokio::test]
async fn too_much_that_waits_is_refused_by_name_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = Faulty::new(SqliteRows::open(&directory.path().join("read-states.db")).unwrap());
    let options = Options { waiting_max: 64, ..Options::default() };
    let states = ReadStates::open(store.clone(), options).await.unwrap();
    _ = states.change(1, 1, mention(1)).unwrap();
    let Err(refused) = states.change(1, 2, mention(1)) else { panic!("one waits already") };
    assert_eq!(refused, ReadStatesError::Busy { waiting: 1 });
    states.store_all().await.unwrap();
    assert_eq!(states.all(1).await.unwrap().len(), 1);
    _ = states.change(1, 2, mention(1)).unwrap();
}

#[tokio::test]
async fn a_user_in_too_many_rooms_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let states = open(directory.path(), Options::default()).await;
    _ = states.all(9).await.unwrap();
    for room in 0..ROOMS_MAX as u64 {
        _ = states.change(9, room, acknowledge(1, 0)).unwrap();
    }
    let Err(refused) = states.change(9, u64::MAX, mention(1)) else { panic!("one too many") };
    assert_eq!(refused, ReadStatesError::TooManyRooms { user: 9 });
    _ = states.change(9, 5, acknowledge(2, 0)).unwrap();
}

#[tokio::test]
async fn a_room_too_many_of_a_user_who_was_not_in_memory_is_an_error_in_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteRows::open(&directory.path().join("read-states.db")).unwrap();
    let entries = (0..ROOMS_MAX as u64).map(|room| ReadState { room, last_read: 1, mentions: 0 });
    store.save(vec![Row { user: 9, version: 1, entries: entries.collect() }]).await.unwrap();
    let states = ReadStates::open(Arc::new(store), Options::default()).await.unwrap();
    let (errors, listening) = Errors::listen();
    _ = states.change(9, u64::MAX, mention(1)).unwrap();
    _ = states.change(9, 5, acknowledge(2, 0)).unwrap();
    assert_eq!(states.all(9).await.unwrap().len(), ROOMS_MAX);
    assert_eq!(states.one(9, 5).await.unwrap().last_read, 2);
    drop(listening);
    let errors = errors.texts();
    let [error] = &*errors else { panic!("{errors:?}") };
    for part in ["user=9", "changes=1", "read states of 65535 rooms at most"] {
        assert!(error.contains(part), "{error}");
    }
}

/// Some of them leave memory, and some are changed once more meanwhile.
#[tokio::test]
async fn a_row_that_the_store_refuses_holds_up_no_other_and_is_counted_and_tried_again() {
    let directory = tempfile::tempdir().unwrap();
    let store = Faulty::new(SqliteRows::open(&directory.path().join("read-states.db")).unwrap());
    let bad = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 500, 999, 2_500];
    store.refuse(bad);
    let options = Options { bytes_max: SMALL, ..with_log(directory.path()) };
    let states = ReadStates::open(store.clone(), options).await.unwrap();
    for user in 0..3_000 {
        _ = states.all(user).await.unwrap();
        _ = states.change(user, 1, acknowledge(1, 0)).unwrap();
    }
    for time in 2..5 {
        for user in 0..3_000 {
            _ = states.change(user, 1, acknowledge(time, 0)).unwrap();
        }
        let error = states.store_all().await.unwrap_err();
        assert!(error.to_string().contains("it refuses a row"), "{error}");
        assert_eq!(states.sizes().refused, bad.len());
        for user in 0..3_000 {
            let stored = store.load(user).await.unwrap().map(|row| row.entries[0].last_read);
            assert_eq!(stored, (!bad.contains(&user)).then_some(time), "{user}");
            assert_eq!(states.one(user, 1).await.unwrap().last_read, time, "{user}");
        }
    }
    assert!(states.sizes().waiting < 100, "{:?}", states.sizes());
    store.refuse([]);
    states.store_all().await.unwrap();
    assert_eq!((states.sizes().refused, states.sizes().waiting), (0, 0));
    for user in bad {
        assert_eq!(store.load(user).await.unwrap().unwrap().entries[0].last_read, 4);
    }
}

/// In each shard some ten, which are the first to be stored.
#[tokio::test]
async fn many_rows_that_the_store_refuses_are_out_of_the_way_of_others_after_a_few_rounds() {
    let directory = tempfile::tempdir().unwrap();
    let store = Faulty::new(SqliteRows::open(&directory.path().join("read-states.db")).unwrap());
    store.refuse(0..600);
    let states = ReadStates::open(store.clone(), with_log(directory.path())).await.unwrap();
    for user in 0..3_000 {
        _ = states.change(user, 1, acknowledge(1, 0)).unwrap();
    }
    for _ in 0..10 {
        states.store_all().await.unwrap_err();
    }
    assert_eq!((states.sizes().refused, states.sizes().waiting), (600, 600));
    for user in 0..3_000 {
        assert_eq!(store.load(user).await.unwrap().is_some(), user >= 600, "{user}");
    }
    store.refuse([]);
    states.store_all().await.unwrap();
    assert_eq!((states.sizes().refused, states.sizes().waiting), (0, 0));
}

#[tokio::test]
async fn a_change_reaches_the_store_by_itself() {
    let directory = tempfile::tempdir().unwrap();
    let store = Faulty::new(SqliteRows::open(&directory.path().join("read-states.db")).unwrap());
    let store_after = Duration::from_millis(100);
    let states =
        ReadStates::open(store.clone(), Options { store_after, ..Options::default() }).await;
    let states = states.unwrap();
    _ = states.change(3, 4, mention(1)).unwrap();
    store.saved(3).await;
    assert_eq!(store.load(3).await.unwrap().unwrap().entries[0].mentions, 1);
}

#[tokio::test]
async fn what_a_store_that_panicked_was_given_reaches_it_by_itself_later() {
    let directory = tempfile::tempdir().unwrap();
    let store = Faulty::new(SqliteRows::open(&directory.path().join("read-states.db")).unwrap());
    let store_after = Duration::from_millis(100);
    let options = Options { store_after, ..Options::default() };
    let states = ReadStates::open(store.clone(), options).await.unwrap();
    store.panic_in_saves(true);
    _ = states.change(3, 4, mention(1)).unwrap();
    store.panicked().await;
    store.panic_in_saves(false);
    let saved = tokio::time::timeout(Duration::from_secs(30), store.saved(3)).await;
    assert!(saved.is_ok(), "it is never given again");
    assert_eq!(store.load(3).await.unwrap().unwrap().entries[0].mentions, 1);
}

/// Readers, writers and rounds at once, in little memory, over a store that fails now and then:
/// nothing is lost and nothing is counted twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_or_counted_twice_under_load_and_a_store_that_fails() {
    let directory = tempfile::tempdir().unwrap();
    let store = Faulty::new(SqliteRows::open(&directory.path().join("read-states.db")).unwrap());
    store.fail_every(7);
    let options = Options {
        bytes_max: SMALL,
        store_after: Duration::from_millis(20),
        ..with_log(directory.path())
    };
    let states = ReadStates::open(store.clone(), options.clone()).await.unwrap();
    load::change_and_read(&states).await;
    store.fail_every(u32::MAX);
    load::check(&states).await;
    let crashed = tempfile::tempdir().unwrap();
    let changed = states.change(load::USERS, 0, mention(1)).unwrap();
    states.durable(changed).await.unwrap();
    support::copy(directory.path(), crashed.path());
    load::check(&open(crashed.path(), with_log(crashed.path())).await).await;
    states.store_all().await.unwrap();
    load::check(&open(directory.path(), Options::default()).await).await;
}
