//! What a crash has left in the log is merged into the rows at the next start.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod support;

use std::path::Path;
use std::sync::Arc;

use folkmoot_read_states::{Options, ReadStates, RowStore, SqliteRows};
use support::{Faulty, acknowledge, mention};
use tempfile::TempDir;

fn rows(directory: &Path) -> SqliteRows {
    SqliteRows::open(&directory.join("read-states.db")).unwrap()
}

fn with_log(directory: &Path) -> Options {
    Options { log: Some(directory.join("log")), ..Options::default() }
}

async fn open(directory: &Path) -> ReadStates {
    ReadStates::open(Arc::new(rows(directory)), with_log(directory)).await.unwrap()
}

/// What a crash leaves of each of so many users, who were mentioned once, and the last of them twice.
async fn mentioned(users: u64) -> TempDir {
    let (before, after) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let states = open(before.path()).await;
    for user in 0..users {
        _ = states.change(user, 1, mention(1)).unwrap();
    }
    let last = states.change(users - 1, 1, mention(2)).unwrap();
    states.durable(last).await.unwrap();
    support::copy(before.path(), after.path());
    after
}

async fn check(states: &ReadStates, users: u64) {
    for user in 0..users {
        let expected = if user == users - 1 { 2 } else { 1 };
        assert_eq!(states.one(user, 1).await.unwrap().mentions, expected, "{user}");
    }
}

#[tokio::test]
async fn a_row_that_the_store_refuses_at_the_start_holds_up_no_other_and_stays_in_the_log() {
    const USERS: u64 = 3_000;
    let directory = mentioned(USERS).await;
    let bad = [0, 7, 999, 1_000, 2_998];
    for _ in 0..2 {
        let store = Faulty::new(rows(directory.path()));
        store.refuse(bad);
        let states = ReadStates::open(store.clone(), with_log(directory.path())).await.unwrap();
        assert_eq!(states.sizes().refused, bad.len());
        check(&states, USERS).await;
        for user in 0..USERS {
            let stored = store.load(user).await.unwrap();
            assert_eq!(stored.is_some(), !bad.contains(&user), "{user}");
        }
        states.store_all().await.unwrap_err();
        assert!(states.sizes().log_bytes > 0);
    }
    let store = Faulty::new(rows(directory.path()));
    store.refuse(bad);
    let states = ReadStates::open(store.clone(), with_log(directory.path())).await.unwrap();
    let changed = states.change(7, 1, acknowledge(2, 0)).unwrap();
    states.durable(changed).await.unwrap();
    store.refuse([]);
    states.store_all().await.unwrap();
    assert_eq!((states.sizes().refused, states.sizes().log_bytes), (0, 0));
    let row = store.load(7).await.unwrap().unwrap();
    assert_eq!((row.entries[0].last_read, row.entries[0].mentions), (2, 0));
}

#[tokio::test]
async fn a_store_that_takes_nothing_at_the_start_is_waited_for_as_long_as_all_fits_into_memory() {
    const USERS: u64 = 500;
    let directory = mentioned(USERS).await;
    let store = Faulty::new(rows(directory.path()));
    store.fail_saves(true);
    let few = Options { waiting_max: 64, ..with_log(directory.path()) };
    ReadStates::open(store.clone(), few).await.map(drop).unwrap_err();
    let states = ReadStates::open(store.clone(), with_log(directory.path())).await.unwrap();
    check(&states, USERS).await;
    store.fail_saves(false);
    states.store_all().await.unwrap();
    assert_eq!(states.sizes().log_bytes, 0);
    check(&states, USERS).await;
    drop(states);
    assert_eq!(store.load(0).await.unwrap().unwrap().entries[0].mentions, 1);
}

/// More records than are in memory at once, some of them of a user whose row is refused.
#[tokio::test]
async fn a_long_log_is_replayed_whole_and_each_change_counts_once() {
    const MESSAGES: u64 = 100_000;
    let (before, after) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let states = open(before.path()).await;
    for user in 0..3 {
        _ = states.all(user).await.unwrap();
    }
    for message in 1..=MESSAGES {
        for user in 0..3 {
            _ = states.change(user, 1, mention(message)).unwrap();
        }
    }
    let last = states.change(0, 2, acknowledge(1, 0)).unwrap();
    states.durable(last).await.unwrap();
    support::copy(before.path(), after.path());
    drop(states);
    for refused in [&[1][..], &[]] {
        let store = Faulty::new(rows(after.path()));
        store.refuse(refused.iter().copied());
        let states = ReadStates::open(store, with_log(after.path())).await.unwrap();
        for user in 0..3 {
            assert_eq!(u64::from(states.one(user, 1).await.unwrap().mentions), MESSAGES, "{user}");
        }
        assert_eq!(states.sizes().refused, refused.len());
    }
}

#[tokio::test]
async fn what_a_later_version_has_written_is_refused_by_name_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(directory.path()).await);
    let segment = directory.path().join("log/00000000000000000900.log");
    let mut record = [0; 40];
    record[36..].copy_from_slice(&9_u32.to_le_bytes());
    let crc = crc32c::crc32c(&record).to_le_bytes();
    std::fs::write(&segment, [&record[..], &crc].concat()).unwrap();
    let store = Arc::new(rows(directory.path()));
    let refused = ReadStates::open(store, with_log(directory.path())).await.map(drop).unwrap_err();
    assert!(refused.to_string().contains("kind 9, which a later version"), "{refused}");
    assert_eq!(std::fs::metadata(&segment).unwrap().len(), 44);
    std::fs::remove_file(segment).unwrap();
    drop(open(directory.path()).await);
    let file = directory.path().join("read-states.db");
    let later = rusqlite::Connection::open(&file).unwrap();
    later.pragma_update(None, "user_version", 2).unwrap();
    drop(later);
    let refused = SqliteRows::open(&file).map(drop).unwrap_err();
    assert!(refused.to_string().contains("format 2"), "{refused}");
}
