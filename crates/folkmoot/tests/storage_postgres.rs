//! A store in PostgreSQL that loses its server, meets a second writer, or is told the wrong thing at
//! its start.

#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

#[path = "storage_postgres/lost.rs"]
mod lost;
#[path = "storage_postgres/roles.rs"]
mod roles;
#[path = "storage_support/postgres.rs"]
mod storage_postgres;
mod storage_support;
#[path = "storage_support/way.rs"]
mod way;

use std::time::{Duration, Instant};

use althing_testkit::servers::PostgresServer;
use folkmoot::storage::{
    AppendError, ControlError, DatabaseAddress, HistoryPage, OpenError, PageAnchor, ReadError,
    Record, Store, StoreOptions, UnixMillis, UserId,
};
use storage_support::{ANA, ROOM, TestDirectory, account, message, populate};
use tokio_postgres::{Client, NoTls};

fn options(directory: &TestDirectory, database: &DatabaseAddress) -> StoreOptions {
    directory.options_on(database)
}

async fn admin(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn append(store: &Store, seq: u64) -> Result<(), AppendError> {
    store.append(store.write_epoch(), &said(seq)).await.map(drop)
}

fn said(seq: u64) -> Record {
    message(seq + 1, seq, "what was said")
}

async fn numbers(store: &Store) -> Vec<u64> {
    let page: HistoryPage = store.history(ROOM, PageAnchor::Latest, 1_000, ANA).await.unwrap();
    page.messages.iter().map(|stored| stored.message.seq.as_u64()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_is_refused_and_one_that_was_taken_for_dead_writes_no_more() {
    let database = storage_postgres::new_database().await;
    let directories = [TestDirectory::new("pg-first"), TestDirectory::new("pg-second")];
    let first = directories[0].open_on(&database);
    populate(&first).await;
    append(&first, 1).await.unwrap();
    let refused = Store::open(&options(&directories[1], &database)).unwrap_err();
    assert!(matches!(refused, OpenError::DatabaseInUse { .. }), "{refused}");

    // Its session is gone though it lives, as after a cut of the network.
    let url = database.to_string();
    let end = "SELECT count(pg_terminate_backend(l.pid)) FROM pg_locks l \
               JOIN pg_database d ON d.oid = l.database AND d.datname = current_database() \
               WHERE l.locktype = 'advisory'";
    let admin = admin(&url).await;
    admin.batch_execute(end).await.unwrap();
    let second = loop {
        match Store::open(&options(&directories[1], &database)) {
            Ok(second) => break second,
            // The first one was faster and has it again.
            Err(OpenError::DatabaseInUse { .. }) => admin.batch_execute(end).await.unwrap(),
            Err(error) => panic!("{error}"),
        }
    };
    append(&second, 2).await.unwrap();
    let late = append(&first, 2).await.unwrap_err();
    assert!(matches!(late, AppendError::TakenOver), "{late}");
    let (new, device) = account(UserId::from_u64(77), "late");
    let late = first.create_account(new, device).await.unwrap_err();
    assert!(matches!(late, ControlError::TakenOver), "{late}");
    let again = append(&first, 2).await.unwrap_err();
    assert!(matches!(again, AppendError::TakenOver), "{again}");
    append(&second, 3).await.unwrap();
    assert_eq!(numbers(&second).await, [1, 2, 3]);
    first.close().await;
    second.close().await;
}

/// A certificate for a host that signs itself, in a file, and its key.
fn certificate(host: &str, file: &std::path::Path) -> (String, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let signed = rcgen::CertificateParams::new(vec![host.to_owned()]).unwrap().self_signed(&key);
    let signed = signed.unwrap().pem();
    std::fs::write(file, &signed).unwrap();
    (signed, key.serialize_pem())
}

#[tokio::test(flavor = "multi_thread")]
async fn all_sessions_are_encrypted_if_the_address_wants_it_and_a_strange_server_is_refused() {
    let mut server = tokio::task::block_in_place(PostgresServer::start);
    let directory = TestDirectory::new("pg-tls");
    let files = tempfile::tempdir().unwrap();
    let (ours, other) = (files.path().join("ours.pem"), files.path().join("other.pem"));
    let (signed, key) = certificate(server.address().0, &ours);
    certificate(server.address().0, &other);
    tokio::task::block_in_place(|| server.encrypt(&signed, &key));
    let address = |root: &std::path::Path| -> DatabaseAddress {
        let url = format!("{}?sslmode=verify-full&sslrootcert={}", server.url(), root.display());
        url.parse().unwrap()
    };
    let refused = Store::open(&options(&directory, &address(&other))).unwrap_err();
    let why = format!("{:#}", anyhow::Error::from(refused));
    assert!(why.contains("UnknownIssuer") || why.contains("BadSignature"), "{why}");
    let store = directory.open_on(&address(&ours));
    populate(&store).await;
    append(&store, 1).await.unwrap();
    assert_eq!(numbers(&store).await, [1]);
    let admin = admin(&server.url()).await;
    let sessions = "SELECT s.ssl FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)
                    WHERE a.application_name LIKE 'folkmoot%'";
    let sessions = admin.query(sessions, &[]).await.unwrap();
    assert!(sessions.len() > 1 && sessions.iter().all(|row| row.get(0)), "{sessions:?}");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_wait_for_a_server_that_starts_again_and_are_there_once() {
    let mut server = tokio::task::block_in_place(PostgresServer::start);
    let database: DatabaseAddress = server.url().parse().unwrap();
    let directory = TestDirectory::new("pg-restart");
    let store = directory.open_on(&database);
    populate(&store).await;
    let mut waiting = Vec::new();
    for round in 0..2 {
        for seq in 1..=200 {
            waiting.push(store.append(store.write_epoch(), &said(round * 200 + seq)));
        }
        tokio::task::block_in_place(|| server.start_again());
    }
    for append in waiting {
        append.await.unwrap();
    }
    assert_eq!(numbers(&store).await, (1..=400).collect::<Vec<_>>());
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stays_away_is_named_and_everything_goes_on_once_it_is_back() {
    let mut server = tokio::task::block_in_place(PostgresServer::start);
    let database: DatabaseAddress = server.url().parse().unwrap();
    let directory = TestDirectory::new("pg-away");
    let store = directory.open_on(&database);
    populate(&store).await;
    append(&store, 1).await.unwrap();
    tokio::task::block_in_place(|| server.kill());
    let began = Instant::now();
    let refused = append(&store, 2).await.unwrap_err();
    assert!(
        matches!(&refused, AppendError::Failed(why) if why.contains("PostgreSQL")),
        "{refused}"
    );
    assert!(began.elapsed() > Duration::from_secs(5), "it waited for a restart");
    let began = Instant::now();
    let (new, device) = account(UserId::from_u64(77), "late");
    let refused = store.create_account(new, device).await.unwrap_err();
    assert!(matches!(refused, ControlError::Away(_)), "{refused}");
    let stalled = store.history(ROOM, PageAnchor::Latest, 1, ANA).await.unwrap_err();
    assert!(matches!(stalled, ReadError::Stalled(_) | ReadError::Away(_)), "{stalled}");
    assert!(began.elapsed() < Duration::from_secs(8), "nobody waits again");
    tokio::task::block_in_place(|| server.start_again());
    while store.ready().await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let epoch = store.load_room(ROOM, 0, UnixMillis::from_u64(1)).await.unwrap().unwrap().epoch;
    store.append(epoch, &said(2)).await.unwrap();
    assert_eq!(numbers(&store).await, [1, 2]);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stands_still_is_waited_for_and_then_named_within_twenty_seconds() {
    let server = tokio::task::block_in_place(PostgresServer::start);
    let database: DatabaseAddress = server.url().parse().unwrap();
    let directory = TestDirectory::new("pg-still");
    let store = directory.open_on(&database);
    populate(&store).await;
    server.pause();
    let waiting: Vec<_> =
        (1..=100).map(|seq| store.append(store.write_epoch(), &said(seq))).collect();
    tokio::time::sleep(Duration::from_secs(5)).await;
    server.resume();
    for append in waiting {
        append.await.unwrap();
    }
    assert_eq!(numbers(&store).await, (1..=100).collect::<Vec<_>>());
    server.pause();
    let began = Instant::now();
    let refused = append(&store, 101).await.unwrap_err();
    let waited = began.elapsed();
    server.resume();
    assert!(
        matches!(&refused, AppendError::Failed(why) if why.contains("PostgreSQL")),
        "{refused}"
    );
    let waits = Duration::from_secs(8)..Duration::from_secs(20);
    assert!(waits.contains(&waited), "{waited:?}");
    while store.ready().await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // What was refused may have been written all the same.
    let last = numbers(&store).await.len() as u64;
    assert!(last == 100 || last == 101, "{last}");
    append(&store, last + 1).await.unwrap();
    assert_eq!(numbers(&store).await, (1..=last + 1).collect::<Vec<_>>());
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_at_the_start_is_said_without_the_password() {
    let database = storage_postgres::new_database().await;
    let url = database.to_string();
    let directory = TestDirectory::new("pg-wrong");
    let open = |url: &str| {
        let error = Store::open(&options(&directory, &url.parse().unwrap())).unwrap_err();
        assert!(!error.to_string().contains("hush"), "{error}");
        error.to_string()
    };
    let nobody = url.replace("test@", "nobody:hush@");
    assert!(open(&nobody).contains("nobody"), "{}", open(&nobody));
    let nowhere = "postgres://test:hush@127.0.0.1:1/test";
    assert!(open(nowhere).contains("127.0.0.1:1"), "{}", open(nowhere));
    let missing = format!("{url}missing");
    assert!(open(&missing).contains("does not exist"), "{}", open(&missing));

    let store = Store::open(&options(&directory, &database)).unwrap();
    store.close().await;
    let admin = admin(&url).await;
    admin.batch_execute("UPDATE folkmoot.steps SET taken = 99").await.unwrap();
    assert!(open(&url).contains("schema 99"), "{}", open(&url));
    let embedded = Store::open(&directory.options()).unwrap_err();
    assert!(matches!(embedded, OpenError::OtherStore { .. }), "{embedded}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_copy_of_the_database_begins_a_new_epoch() {
    let database = storage_postgres::new_database().await;
    let directory = TestDirectory::new("pg-copy");
    let store = directory.open_on(&database);
    let epoch = store.stream_epoch().to_owned();
    store.close().await;
    let store = directory.open_on(&database);
    assert_eq!(store.stream_epoch(), epoch, "a restart is no copy");
    store.close().await;
    let copy = format!("{database}_copy");
    let name = copy.rsplit('/').next().unwrap();
    let source = database.to_string();
    let source = source.rsplit('/').next().unwrap();
    let admin = admin(&database.to_string().replace(source, "postgres")).await;
    let made = format!("CREATE DATABASE {name} TEMPLATE {source}");
    // The sessions of a closed store end a moment after it.
    while admin.batch_execute(&made).await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let store = directory.open_on(&copy.parse::<DatabaseAddress>().unwrap());
    assert_ne!(store.stream_epoch(), epoch);
    store.close().await;
}
