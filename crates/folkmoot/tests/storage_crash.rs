//! A real process killed with SIGKILL while it appends: what it acknowledged is there, once, in
//! order.

#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

mod storage_support;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use folkmoot::storage::{
    Message, NewRoom, Offset, PageAnchor, Record, RoomEvent, RoomId, RoomRecord, Seq, Store,
    UnixMillis, UserId,
};
use storage_support::{ANA, TestDirectory, account, small_options};

const ROOMS: u64 = 8;
const KILLS: u64 = 12;
const DIRECTORY: &str = "FOLKMOOT_CRASH_DIRECTORY";
const NOW: UnixMillis = UnixMillis::from_u64(1);

#[tokio::test]
async fn sigkill_loses_doubles_and_reorders_nothing() {
    let directory = TestDirectory::new("crash");
    let store = directory.open();
    let (new, device) = account(ANA, "ana");
    store.create_account(new, device).await.unwrap();
    for room in 1..=ROOMS {
        let (name, topic) = (String::from("room"), String::new());
        let id = RoomId::from_u64(room);
        store.create_room(NewRoom { id, name, topic, owner: ANA, at: NOW }).await.unwrap();
    }
    store.close().await;

    let mut acknowledged = vec![0; ROOMS as usize + 1];
    for kill in 1..=KILLS {
        // Some die at once, some after the log has passed through segments.
        run_and_kill(&directory, kill * kill * 40, &mut acknowledged);
        let store = directory.open();
        for room in 1..=ROOMS {
            let found = check_room(&store, RoomId::from_u64(room)).await;
            let promised = acknowledged[room as usize];
            assert!(found >= promised, "room {room} lost {} of {promised}", promised - found);
        }
        store.close().await;
    }
}

/// Lets a child append until it has acknowledged `count` messages, and kills it.
fn run_and_kill(directory: &TestDirectory, count: u64, acknowledged: &mut [u64]) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "appending_child", "--nocapture"])
        .env(DIRECTORY, directory.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut seen = 0;
    let mut killed = false;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        // The line that the kill cut in two is not an acknowledgement; neither is the test runner's
        // talk.
        let line = line.unwrap_or_default();
        let Some((room, seq)) = line.strip_prefix("ack ").and_then(|ack| ack.split_once(' '))
        else {
            continue;
        };
        let Some(seq) = seq.strip_suffix('.') else { continue };
        let (room, seq): (usize, u64) = (room.parse().unwrap(), seq.parse().unwrap());
        acknowledged[room] = acknowledged[room].max(seq);
        seen += 1;
        if seen == count {
            child.kill().unwrap();
            killed = true;
        }
    }
    child.wait().unwrap();
    assert!(killed, "the child ended by itself after {seen} acknowledgements");
}

/// Checks that a room's messages and events have no gap and no double; returns its last seq.
async fn check_room(store: &Store, room: RoomId) -> u64 {
    let snapshot = store.load_room(room, 100, NOW).await.unwrap().unwrap();
    let last = snapshot.summary.last_seq.as_u64();
    assert_eq!(snapshot.summary.last_offset.as_u64(), last + 1);
    let mut next = 1;
    while next <= last {
        let page = store
            .history(room, PageAnchor::After(Seq::from_u64(next - 1)), 500, ANA)
            .await
            .unwrap();
        for stored in page.messages {
            assert_eq!(stored.message.seq.as_u64(), next);
            assert_eq!(stored.message.body, format!("{room} {next}"));
            assert_eq!(stored.offset.as_u64(), next + 1);
            next += 1;
        }
    }
    let kept = snapshot.tail.iter().map(|record| record.offset.as_u64());
    assert!(kept.eq(snapshot.summary.last_offset.as_u64() + 1 - snapshot.tail.len() as u64
        ..=snapshot.summary.last_offset.as_u64()));
    last
}

#[test]
#[ignore = "the child of the test above, which kills it"]
fn appending_child() {
    let directory = PathBuf::from(std::env::var_os(DIRECTORY).expect("run by the test above"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let store = Store::open(&small_options(directory)).unwrap();
        let rooms: Vec<_> =
            (1..=ROOMS).map(|room| tokio::spawn(append_for_ever(store.clone(), room))).collect();
        for room in rooms {
            room.await.unwrap();
        }
    });
}

/// Keeps a few appends of a room in flight, as a room's actor does.
async fn append_for_ever(store: Store, room: u64) {
    let room_id = RoomId::from_u64(room);
    let snapshot = store.load_room(room_id, 0, NOW).await.unwrap().unwrap();
    let mut seq = snapshot.summary.last_seq.as_u64();
    loop {
        store.ready().await.unwrap();
        let appends: Vec<_> = (seq + 1..=seq + 4)
            .map(|seq| (seq, store.append(snapshot.epoch, &message(room_id, seq))))
            .collect();
        for (acknowledged, append) in appends {
            append.await.unwrap();
            println!("ack {room} {acknowledged}.");
            seq = acknowledged;
        }
    }
}

fn message(room: RoomId, seq: u64) -> Record {
    let message = Message {
        seq: Seq::from_u64(seq),
        user: UserId::from_u64(1),
        name: "ana".into(),
        key: format!("key-{seq}"),
        content_hash: seq,
        body: format!("{room} {seq}"),
        reply_to: None,
        mentions: Vec::new(),
        mention_all: false,
        attachments: Vec::new(),
    };
    let event = RoomEvent::Message(message);
    Record::Room(RoomRecord { room, offset: Offset::from_u64(seq + 1), at: NOW, event })
}
