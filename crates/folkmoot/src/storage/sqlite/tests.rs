//! A database that is full or broken while the log is not, and how its connections are set.

use std::path::PathBuf;

use super::{open_reader, open_writer};
use crate::storage::{
    ControlError, Message, NewAccount, NewDevice, NewRoom, Offset, PageAnchor, ReadError, Record,
    RoomEvent, RoomId, RoomRecord, Seq, Store, StoreOptions, UnixMillis, UserId,
};
use folkmoot_protocol::DeviceId;

const ANA: UserId = UserId::from_u64(1);
const ROOM: RoomId = RoomId::from_u64(10);
const NOW: UnixMillis = UnixMillis::from_u64(1);

/// A store in a directory that goes away with its test.
struct TestStore(Store, PathBuf);

impl TestStore {
    async fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("folkmoot-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        let options = StoreOptions { segment_bytes: 1 << 20, ..StoreOptions::new(&path) };
        let store = Self(Store::open(&options).unwrap(), path);
        store.add_account(ANA, "ana").await.unwrap();
        let (name, topic) = (String::new(), String::new());
        let room = NewRoom { id: ROOM, name, topic, owner: ANA, at: NOW };
        store.0.create_room(room).await.unwrap();
        store
    }

    async fn add_account(&self, id: UserId, name: &str) -> Result<(), ControlError> {
        let new = NewAccount {
            id,
            name: name.into(),
            display_name: "x".repeat(20_000),
            password_hash: String::new(),
            at: NOW,
        };
        let device = NewDevice {
            id: DeviceId::from_u64(id.as_u64()),
            user: id,
            label: String::new(),
            token_hash: [u8::try_from(id.as_u64()).unwrap(); 32],
            at: NOW,
        };
        self.0.create_account(new, device).await.map(drop)
    }

    /// Lets the database grow to so many pages; SQLite then says that the disk is full.
    async fn set_pages_max(&self, pages: u32) {
        let limit = self.0.control(move |connection| {
            connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
            Ok(())
        });
        limit.await.unwrap();
    }

    async fn append(&self, seq: u64) {
        let message = Message {
            seq: Seq::from_u64(seq),
            user: ANA,
            name: "ana".into(),
            key: String::new(),
            content_hash: 0,
            body: "x".repeat(30_000),
            reply_to: None,
            mentions: Vec::new(),
            mention_all: false,
            attachments: Vec::new(),
        };
        let offset = Offset::from_u64(seq + 1);
        let event = RoomEvent::Message(message);
        let record = Record::Room(RoomRecord { room: ROOM, offset, at: NOW, event });
        self.0.append(self.0.write_epoch(), &record).await.unwrap();
    }

    async fn close(self) {
        self.0.close().await;
        std::fs::remove_dir_all(&self.1).unwrap();
    }
}

#[tokio::test]
async fn a_full_database_stalls_reads_of_the_tail_but_neither_appends_nor_other_reads() {
    let store = TestStore::new("stall").await;
    store.set_pages_max(1).await;
    for seq in 1..=20 {
        store.append(seq).await;
    }
    let stalled = store.0.history(ROOM, PageAnchor::Latest, 50, ANA).await;
    assert!(matches!(&stalled, Err(ReadError::Stalled(reason)) if reason.contains("full")));
    let refused = store.add_account(UserId::from_u64(2), "bo").await;
    assert!(matches!(refused, Err(ControlError::DiskFull)), "{refused:?}");
    assert!(store.0.account_by_name("ana".into()).await.unwrap().is_some());

    store.set_pages_max(100_000).await;
    store.append(21).await;
    // The mover tries again by itself; a barrier before that is refused once more.
    let page = loop {
        match store.0.history(ROOM, PageAnchor::Latest, 50, ANA).await {
            Ok(page) => break page,
            Err(ReadError::Stalled(_)) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(page.messages.len(), 21);
    store.add_account(UserId::from_u64(2), "bo").await.unwrap();
    store.close().await;
}

#[tokio::test]
async fn a_failed_transaction_changes_nothing() {
    let store = TestStore::new("rollback").await;
    let room = NewRoom {
        id: RoomId::from_u64(11),
        name: "orphan".into(),
        topic: String::new(),
        owner: UserId::from_u64(99),
        at: NOW,
    };
    let refused = store.0.create_room(room).await;
    assert!(matches!(refused, Err(ControlError::NotFound("user"))), "{refused:?}");
    assert_eq!(store.0.room(RoomId::from_u64(11)).await.unwrap(), None);
    store.close().await;
}

#[tokio::test]
async fn a_job_that_panics_is_answered_and_takes_no_other_with_it() {
    let store = TestStore::new("panics").await;
    // More of them than there are reading threads.
    for _ in 0..10 {
        let read = store.0.read(|_| -> Result<(), ReadError> { panic!("a bug of a read") }).await;
        assert!(matches!(read, Err(ReadError::Panicked)), "{read:?}");
    }
    let changed = store
        .0
        .control(|connection| -> Result<(), ControlError> {
            connection.execute("DELETE FROM users", [])?;
            panic!("a bug of a transaction")
        })
        .await;
    assert!(matches!(changed, Err(ControlError::Panicked)), "{changed:?}");
    assert!(store.0.account(ANA).await.unwrap().is_some(), "what it did was taken back");
    store.append(1).await;
    let page = store.0.history(ROOM, PageAnchor::Latest, 10, ANA).await.unwrap();
    assert_eq!(page.messages.len(), 1);
    store.0.close().await;
}

#[test]
fn statements_are_compiled_once_whatever_they_are_asked() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.sqlite");
    for mut connection in [open_writer(&path).unwrap(), open_reader(&path).unwrap()] {
        let connection = connection.sqlite().expect("it is SQLite's");
        let sql = "SELECT seq FROM everyone_mentions WHERE room = ?1 AND seq > ?2 \
                   ORDER BY seq DESC LIMIT ?3";
        let mut statement = connection.prepare_cached(sql).unwrap();
        for number in 0..10 {
            let mut rows = statement.query([number, number, 1]).unwrap();
            assert!(rows.next().unwrap().is_none());
        }
        assert_eq!(statement.get_status(rusqlite::StatementStatus::RePrepare), 0);
    }
}
