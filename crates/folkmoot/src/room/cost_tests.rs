//! What a room costs: the same whether a hundred people are members or a hundred thousand.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::params;

use super::load::Loaded;
use crate::bytes_kept::bytes_kept;
use crate::storage::sql::Connection;
use crate::storage::{
    NewAccount, NewDevice, NewRoom, RoomId, Store, StoreOptions, UnixMillis, UserId, snapshot_of,
};

const OWNER: UserId = UserId::from_u64(1);
const ROOM: RoomId = RoomId::from_u64(9);
const NOW: UnixMillis = UnixMillis::from_u64(1_000_000);
/// Bytes that a room may keep in memory when it has been loaded.
const KEPT_MAX: isize = 64 * 1024;

struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A database with one room of so many members, as many bans, in which a thousand things
/// were said under keys.
async fn database(members: i64) -> (Directory, Connection) {
    let name = format!("folkmoot-cost-{members}-{}", std::process::id());
    let directory = Directory(std::env::temp_dir().join(name));
    let _ = std::fs::remove_dir_all(&directory.0);
    let store = Store::open(&StoreOptions::small(&directory.0)).unwrap();
    let (name, at) = ("owner".to_owned(), UnixMillis::from_u64(1));
    let display_name = "Owner".to_owned();
    let password_hash = "!".to_owned();
    let account = NewAccount { id: OWNER, name, display_name, password_hash, at };
    let id = crate::storage::DeviceId::from_u64(2);
    let device = NewDevice { id, user: OWNER, label: String::new(), token_hash: [1; 32], at };
    store.create_account(account, device).await.unwrap();
    let (name, topic) = ("hall".to_owned(), String::new());
    store.create_room(NewRoom { id: ROOM, name, topic, owner: OWNER, at }).await.unwrap();
    store.close().await;
    let connection = rusqlite::Connection::open(directory.0.join("folkmoot.sqlite")).unwrap();
    connection.execute_batch("BEGIN").unwrap();
    for user in 2..=members {
        let name = format!("u{user:06}");
        let account = "INSERT INTO users (id, name, display_name, password_hash, is_admin, \
                       created_at) VALUES (?1, ?2, ?2, '!', 0, 1)";
        connection.prepare_cached(account).unwrap().execute(params![user, name]).unwrap();
        let member = "INSERT INTO members (room, user, role, joined_at, name) \
                      VALUES (9, ?1, 1, 1, ?2)";
        connection.prepare_cached(member).unwrap().execute(params![user, name]).unwrap();
        let ban = "INSERT INTO bans VALUES (9, ?1 + 1000000, 1, 1)";
        connection.prepare_cached(ban).unwrap().execute(params![user]).unwrap();
    }
    for seq in 1..=1_000_i64 {
        let message = "INSERT INTO messages (room, seq, offset, user, name, at, key, content_hash, \
                       body) VALUES (9, ?1, ?1 + 1, 1 + ?1 % ?2, 'U', 1, 'key' || ?1, 1, ?3)";
        let body = "what people say to each other ".repeat(4);
        connection.prepare_cached(message).unwrap().execute(params![seq, members, body]).unwrap();
        let event = "INSERT INTO room_events VALUES (9, ?1 + 1, 1, ?1, NULL)";
        connection.prepare_cached(event).unwrap().execute(params![seq]).unwrap();
    }
    let counts = "UPDATE rooms SET member_count = ?1, last_seq = 1000, last_offset = 1001";
    connection.execute(counts, params![members]).unwrap();
    connection.execute_batch("COMMIT").unwrap();
    (directory, connection.into())
}

/// Steps of SQLite's machine to load the room, and bytes the room keeps.
fn cost(connection: &mut Connection) -> (u64, isize) {
    let load = |connection: &Connection| {
        let tail_len = u32::try_from(super::TAIL_LOADED).unwrap();
        snapshot_of(connection, ROOM, tail_len, NOW).unwrap().map(Loaded::from).unwrap()
    };
    // The second time, when the statements are prepared and the schema is read.
    drop(load(connection));
    let (_room, bytes) = bytes_kept(|| load(connection));
    let steps = Arc::new(AtomicU64::new(0));
    let counted = steps.clone();
    let count = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        false
    };
    connection.sqlite().unwrap().progress_handler(1, Some(count)).unwrap();
    drop(load(connection));
    (steps.load(Ordering::Relaxed), bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn loading_a_room_costs_the_same_for_a_hundred_members_and_for_a_hundred_thousand() {
    let (_small, mut connection) = database(100).await;
    let (steps_small, bytes_small) = cost(&mut connection);
    let (_large, mut connection) = database(100_000).await;
    let (steps_large, bytes_large) = cost(&mut connection);
    println!("steps {steps_small} and {steps_large}, bytes {bytes_small} and {bytes_large}");
    assert!(steps_small > 100, "nothing was counted");
    assert_eq!(steps_large, steps_small, "SQLite looks at more rows");
    assert!(bytes_large <= KEPT_MAX, "{bytes_large} bytes are kept");
    assert!((bytes_large - bytes_small).abs() <= 1_024, "{bytes_small} and {bytes_large} bytes");
}
