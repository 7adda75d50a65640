//! Readers and writers at once, and what there has to be after them.

use std::collections::BTreeMap;

use folkmoot_read_states::{ReadState, ReadStates};

use super::{acknowledge, mention};

pub(crate) const USERS: u64 = 400;
const ROOMS: u64 = 5;
const MENTIONS: u64 = 30;

/// Four tasks, each with users of its own; a change that is refused is made again.
pub(crate) async fn change_and_read(states: &ReadStates) {
    let mut tasks = Vec::new();
    for task in 0..4 {
        let states = states.clone();
        tasks.push(tokio::spawn(async move {
            for n in 0..MENTIONS {
                for user in (0..USERS).filter(|user| user % 4 == task) {
                    let change = if user % 3 == 0 { acknowledge(n, 1) } else { mention(n + 1) };
                    while states.change(user, n % ROOMS, change).is_err() {
                        tokio::task::yield_now().await;
                    }
                    // A store that fails now and then, or nobody to evict: asked again later.
                    _ = states.all((user * 7 + n) % USERS).await;
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

fn expected(user: u64) -> BTreeMap<u64, ReadState> {
    let entry = |room| {
        let last = (0..MENTIONS).rfind(|n| n % ROOMS == room).unwrap();
        let state = if user.is_multiple_of(3) {
            ReadState { room, last_read: last, mentions: 1 }
        } else {
            ReadState { room, last_read: 0, mentions: (MENTIONS / ROOMS) as u32 }
        };
        (room, state)
    };
    (0..ROOMS).map(entry).collect()
}

pub(crate) async fn check(states: &ReadStates) {
    for user in 0..USERS {
        let all = states.all(user).await.unwrap();
        let all: BTreeMap<_, _> = all.into_iter().map(|state| (state.room, state)).collect();
        assert_eq!(all, expected(user), "user {user}");
    }
}
