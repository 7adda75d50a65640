//! A store whose log is in Cassandra: its index is lost, another server takes it over, its servers
//! stay away or answer too late, and what was deleted goes.

#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

#[path = "storage_support/cassandra.rs"]
mod storage_cassandra;
mod storage_support;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use althing_testkit::servers::CassandraServer;
use folkmoot::storage::{
    AppendError, CassandraAddress, ControlError, NodeName, Offset, OpenError, PageAnchor, Quote,
    Record, RoomEvent, ScanPlace, Seq, Store, StoreOptions, UnixMillis, UserId, UserRecord,
};
use folkmoot_protocol::chat::{Excerpt, UserEvent};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use storage_cassandra::{host, new_keyspace};
use storage_support::{ANA, BO, ROOM, TestDirectory, account, message, populate, room_event};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn append(store: &Store, seq: u64) -> Result<(), AppendError> {
    store.append(store.write_epoch(), &said(seq)).await.map(drop)
}

fn said(seq: u64) -> Record {
    message(seq + 1, seq, "what was said")
}

async fn numbers(store: &Store) -> Vec<u64> {
    let page = store.history(ROOM, PageAnchor::Latest, 1_000, ANA).await.unwrap();
    page.messages.iter().map(|stored| stored.message.seq.as_u64()).collect()
}

fn remove_index(directory: &TestDirectory) {
    for name in ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"] {
        let _ = std::fs::remove_file(directory.path().join(name));
    }
    assert!(!directory.path().join("index.sqlite").exists());
}

