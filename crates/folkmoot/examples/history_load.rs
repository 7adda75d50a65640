//! Reads pages of 50 messages from a store that `folkmoot seed` has filled, one at a time, and says
//! how long that took, one `name unit value` a line.
//!
//! `cargo run --release -p folkmoot --example history_load -- DIRECTORY`
//! The rooms take turns in a random order; no server has them in memory.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use folkmoot::storage::{PageAnchor, RoomId, Seq, Store, StoreOptions, UserId};

const PAGE_LEN: u32 = 50;
const READS: usize = 20_000;
/// Whose rooms are read: all, where there are no more.
const PEOPLE: u32 = 100;
const VIEWER: UserId = UserId::from_u64(1);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).ok_or("no directory given")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run(&StoreOptions::new(directory)))
}

async fn run(options: &StoreOptions) -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::open(options)?;
    let rooms = rooms(&store).await?;
    // Numbers that are the same in each run.
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let after_a_page = u64::from(PAGE_LEN) + 1;
    let (mut latest, mut older) = (Vec::new(), Vec::new());
    for _ in 0..READS {
        let (room, last) = rooms[next(rooms.len() as u64) as usize];
        let anchor = PageAnchor::Before(Seq::from_u64(after_a_page + next(last - after_a_page)));
        latest.push(page(&store, room, PageAnchor::Latest).await?);
        older.push(page(&store, room, anchor).await?);
    }
    for (name, times) in [("latest", &mut latest), ("older", &mut older)] {
        times.sort_unstable();
        for (share, at) in [("p50", READS / 2), ("p99", READS * 99 / 100)] {
            println!("{name}-{share} us {:.1}", times[at].as_secs_f64() * 1e6);
        }
    }
    store.close().await;
    Ok(())
}

/// The rooms of the people whom `folkmoot seed` makes first, each with its last number.
async fn rooms(store: &Store) -> Result<Vec<(RoomId, u64)>, Box<dyn std::error::Error>> {
    let mut found = BTreeMap::new();
    for number in 1..=PEOPLE {
        let Some(account) = store.account_by_name(format!("user{number:06}")).await? else { break };
        for room in store.rooms_of(account.id).await? {
            let page = store.history(room.id, PageAnchor::Latest, 1, account.id).await?;
            found.insert(room.id, page.last_seq.as_u64());
        }
    }
    found.retain(|_, last| *last > 2 * u64::from(PAGE_LEN));
    match found.is_empty() {
        true => Err("nobody whom `folkmoot seed` makes has a room with 100 messages".into()),
        false => Ok(found.into_iter().collect()),
    }
}

async fn page(
    store: &Store,
    room: RoomId,
    anchor: PageAnchor,
) -> Result<Duration, Box<dyn std::error::Error>> {
    let begun = Instant::now();
    let page = store.history(room, anchor, PAGE_LEN, VIEWER).await?;
    let took = begun.elapsed();
    match page.messages.len() {
        50 => Ok(took),
        len => Err(format!("room {room} has a page of {len} messages").into()),
    }
}
