//! Several threads that change and read the same users while these are evicted.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use folkmoot_read_states::{
    Change, Options, ROOMS_MAX, ReadState, ReadStates, ReadStatesError, Row, RowStore, SqliteRows,
};
use support::{Faulty, acknowledge, mention};

const THREADS: u64 = 4;
const USERS: u64 = 120;
const STEPS: u64 = 4_000;
/// In which all threads mention everybody.
const HALL: u64 = 1_000;

fn rows(directory: &Path) -> SqliteRows {
    SqliteRows::open(&directory.join("read-states.db")).unwrap()
}

fn with_log(directory: &Path) -> Options {
    Options { log: Some(directory.join("log")), ..Options::default() }
}

/// What one thread has had acknowledged of each user: the last message that it has read in the thread's own room,
/// and mentions in the hall.
type Done = Vec<(u64, u64)>;

async fn work(states: ReadStates, thread: u64) -> Done {
    let mut done = vec![(0, 0); USERS as usize];
    let mut random = thread * 7_919 + 1;
    for step in 1..=STEPS {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let user = random % USERS;
        let (read, mentions) = &mut done[user as usize];
        match random >> 32 & 3 {
            0 if states.change(user, thread, acknowledge(step, 1)).is_ok() => *read = step,
            1 if states.change(user, HALL, mention(step)).is_ok() => *mentions += 1,
            2 => {
                // A store that fails now and then.
                let Ok(own) = states.one(user, thread).await else { continue };
                assert_eq!((own.last_read, own.mentions), (*read, u32::from(*read > 0)));
            }
            _ => {
                let Ok(all) = states.all(user).await else { continue };
                let in_hall = all.iter().find(|state| state.room == HALL);
                assert!(in_hall.map_or(0, |state| u64::from(state.mentions)) >= *mentions);
            }
        }
        if step % 500 == 0 {
            _ = states.store_all().await;
        }
    }
    done
}

async fn check(states: &ReadStates, done: &[Done]) {
    for user in 0..USERS {
        let of_user: Vec<_> = done.iter().map(|done| done[user as usize]).collect();
        for (thread, (read, _)) in (0..).zip(&of_user) {
            assert_eq!(states.one(user, thread).await.unwrap().last_read, *read, "{user} {thread}");
        }
        let mentions: u64 = of_user.iter().map(|(_, mentions)| mentions).sum();
        assert_eq!(u64::from(states.one(user, HALL).await.unwrap().mentions), mentions, "{user}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_reads_what_it_has_written_and_no_mention_is_lost_while_users_come_and_go() {
    let (directory, crashed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = Faulty::new(rows(directory.path()));
    store.fail_every(11);
    let options = Options {
        bytes_max: 64 * 512,
        store_after: Duration::from_millis(20),
        ..with_log(directory.path())
    };
    let states = ReadStates::open(store.clone(), options).await.unwrap();
    let threads: Vec<_> =
        (0..THREADS).map(|thread| tokio::spawn(work(states.clone(), thread))).collect();
    let mut done = Vec::new();
    for thread in threads {
        done.push(thread.await.unwrap());
    }
    store.fail_every(u32::MAX);
    check(&states, &done).await;
    let last = states.change(USERS, 0, mention(1)).unwrap();
    states.durable(last).await.unwrap();
    support::copy(directory.path(), crashed.path());
    let store = Arc::new(rows(crashed.path()));
    check(&ReadStates::open(store, with_log(crashed.path())).await.unwrap(), &done).await;
}

/// Room for one more when the mention was admitted, and none when it comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mention_of_many_is_made_whole_though_one_of_them_fills_up_meanwhile() {
    let (whole, full) = (2, 1);
    let directory = tempfile::tempdir().unwrap();
    let store = rows(directory.path());
    let entries = (1..ROOMS_MAX as u64).map(|room| ReadState { room, last_read: 1, mentions: 0 });
    let row = Row { user: full, version: 1, entries: entries.collect() };
    store.save(vec![row]).await.unwrap();
    let states = ReadStates::open(Arc::new(store), Options::default()).await.unwrap();
    for user in [whole, full] {
        _ = states.all(user).await.unwrap();
    }
    let users: Vec<_> = [whole, full].into_iter().chain(100..20_000).collect();
    for attempt in 0..30 {
        let (hall, other) = (100_000 + attempt, 200_000 + attempt);
        let mentioning = tokio::task::spawn_blocking({
            let (states, users) = (states.clone(), users.clone());
            move || states.mention(&users, hall, 1)
        });
        // Amid what is looked at before anybody is mentioned, in some of these.
        tokio::time::sleep(Duration::from_millis(attempt)).await;
        let filled = states.change(full, other, acknowledge(1, 0));
        let expected = match mentioning.await.unwrap() {
            Ok(_) => 1,
            Err(error) => {
                assert_eq!(error, ReadStatesError::TooManyRooms { user: full });
                assert!(filled.is_ok());
                0
            }
        };
        assert_eq!(states.one(whole, hall).await.unwrap().mentions, expected, "{attempt}");
        for room in [hall, other] {
            _ = states.change(full, room, Change::Forget).unwrap();
        }
        states.store_all().await.unwrap();
    }
}