async fn late_account(store: &Store) -> Result<(), ControlError> {
    let (new, device) = account(UserId::from_u64(77), "late");
    store.create_account(new, device).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_lost_or_behind_is_made_anew_with_all_that_was_acknowledged() {
    let keyspace = new_keyspace().await;
    let directory = TestDirectory::new("cassandra-index");
    let store = directory.open_on(&keyspace);
    let epoch = store.stream_epoch().to_owned();
    populate(&store).await;
    // More than a bucket of entries.
    for seq in 1..=300 {
        append(&store, seq).await.unwrap();
    }
    store.close().await;
    let behind = directory.path().join("behind");
    std::fs::copy(directory.path().join("index.sqlite"), &behind).unwrap();
    let store = directory.open_on(&keyspace);
    append(&store, 301).await.unwrap();
    late_account(&store).await.unwrap();
    store.close().await;

    remove_index(&directory);
    let store = directory.open_on(&keyspace);
    assert_eq!(numbers(&store).await, (1..=301).collect::<Vec<_>>());
    assert_eq!(store.stream_epoch(), epoch, "clients go on");
    assert!(matches!(late_account(&store).await, Err(ControlError::NameTaken(_))));
    store.close().await;

    remove_index(&directory);
    std::fs::rename(&behind, directory.path().join("index.sqlite")).unwrap();
    let store = directory.open_on(&keyspace);
    assert_eq!(numbers(&store).await, (1..=301).collect::<Vec<_>>());
    assert!(matches!(late_account(&store).await, Err(ControlError::NameTaken(_))));
    append(&store, 302).await.unwrap();
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_takes_over_and_the_first_one_refuses_by_name_and_says_so() {
    let keyspace = new_keyspace().await;
    let directories = [TestDirectory::new("cassandra-1"), TestDirectory::new("cassandra-2")];
    let first = directories[0].open_on(&keyspace);
    populate(&first).await;
    append(&first, 1).await.unwrap();
    let second = directories[1].open_on(&keyspace);
    // Without a write of its own.
    first.lost().await;
    append(&second, 2).await.unwrap();
    let late = append(&first, 2).await.unwrap_err();
    assert!(matches!(late, AppendError::TakenOver), "{late}");
    let late = late_account(&first).await.unwrap_err();
    assert!(matches!(late, ControlError::TakenOver), "{late}");
    append(&second, 3).await.unwrap();
    assert_eq!(numbers(&second).await, [1, 2, 3]);
    first.close().await;
    // A write is refused at once, before anybody has looked.
    let third = directories[0].open_on(&keyspace);
    let late = append(&second, 4).await.unwrap_err();
    assert!(matches!(late, AppendError::TakenOver), "{late}");
    second.lost().await;
    append(&third, 4).await.unwrap();
    assert_eq!(numbers(&third).await, [1, 2, 3, 4]);
    second.close().await;
    third.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_opened_is_refused_with_the_reason() {
    let keyspace = new_keyspace().await;
    let directory = TestDirectory::new("cassandra-refused");
    let options = directory.options_on(&keyspace);
    let node = Some(NodeName { cluster: "moot".into(), node: "one".into() });
    let of_several = StoreOptions { node, ..options.clone() };
    let refused = Store::open(&of_several).unwrap_err();
    assert!(matches!(refused, OpenError::OneNode { .. }), "{refused}");
    let store = Store::open(&options).unwrap();
    populate(&store).await;
    let locked = Store::open(&options).unwrap_err();
    assert!(matches!(locked, OpenError::Locked { .. }), "{locked}");
    store.close().await;
    let embedded = Store::open(&directory.options()).unwrap_err().to_string();
    assert!(embedded.contains("its data in Cassandra: say where with --store"), "{embedded}");
    let plain = TestDirectory::new("cassandra-embedded");
    plain.open().close().await;
    let holds = Store::open(&plain.options_on(&keyspace)).unwrap_err().to_string();
    assert!(holds.contains("holds the data of an embedded store"), "{holds}");
    // An index of entries that the keyspace lacks.
    let other = new_keyspace().await;
    let strange = Store::open(&directory.options_on(&other)).unwrap_err().to_string();
    assert!(strange.contains("holds no data") && strange.contains("index.sqlite"), "{strange}");
    let third = TestDirectory::new("cassandra-other");
    third.open_on(&other).close().await;
    let strange = Store::open(&directory.options_on(&other)).unwrap_err().to_string();
    assert!(strange.contains("entry") && strange.contains("lacks"), "{strange}");
    let nobody: CassandraAddress = "cassandra://ana:hush@127.0.0.1:1/chat".parse().unwrap();
    let nobody = Store::open(&third.options_on(&nobody)).unwrap_err().to_string();
    assert!(nobody.contains("cannot use cassandra://127.0.0.1:1/chat"), "{nobody}");
    assert!(!nobody.contains("hush"), "{nobody}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyspace_of_a_later_version_is_refused_and_not_taken_from_its_server() {
    let keyspace = new_keyspace().await;
    let name = keyspace.to_string().rsplit('/').next().unwrap().to_owned();
    let directories = ["cassandra-later", "cassandra-earlier"].map(TestDirectory::new);
    let store = directories[0].open_on(&keyspace);
    populate(&store).await;
    let client = client().await;
    for (column, says) in [("steps", "schema 99"), ("format", "format 99")] {
        let later =
            format!("UPDATE {name}.folkmoot_store SET {column} = 99 WHERE one = 1 IF EXISTS");
        client.query_unpaged(later, ()).await.unwrap();
        let refused = Store::open(&directories[1].options_on(&keyspace)).unwrap_err().to_string();
        assert!(refused.contains(says), "{refused}");
        append(&store, u64::from(column == "format") + 1).await.unwrap();
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_transaction_is_kept_and_a_larger_one_is_refused_by_name_and_alone() {
    let keyspace = new_keyspace().await;
    let directory = TestDirectory::new("cassandra-largest");
    let store = directory.open_on(&keyspace);
    populate(&store).await;
    let with_name = |id, bytes: usize| {
        let (mut new, device) = account(UserId::from_u64(id), &format!("user{id}"));
        new.display_name = "n".repeat(bytes);
        store.create_account(new, device)
    };
    with_name(70, 12_500_000).await.unwrap();
    let refused = with_name(71, 12_600_000).await.unwrap_err().to_string();
    assert!(refused.contains("over the limit of 12582912 bytes"), "{refused}");
    with_name(72, 10).await.unwrap();
    append(&store, 1).await.unwrap();
    store.close().await;
    remove_index(&directory);
    let store = directory.open_on(&keyspace);
    assert_eq!(numbers(&store).await, [1]);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_wait_for_servers_that_pause_and_are_refused_by_name_if_they_stay_away() {
    let mut server = tokio::task::block_in_place(CassandraServer::start);
    let keyspace: CassandraAddress =
        format!("cassandra://{}/away?replicas=1", server.host()).parse().unwrap();
    let directory = TestDirectory::new("cassandra-away");
    let options = StoreOptions { queued_bytes_max: 64 << 10, ..directory.options_on(&keyspace) };
    let store = Store::open(&options).unwrap();
    populate(&store).await;
    append(&store, 1).await.unwrap();
    // Longer than an answer may take, so that nobody knows what became of the first batch.
    server.pause();
    let waiting: Vec<_> =
        (2..=200).map(|seq| store.append(store.write_epoch(), &said(seq))).collect();
    tokio::time::sleep(Duration::from_secs(6)).await;
    server.resume();
    for append in waiting {
        append.await.unwrap();
    }
    assert_eq!(numbers(&store).await, (1..=200).collect::<Vec<_>>());

    tokio::task::block_in_place(|| server.kill());
    let began = Instant::now();
    let refused = append(&store, 201).await.unwrap_err();
    let waited = began.elapsed();
    assert!(matches!(&refused, AppendError::Failed(why) if why.contains("Cassandra")), "{refused}");
    assert!(waited > Duration::from_secs(8) && waited < Duration::from_secs(25), "{waited:?}");
    let late = late_account(&store).await.unwrap_err();
    assert!(matches!(&late, ControlError::Away(why) if why.contains("Cassandra")), "{late}");
    // Whoever comes meanwhile is refused at once, and nothing piles up.
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(20) {
        let refused = append(&store, 201).await.unwrap_err();
        assert!(matches!(refused, AppendError::Failed(_)), "{refused}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::task::block_in_place(|| server.start_again());
    store.barrier().await.ok();
    let snapshot = loop {
        match store.load_room(ROOM, 0, UnixMillis::from_u64(1)).await {
            Ok(snapshot) => break snapshot.unwrap(),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    };
    // What was refused may have been written all the same.
    let last = snapshot.summary.last_seq.as_u64();
    assert!(last == 200 || last == 201, "{last}");
    while let Err(error) = append(&store, last + 1).await {
        assert!(matches!(error, AppendError::Failed(_)), "{error}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    late_account(&store).await.unwrap();
    assert_eq!(numbers(&store).await, (1..=last + 1).collect::<Vec<_>>());
    store.close().await;
    remove_index(&directory);
    let store = directory.open_on(&keyspace);
    assert_eq!(numbers(&store).await, (1..=last + 1).collect::<Vec<_>>());
    store.close().await;
}

const OPEN: u8 = 0;
const ARMED: u8 = 1;
const MUTE: u8 = 2;

/// Passes on what the client says, and once it is armed no answer from the next batch on.
#[derive(Clone, Default)]
struct Muffler(Arc<AtomicU8>);

impl Muffler {
    async fn start(&self, server: &str) -> String {
        // The driver takes the server's own address, and the port at which it has found it.
        let (address, _) = server.split_once(':').unwrap();
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let through = listener.local_addr().unwrap().to_string();
        let (muffler, server) = (self.clone(), server.to_owned());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(stream) = TcpStream::connect(&server).await else { continue };
                let ((asks, hears), (answers, told)) = (client.into_split(), stream.into_split());
                tokio::spawn(muffler.clone().ask(asks, told));
                tokio::spawn(muffler.clone().answer(answers, hears));
            }
        });
        through
    }

    async fn ask(self, mut from: impl AsyncReadExt + Unpin, mut to: impl AsyncWriteExt + Unpin) {
        let mut bytes = vec![0; 65_536];
        while let Ok(read @ 1..) = from.read(&mut bytes).await {
            // The text of the message, which only the batch of its entry has.
            if bytes[..read].windows(9).any(|part| part == b"mute here") {
                let _ = self.0.compare_exchange(ARMED, MUTE, Ordering::SeqCst, Ordering::SeqCst);
            }
            if to.write_all(&bytes[..read]).await.is_err() {
                break;
            }
        }
    }

    async fn answer(self, mut from: impl AsyncReadExt + Unpin, mut to: impl AsyncWriteExt + Unpin) {
        let mut bytes = vec![0; 65_536];
        while let Ok(read @ 1..) = from.read(&mut bytes).await {
            let is_mute = self.0.load(Ordering::SeqCst) == MUTE;
            if !is_mute && to.write_all(&bytes[..read]).await.is_err() {
                break;
            }
        }
    }
}

async fn client() -> Session {
    SessionBuilder::new().known_node(host().await).build().await.unwrap()
}

async fn last_entry(client: &Session, keyspace: &str) -> i64 {
    let sql = format!("SELECT max(number) FROM {keyspace}.folkmoot_log");
    let found = client.query_unpaged(sql, ()).await.unwrap().into_rows_result().unwrap();
    found.first_row::<(Option<i64>,)>().unwrap().0.unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_whose_answer_is_lost_is_there_once_and_acknowledged() {
    let muffler = Muffler::default();
    let through = muffler.start(&host().await).await;
    let keyspace: CassandraAddress =
        format!("cassandra://{through}/muffled?replicas=1").parse().unwrap();
    let directory = TestDirectory::new("cassandra-muffled");
    let store = directory.open_on(&keyspace);
    populate(&store).await;
    append(&store, 1).await.unwrap();
    let client = client().await;
    let before = last_entry(&client, "muffled").await;
    muffler.0.store(ARMED, Ordering::SeqCst);
    let muted = store.append(store.write_epoch(), &message(3, 2, "mute here"));
    let next = store.append(store.write_epoch(), &said(3));
    while last_entry(&client, "muffled").await == before {}
    muffler.0.store(OPEN, Ordering::SeqCst);
    muted.await.unwrap();
    next.await.unwrap();
    assert_eq!(numbers(&store).await, [1, 2, 3]);
    store.close().await;
    remove_index(&directory);
    let store = directory.open_on(&keyspace);
    assert_eq!(numbers(&store).await, [1, 2, 3]);
    store.close().await;
}

/// Whether anything that Cassandra answers with has a text: entries, and pieces of snapshots.
async fn keeps(client: &Session, keyspace: &str, text: &str) -> bool {
    let mut found = false;
    for table in ["folkmoot_log", "folkmoot_pieces"] {
        let sql = format!("SELECT data FROM {keyspace}.{table}");
        let rows = client.query_unpaged(sql, ()).await.unwrap().into_rows_result().unwrap();
        for row in rows.rows::<(Option<Vec<u8>>,)>().unwrap() {
            let data = row.unwrap().0.unwrap_or_default();
            found |= data.windows(text.len()).any(|part| part == text.as_bytes());
        }
    }
    found
}

fn file_has(path: &Path, text: &str) -> bool {
    let bytes = std::fs::read(path).unwrap();
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn text_that_was_deleted_goes_with_the_entries_before_the_next_snapshot() {
    const SECRET: &str = "a secret that must go";
    let keyspace = new_keyspace().await;
    let name = keyspace.to_string().rsplit('/').next().unwrap().to_owned();
    let directory = TestDirectory::new("cassandra-erased");
    let store = directory.open_on(&keyspace);
    populate(&store).await;
    store.append(store.write_epoch(), &message(2, 1, SECRET)).await.unwrap();
    let client = client().await;
    assert!(keeps(&client, &name, SECRET).await);
    let deleted = RoomEvent::Deleted { seq: Seq::from_u64(1), by: ANA };
    store.append(store.write_epoch(), &room_event(3, deleted)).await.unwrap();
    let body = "long ".repeat(12_000);
    for seq in 2..=40 {
        let long = message(seq + 2, seq, &body);
        store.append(store.write_epoch(), &long).await.unwrap();
    }
    // More than a MiB is behind the first snapshot, so another one is due.
    while keeps(&client, &name, SECRET).await {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    append_after(&store, 41).await;
    store.close().await;
    assert!(!file_has(&directory.path().join("index.sqlite"), SECRET));
    let stale = TestDirectory::new("cassandra-erased-2");
    let store = stale.open_on(&keyspace);
    assert_eq!(numbers(&store).await, (1..=41).collect::<Vec<_>>());
    assert!(!keeps(&client, &name, SECRET).await);
    store.close().await;
}

/// Names of one user in more events and messages of others than one entry of the log could hold.
#[tokio::test(flavor = "multi_thread")]
async fn names_that_stand_in_many_places_are_erased_by_as_many_entries_as_it_takes() {
    const PLACES: u64 = 2_000;
    let keyspace = new_keyspace().await;
    let directory = TestDirectory::new("cassandra-names");
    let store = directory.open_on(&keyspace);
    populate(&store).await;
    let long = "long ".repeat(1_700);
    let mut waiting = Vec::new();
    for number in 1..=PLACES {
        let mention = UserEvent::Mention(Excerpt {
            room: ROOM,
            seq: Seq::from_u64(number),
            user: ANA,
            name: "Anastasia".into(),
            excerpt: long.clone(),
            at: UnixMillis::from_u64(number),
        });
        let mention = Record::User(UserRecord {
            user: BO,
            offset: Offset::from_u64(number),
            at: UnixMillis::from_u64(number),
            data: serde_json::to_string(&mention).unwrap(),
            effect: None,
        });
        waiting.push(store.append(store.write_epoch(), &mention));
        let quote = message(number + 1, number, "short");
        let Record::Room(mut quote) = quote else { unreachable!() };
        if let RoomEvent::Message(message) = &mut quote.event {
            message.user = BO;
            let (seq, body) = (Seq::from_u64(1), long.clone());
            message.reply_to = Some(Quote { seq, user: ANA, name: "Anastasia".into(), body });
        }
        waiting.push(store.append(store.write_epoch(), &Record::Room(quote)));
        while waiting.len() > 500 {
            waiting.remove(0).await.unwrap();
        }
    }
    for append in waiting {
        append.await.unwrap();
    }
    let mut from = Some(ScanPlace::Begin);
    while let Some(place) = from {
        let found = store.name_places(ANA, place).await.unwrap();
        from = found.next;
        store.erase_names(ANA, found).await.unwrap();
    }
    let mut from = Some(ScanPlace::Begin);
    while let Some(place) = from {
        let found = store.name_places(ANA, place).await.unwrap();
        assert!(found.is_empty(), "{found:?}");
        from = found.next;
    }
    store.close().await;
}

async fn append_after(store: &Store, seq: u64) {
    store.append(store.write_epoch(), &message(seq + 2, seq, "after")).await.unwrap();
}
