//! What a moment of a directory has that is written to all the while: everything that was
//! acknowledged before it, in order, once.

use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::*;
use crate::storage::{
    DeviceId, Message, NewAccount, NewDevice, NewRoom, Offset, Record, Restored, RoomEvent, RoomId,
    RoomRecord, Seq, Store, StoreOptions, UserId,
};

const ANNA: UserId = UserId::from_u64(1);
const ROOM: RoomId = RoomId::from_u64(10);
/// Moments taken from one directory; with segments this small, each meets several.
const MOMENTS: usize = 12;
const SEGMENT_BYTES: u64 = 32 << 10;
/// A record of its own fills a page, so that segments end soon.
const BODY_LEN: usize = 3_000;
const AT_ONCE: u64 = 16;

fn options(directory: &Path) -> StoreOptions {
    StoreOptions { segment_bytes: SEGMENT_BYTES, readers: 1, ..StoreOptions::new(directory) }
}

async fn furnished(directory: &Path) -> Store {
    let store = Store::open(&options(directory)).unwrap();
    let (at, text) = (UnixMillis::from_u64(1), || "anna".to_owned());
    let (name, display_name, password_hash) = (text(), text(), text());
    let account = NewAccount { id: ANNA, name, display_name, password_hash, at };
    let id = DeviceId::from_u64(2);
    let device = NewDevice { id, user: ANNA, label: text(), token_hash: [1; 32], at };
    store.create_account(account, device).await.unwrap();
    let (name, topic) = ("Tea".to_owned(), String::new());
    store.create_room(NewRoom { id: ROOM, name, topic, owner: ANNA, at }).await.unwrap();
    store
}

fn message(seq: u64) -> Record {
    let event = RoomEvent::Message(Message {
        seq: Seq::from_u64(seq),
        user: ANNA,
        name: "anna".to_owned(),
        key: format!("key {seq}"),
        content_hash: seq,
        body: "x".repeat(BODY_LEN),
        reply_to: None,
        mentions: Vec::new(),
        mention_all: false,
        attachments: Vec::new(),
    });
    // Anna's coming in was the first event.
    let (offset, at) = (Offset::from_u64(seq + 1), UnixMillis::from_u64(seq));
    Record::Room(RoomRecord { room: ROOM, offset, at, event })
}

/// Writes until told to stop; `acked` says how many messages are acknowledged.
async fn write(store: Store, acked: Arc<AtomicU64>, stops: Arc<AtomicBool>) {
    let mut seq = 0;
    while !stops.load(Ordering::Relaxed) {
        store.ready().await.unwrap();
        let appends: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                seq += 1;
                store.append(store.write_epoch(), &message(seq))
            })
            .collect();
        for append in appends {
            append.await.unwrap();
        }
        acked.store(seq, Ordering::Relaxed);
    }
}

/// Makes a directory of a moment, as a restore does, and says how many messages it has.
async fn messages_of(moment: &Moment, to: &Path) -> u64 {
    std::fs::create_dir_all(directory::log(to)).unwrap();
    moment.copy_database(&directory::database(to), |_, _| {}).unwrap();
    for SegmentPart { number, file, len } in &moment.segments {
        let mut bytes = Vec::new();
        from_start(file).unwrap().read_to_end(&mut bytes).unwrap();
        bytes.truncate(usize::try_from(*len).unwrap());
        std::fs::write(segment_path(&directory::log(to), *number), bytes).unwrap();
    }
    directory::write_version(to).unwrap();
    let restored = Restored::Yes;
    let store = Store::open(&StoreOptions { restored, ..options(to) }).unwrap();
    store.close().await;
    let database = rusqlite::Connection::open(directory::database(to)).unwrap();
    let counted = "SELECT count(*), coalesce(max(seq), 0) FROM messages";
    let (count, last): (i64, i64) =
        database.query_row(counted, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert_eq!(count, last, "messages are missing in between");
    u64::try_from(count).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moment_has_all_that_was_acknowledged_before_it_and_no_gap() {
    let scratch = tempfile::tempdir().unwrap();
    let data = scratch.path().join("data");
    let store = furnished(&data).await;
    let (acked, stops) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let writing = tokio::spawn(write(store.clone(), acked.clone(), stops.clone()));
    let mut with_log = 0;
    for round in 0..MOMENTS {
        let before = acked.load(Ordering::Relaxed);
        let from = data.clone();
        let taken = tokio::task::spawn_blocking(move || Moment::take(&from)).await;
        let moment = taken.unwrap().unwrap();
        let records = SEGMENT_HEADER_LEN as u64;
        with_log += usize::from(moment.segments.iter().any(|part| part.len > records));
        let found = messages_of(&moment, &scratch.path().join(format!("copy {round}"))).await;
        assert!(found >= before, "{before} were acknowledged, {found} are there");
    }
    stops.store(true, Ordering::Relaxed);
    writing.await.unwrap();
    assert!(with_log > 0, "no moment needed the log");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moment_of_a_directory_that_nobody_uses_is_all_of_it() {
    let scratch = tempfile::tempdir().unwrap();
    let data = scratch.path().join("data");
    let store = furnished(&data).await;
    for seq in 1..=20 {
        store.append(store.write_epoch(), &message(seq)).await.unwrap();
    }
    store.close().await;
    let moment = Moment::take(&data).unwrap();
    assert_eq!(messages_of(&moment, &scratch.path().join("copy")).await, 20);
}

#[test]
fn a_directory_of_something_else_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let refused = Moment::take(scratch.path()).map(drop).unwrap_err();
    assert!(matches!(refused, OpenError::NotADataDirectory { .. }), "{refused}");
}
