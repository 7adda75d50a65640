//! How much memory is taken, and what is refused when there is no more.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use folkmoot_read_states::{Options, ReadStates, ReadStatesError, SqliteRows};
use support::{Faulty, NoRows, acknowledge, mention};

const SHARDS: usize = 64;

/// Of users of whom nothing is known the table that leads to them is most of what they take.
#[tokio::test]
async fn a_table_that_would_take_all_memory_does_not_grow() {
    for of_shard in (2_048..=4_096).step_by(256) {
        let bytes_max = SHARDS * of_shard;
        let options = Options { bytes_max, ..Options::default() };
        let states = ReadStates::open(Arc::new(NoRows), options).await.unwrap();
        for user in 0..bytes_max as u64 / 16 {
            _ = states.all(user).await.unwrap();
        }
        let sizes = states.sizes();
        assert!(sizes.bytes <= bytes_max, "{sizes:?} of {bytes_max}");
        assert!(sizes.users * 128 >= bytes_max, "{sizes:?} of {bytes_max}");
    }
}

#[tokio::test]
async fn rooms_for_which_there_is_no_memory_while_the_store_is_away_are_refused_by_name() {
    const USERS: u64 = 16;
    let directory = tempfile::tempdir().unwrap();
    let store = Faulty::new(SqliteRows::open(&directory.path().join("read-states.db")).unwrap());
    let options = Options { bytes_max: 1 << 18, ..Options::default() };
    let states = ReadStates::open(store.clone(), options).await.unwrap();
    for user in 0..USERS {
        _ = states.all(user).await.unwrap();
    }
    store.fail_saves(true);
    let mut rooms = vec![BTreeSet::new(); USERS as usize];
    let mut refused = None;
    for room in 1..=12_000 {
        for user in 0..USERS {
            match states.change(user, room, acknowledge(room, 0)) {
                Ok(_) => _ = rooms[user as usize].insert(room),
                Err(error) => refused = Some((user, room, error)),
            }
        }
    }
    let sizes = states.sizes();
    assert!(sizes.bytes + sizes.waiting_bytes < 3 << 20, "{sizes:?}");
    let Some((user, room, ReadStatesError::Busy { .. })) = refused else { panic!("{refused:?}") };
    let busy = states.mention(&[user, 5_000], 20_000, 1).unwrap_err();
    assert!(matches!(busy, ReadStatesError::Busy { .. }), "{busy}");
    _ = states.change(user, *rooms[user as usize].first().unwrap(), acknowledge(9, 0)).unwrap();
    _ = states.change(user, room, folkmoot_read_states::Change::Forget).unwrap();
    store.fail_saves(false);
    while states.store_all().await.is_err() {}
    _ = states.change(user, room, mention(1)).unwrap();
    rooms[user as usize].insert(room);
    for user in 0..USERS {
        let found = states.all(user).await.unwrap().into_iter().map(|state| state.room);
        assert_eq!(found.collect::<BTreeSet<_>>(), rooms[user as usize], "{user}");
    }
    assert_eq!(states.one(5_000, 20_000).await.unwrap().mentions, 0);
}

/// In each shard there is somebody whose row is refused, and who waits.
#[tokio::test]
async fn who_is_evicted_by_a_change_is_stored_at_once_though_others_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let store = Faulty::new(SqliteRows::open(&directory.path().join("read-states.db")).unwrap());
    store.refuse(0..1_000);
    let options = Options {
        bytes_max: SHARDS * 4_096,
        store_after: Duration::from_secs(3_600),
        ..Options::default()
    };
    let states = ReadStates::open(store.clone(), options).await.unwrap();
    for user in 0..1_000 {
        _ = states.all(user).await.unwrap();
    }
    for room in 0..20 {
        for user in 0..1_000 {
            _ = states.change(user, room, acknowledge(1, 0)).unwrap();
        }
    }
    while states.sizes().refused < 1_000 {
        states.store_all().await.unwrap_err();
    }
    for user in 19_000..20_000 {
        _ = states.all(user).await.unwrap();
    }
    states.store_all().await.unwrap_err();
    // Whatever those who came have set going ends meanwhile.
    tokio::time::sleep(Duration::from_secs(3)).await;
    for room in 0..30 {
        for user in 19_000..20_000 {
            if states.in_memory(user, 0).is_some() || room == 0 {
                _ = states.change(user, room, acknowledge(1, 0)).unwrap();
            }
        }
    }
    let saved = tokio::time::timeout(Duration::from_secs(20), store.saved_one(19_000..));
    assert!(saved.await.is_ok(), "nobody is stored");
}

/// One after the other they would take half an hour to fail.
#[tokio::test]
async fn a_store_that_does_not_answer_holds_up_a_round_for_seconds_only() {
    let store = Faulty::new(NoRows);
    let states = ReadStates::open(store.clone(), Options::default()).await.unwrap();
    store.hang_loads(Duration::from_millis(200));
    for user in 0..10_000 {
        _ = states.change(user, 1, mention(1)).unwrap();
    }
    let round = tokio::time::timeout(Duration::from_secs(20), states.store_all()).await;
    let error = round.expect("it ends").unwrap_err();
    assert!(error.to_string().contains("it did not answer"), "{error}");
    assert_eq!(states.sizes().waiting, 10_000);
}
