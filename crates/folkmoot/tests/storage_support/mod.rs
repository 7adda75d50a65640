//! A data directory that cleans up after itself, and two people with a room in it.

#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

use std::path::{Path, PathBuf};

use folkmoot::storage::{
    DeviceId, Message, NewAccount, NewDevice, NewRoom, Offset, Record, RoomEvent, RoomId,
    RoomRecord, Seq, Store, StoreAddress, StoreOptions, UnixMillis, UserId,
};

pub(crate) const ANA: UserId = UserId::from_u64(1);
pub(crate) const BO: UserId = UserId::from_u64(2);
pub(crate) const ROOM: RoomId = RoomId::from_u64(10);

/// A fresh directory under the build's own temporary one.
pub(crate) struct TestDirectory(PathBuf);

impl TestDirectory {
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("{name}-{}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.join("data")
    }

    pub(crate) fn options(&self) -> StoreOptions {
        small_options(self.path())
    }

    pub(crate) fn open(&self) -> Store {
        Store::open(&self.options()).unwrap()
    }

    /// With the data in a database.
    pub(crate) fn open_on(&self, database: &(impl Into<StoreAddress> + Clone)) -> Store {
        Store::open(&self.options_on(database)).unwrap()
    }

    pub(crate) fn options_on(&self, database: &(impl Into<StoreAddress> + Clone)) -> StoreOptions {
        StoreOptions { database: Some(database.clone().into()), ..self.options() }
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Small segments, so that a test passes through many of them.
pub(crate) fn small_options(path: PathBuf) -> StoreOptions {
    StoreOptions { segment_bytes: 64 << 10, readers: 2, ..StoreOptions::new(path) }
}

pub(crate) fn account(id: UserId, name: &str) -> (NewAccount, NewDevice) {
    let at = UnixMillis::from_u64(1);
    let new = NewAccount {
        id,
        name: name.into(),
        display_name: name.to_uppercase(),
        password_hash: "$argon2id$".into(),
        at,
    };
    let token_hash = [u8::try_from(id.as_u64()).unwrap(); 32];
    let device = NewDevice {
        id: DeviceId::from_u64(id.as_u64() + 100),
        user: id,
        label: "test".into(),
        token_hash,
        at,
    };
    (new, device)
}

/// Ana and Bo have accounts; Ana has a room, whose stream is at offset 1.
pub(crate) async fn populated(directory: &TestDirectory) -> Store {
    let store = directory.open();
    populate(&store).await;
    store
}

pub(crate) async fn populate(store: &Store) {
    for (id, name) in [(ANA, "ana"), (BO, "bo")] {
        let (new, device) = account(id, name);
        store.create_account(new, device).await.unwrap();
    }
    let (name, topic) = ("room".to_owned(), String::new());
    let room = NewRoom { id: ROOM, name, topic, owner: ANA, at: UnixMillis::from_u64(1) };
    store.create_room(room).await.unwrap();
}

pub(crate) fn room_event(offset: u64, event: RoomEvent) -> Record {
    Record::Room(RoomRecord {
        room: ROOM,
        offset: Offset::from_u64(offset),
        at: UnixMillis::from_u64(offset),
        event,
    })
}

pub(crate) fn message(offset: u64, seq: u64, body: &str) -> Record {
    room_event(
        offset,
        RoomEvent::Message(Message {
            seq: Seq::from_u64(seq),
            user: ANA,
            name: "ana".into(),
            key: format!("key-{seq}"),
            content_hash: seq,
            body: body.into(),
            reply_to: None,
            mentions: Vec::new(),
            mention_all: false,
            attachments: Vec::new(),
        }),
    )
}
