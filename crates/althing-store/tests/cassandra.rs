//! The store on a real Cassandra, which is killed, stopped and started again under it.
//!
//! It takes ten seconds to start, so all tests share one; those that disturb it have it alone. Each
//! has a kind of its own; those that count rows, and the suite, have a keyspace of their own.

#[path = "cassandra/letters.rs"]
mod letters;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use althing::remote::Letter;
use althing::{ActorId, Epoch, Timestamp};
use althing_store::{
    Cassandra, CassandraError, CassandraOptions, Delivery, Event, Posting, Snapshot, Store,
    StoreError, Turn, conformance,
};
use althing_testkit::servers::CassandraServer;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::value::Row;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::RwLock;

/// It ends with this process.
static SERVER: LazyLock<RwLock<CassandraServer>> =
    LazyLock::new(|| RwLock::new(CassandraServer::start()));

/// For tests that need no other.
const SHARED: &str = "shared";

const ACTORS: u64 = 8;
/// Commits that one actor has on their way at once.
const AT_ONCE: u64 = 8;

fn options(keyspace: &str) -> CassandraOptions {
    let mut options = CassandraOptions::default();
    options.keyspace = keyspace.to_owned();
    options.replicas = 1;
    options
}

async fn connect(server: &CassandraServer, keyspace: &str) -> Cassandra {
    let connected = Cassandra::connect_with(&[server.host()], options(keyspace)).await;
    connected.expect("the server takes connections")
}

/// A plain client beside the store.
async fn client(server: &CassandraServer) -> Session {
    SessionBuilder::new().known_node(server.host()).build().await.expect("it connects")
}

fn id(kind: &str, key: u64) -> ActorId {
    ActorId::named(kind, key.to_string())
}

/// Each version is its own state and its own event, so that a hole or a mixture shows.
fn turn(id: &ActorId, epoch: u64, version: u64) -> Turn {
    let bytes = version.to_string().into_bytes();
    Turn {
        snapshot: Some(Snapshot { schema: 1, bytes: bytes.clone(), includes: version }),
        events: vec![Event { number: version, schema: 1, bytes }],
        ..Turn::new(id.clone(), Epoch(epoch), version)
    }
}

/// Whether what is kept is just the turns up to its version; returns that.
async fn whole(store: &dyn Store, id: &ActorId) -> u64 {
    let kept = store.open(id, Epoch(1)).await.expect("it opens");
    let bytes = kept.snapshot.map_or(vec![], |snapshot| snapshot.bytes);
    let expected = if kept.version == 0 { String::new() } else { kept.version.to_string() };
    assert_eq!(bytes, expected.as_bytes(), "a turn is there as a whole");
    assert_eq!(kept.last_event, kept.version);
    let events = store.events(id, 0, usize::MAX).await.expect("it reads");
    let numbers: Vec<_> = events.iter().map(|event| event.number).collect();
    assert_eq!(numbers, (1..=kept.version).collect::<Vec<_>>(), "no event is missing or doubled");
    kept.version
}

fn cause(error: &StoreError) -> &CassandraError {
    let (StoreError::Unavailable(cause) | StoreError::Unknown(cause)) = error else {
        panic!("{error}")
    };
    cause.downcast_ref().expect("it is an error of this store")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cassandra_store_keeps_every_promise() {
    let server = SERVER.read().await;
    let store: Arc<dyn Store> = Arc::new(connect(&server, "conformance").await);
    conformance::run(store, async |store| {
        drop(store);
        let again: Arc<dyn Store> = Arc::new(connect(&server, "conformance").await);
        again
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_former_owner_on_another_connection_writes_nothing_once_it_is_fenced() {
    let server = SERVER.read().await;
    let former = connect(&server, SHARED).await;
    let owner = connect(&server, SHARED).await;
    former.open(&id("fenced", 1), Epoch(1)).await.expect("it opens");
    let mut version = 0;
    for epoch in 2..8 {
        // Commits of the former owner and the takeover meet in the server.
        let late: Vec<_> = (1..=AT_ONCE)
            .map(|n| former.commit(turn(&id("fenced", 1), epoch - 1, version + n)))
            .collect();
        let kept = owner.open(&id("fenced", 1), Epoch(epoch)).await.expect("a later epoch");
        let mut written = version;
        for late in late {
            match late.await {
                Ok(()) => written += 1,
                Err(refused) => assert!(matches!(refused, StoreError::Fenced { .. }), "{refused}"),
            }
        }
        assert_eq!(kept.version, written, "nothing is written after the takeover was answered");
        owner.commit(turn(&id("fenced", 1), epoch, written + 1)).await.expect("the owner goes on");
        version = written + 1;
    }
}

/// Commits until told to end; returns the last version that was acknowledged.
async fn commit_on(
    store: Arc<Cassandra>,
    id: ActorId,
    mut end: tokio::sync::watch::Receiver<bool>,
) -> u64 {
    let mut acknowledged = 0;
    while !*end.borrow_and_update() {
        // After a failure the store is asked what it has.
        let Ok(kept) = store.open(&id, Epoch(1)).await else { continue };
        assert!(kept.version >= acknowledged, "{id}: {acknowledged} was acknowledged, {kept:?}");
        let mut version = kept.version;
        while !*end.borrow_and_update() {
            let answers: Vec<_> =
                (1..=AT_ONCE).map(|more| store.commit(turn(&id, 1, version + more))).collect();
            let mut has_failed = false;
            for (next, answer) in (version + 1..).zip(answers) {
                match answer.await {
                    Ok(()) => acknowledged = next,
                    Err(StoreError::Fenced { .. }) => panic!("nobody else has it"),
                    Err(_) => has_failed = true,
                }
            }
            if has_failed {
                break;
            }
            version += AT_ONCE;
        }
    }
    acknowledged
}

/// What a store with little patience and room answers while there is no server.
async fn is_refused_by_name(store: &Cassandra) {
    let answers: Vec<_> =
        (1..=10).map(|version| store.commit(turn(&id("hasty", 1), 1, version))).collect();
    let (mut waited, mut full) = (0, 0);
    for answer in answers {
        let refused = answer.await.expect_err("there is no server");
        match cause(&refused) {
            CassandraError::Unreachable { waited: time, .. } => {
                assert!(*time >= Duration::from_millis(500));
                waited += 1;
            }
            CassandraError::QueueFull { calls: 5, .. } => full += 1,
            other => panic!("{other}"),
        }
    }
    assert_eq!((waited, full), (5, 5), "what is above the limit is refused at once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_loses_nothing_acknowledged_and_calls_wait_and_are_then_refused_by_name() {
    let mut server = SERVER.write().await;
    let store = Arc::new(connect(&server, SHARED).await);
    let mut hasty = options(SHARED);
    (hasty.wait_within, hasty.calls_max) = (Duration::from_millis(500), 5);
    let hasty = Cassandra::connect_with(&[server.host()], hasty).await.expect("it connects");
    hasty.open(&id("hasty", 1), Epoch(1)).await.expect("it opens");
    let (end, ended) = tokio::sync::watch::channel(false);
    let committing: Vec<_> = (0..ACTORS)
        .map(|key| tokio::spawn(commit_on(store.clone(), id("killed", key), ended.clone())))
        .collect();
    let letters = letters::Transfers::begin(store.clone());
    // Amid commits: once some more of them have been made.
    let probe = id("killed", 1_000);
    for version in 1..=20 {
        store.commit(turn(&probe, 1, version)).await.expect("the server works");
    }
    tokio::task::block_in_place(|| server.kill());
    is_refused_by_name(&hasty).await;
    tokio::task::block_in_place(|| server.start_again());
    assert_eq!(whole(&*store, &probe).await, 20, "it comes back by itself, with what it had");
    store.commit(turn(&probe, 1, 21)).await.expect("the server works");
    end.send(true).expect("they listen");
    for (key, committing) in (0..).zip(committing) {
        let acknowledged = committing.await.expect("no promise is broken");
        assert!(acknowledged > 0, "it got somewhere");
        assert!(whole(&*store, &id("killed", key)).await >= acknowledged);
    }
    letters.check().await;
    while hasty.open(&id("hasty", 1), Epoch(1)).await.is_err() {}
    assert_eq!(whole(&hasty, &id("hasty", 1)).await, 0, "nothing that was refused was written");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stands_still_for_seconds_is_waited_for() {
    let server = SERVER.write().await;
    let mut options = options(SHARED);
    options.answer_within = Duration::from_millis(700);
    let store = Cassandra::connect_with(&[server.host()], options).await.expect("it connects");
    store.open(&id("still", 1), Epoch(1)).await.expect("it opens");
    server.pause();
    let waiting: Vec<_> =
        (1..=10).map(|version| store.commit(turn(&id("still", 1), 1, version))).collect();
    let mut waiting = Box::pin(futures_util::future::join_all(waiting));
    let early = tokio::time::timeout(Duration::from_secs(2), &mut waiting).await;
    assert!(early.is_err(), "nothing is acknowledged by a server that does not run");
    server.resume();
    for answer in waiting.await {
        // What was sent before may be done now, while what excludes it is on its way.
        answer.expect("each is written once");
    }
    assert_eq!(whole(&store, &id("still", 1)).await, 10);
}

/// Passes on what it is told; what the server answers only while it is not muted.
async fn muffler(server: String, is_muted: Arc<AtomicBool>) -> String {
    // The driver takes the server's own address, and the port at which it has found it.
    let (address, _) = server.split_once(':').expect("host and port");
    let listener = TcpListener::bind((address, 0)).await.expect("there is a port");
    let address = listener.local_addr().expect("it is bound").to_string();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let Ok(stream) = TcpStream::connect(&server).await else { continue };
            let ((mut asks, mut hears), (mut answers, mut told)) =
                (client.into_split(), stream.into_split());
            tokio::spawn(async move { copy(&mut asks, &mut told).await });
            let is_muted = is_muted.clone();
            tokio::spawn(async move {
                let mut bytes = vec![0; 65_536];
                while let Ok(read @ 1..) = answers.read(&mut bytes).await {
                    if !is_muted.load(Ordering::SeqCst)
                        && hears.write_all(&bytes[..read]).await.is_err()
                    {
                        break;
                    }
                }
            });
        }
    });
    address
}

/// Waits until the server has a version, which its store may not hear of.
async fn has_version(client: &Session, id: &ActorId, version: i64) {
    let select =
        "SELECT version FROM shared.althing_actors WHERE kind = ? AND key = ? AND sort = 0";
    let owner = (id.kind().as_str().as_bytes(), id.key().expect("it has one").as_bytes());
    loop {
        let found = client.query_unpaged(select, owner).await.expect("it reads");
        let found = found.into_rows_result().expect("rows");
        if found.maybe_first_row::<(i64,)>().expect("a number") == Some((version,)) {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_times_out_after_it_was_applied_is_found_or_else_unknown() {
    let server = SERVER.read().await;
    let is_muted = Arc::new(AtomicBool::new(false));
    let through = muffler(server.host(), is_muted.clone()).await;
    let mut options = options(SHARED);
    options.answer_within = Duration::from_millis(500);
    options.wait_within = Duration::from_secs(5);
    let store = Cassandra::connect_with(&[through], options).await.expect("it connects");
    let client = client(&server).await;
    store.open(&id("applied", 1), Epoch(1)).await.expect("it opens");
    store.commit(turn(&id("applied", 1), 1, 1)).await.expect("it follows");
    // The server has it, and its answer is lost: the store finds out before it tells.
    is_muted.store(true, Ordering::SeqCst);
    let found = store.commit(turn(&id("applied", 1), 1, 2));
    has_version(&client, &id("applied", 1), 2).await;
    is_muted.store(false, Ordering::SeqCst);
    found.await.expect("it was written, once");
    assert_eq!(whole(&store, &id("applied", 1)).await, 2);
    // And if nothing can be found out in time, it says so.
    is_muted.store(true, Ordering::SeqCst);
    let unknown =
        store.commit(turn(&id("applied", 1), 1, 3)).await.expect_err("it is not answered");
    assert!(matches!(unknown, StoreError::Unknown(_)) && unknown.may_have_written(), "{unknown}");
    has_version(&client, &id("applied", 1), 3).await;
    is_muted.store(false, Ordering::SeqCst);
    assert_eq!(whole(&store, &id("applied", 1)).await, 3, "to open the actor tells");
    store.commit(turn(&id("applied", 1), 1, 4)).await.expect("the actor goes on");
}

async fn count(client: &Session, from: &str) -> i64 {
    let select = format!("SELECT count(*) FROM {from} ALLOW FILTERING");
    let found = client.query_unpaged(select, ()).await.expect("it reads");
    found.into_rows_result().expect("a row").first_row::<(i64,)>().expect("a number").0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_journal_is_in_buckets_and_reads_as_one() {
    let server = SERVER.read().await;
    let store = connect(&server, "counted").await;
    let answers: Vec<_> =
        (1..=900).map(|version| store.commit(turn(&id("journal", 1), 1, version))).collect();
    for answer in answers {
        answer.await.expect("it follows");
    }
    assert_eq!(whole(&store, &id("journal", 1)).await, 900);
    let page = store.events(&id("journal", 1), 200, 500).await.expect("it reads");
    let numbers: Vec<_> = page.iter().map(|event| event.number).collect();
    assert_eq!(numbers, (201..=700).collect::<Vec<_>>());
    let client = client(&server).await;
    assert_eq!(count(&client, "counted.althing_events").await, 512);
    let beside = count(&client, "counted.althing_actors WHERE sort = 1").await;
    assert_eq!(beside, 900 - 512, "what is in a bucket is no longer beside the head");
    // Who does not know the actor goes on where the buckets end.
    drop(store);
    let store = connect(&server, "counted").await;
    let answers: Vec<_> =
        (901..=1_100).map(|version| store.commit(turn(&id("journal", 1), 1, version))).collect();
    for answer in answers {
        answer.await.expect("it follows");
    }
    assert_eq!(whole(&store, &id("journal", 1)).await, 1_100);
    assert_eq!(count(&client, "counted.althing_events").await, 768);
}

fn posted(name: &str, due: u64) -> Posting {
    let letter = Letter { to: id("due", 7), message: "ring".to_owned(), body: vec![1] };
    let (name, due) = (name.to_owned(), Timestamp(due));
    Posting::Put(Delivery { owner: id("due", 1), name, due, cron: None, letter })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_due_leaves_nothing_behind_and_stale_entries_are_removed() {
    let server = SERVER.read().await;
    let store = connect(&server, "counted").await;
    let client = client(&server).await;
    let names: Vec<_> = (0..90).map(|name| format!("{name:03}")).collect();
    let postings = names.iter().zip(0..).map(|(name, at)| posted(name, at * 2_000)).collect();
    let left = Turn { postings, ..Turn::new(id("due", 1), Epoch(1), 1) };
    store.commit(left).await.expect("it follows");
    // Somebody has ended between an entry and its row, long ago.
    let select = "SELECT bucket, shard, at, kind, key, name FROM counted.althing_due LIMIT 1";
    let found = client.query_unpaged(select, ()).await.expect("it reads");
    let found = found.into_rows_result().expect("rows").first_row::<Row>().expect("one is there");
    let stale = "INSERT INTO counted.althing_due (bucket, shard, at, kind, key, name, entry, made)
                 VALUES (?, ?, ?, ?, ?, ?, 0x64, 0)";
    client.query_unpaged(stale, found.columns).await.expect("it is written");
    let due = store.due(Timestamp(u64::MAX), None, usize::MAX).await.expect("it reads");
    assert_eq!(due.iter().map(|it| &it.name).collect::<Vec<_>>(), names.iter().collect::<Vec<_>>());
    assert_eq!(count(&client, "counted.althing_due").await, 90, "the stale one is gone");
    let settled = due.iter().map(|it| althing_store::Settled { mark: it.mark(), next: None });
    store.settle(settled.collect()).await.expect("it is taken down");
    assert_eq!(store.due(Timestamp(u64::MAX), None, 9).await.expect("it reads"), []);
    assert_eq!(count(&client, "counted.althing_due").await, 0);
    assert_eq!(count(&client, "counted.althing_actors WHERE sort = 2").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_fit_is_refused_by_name() {
    let server = SERVER.read().await;
    let wrong = Cassandra::connect_with(&[server.host()], options("no-name")).await;
    assert!(
        matches!(wrong.expect_err("no name"), CassandraError::Keyspace(name) if name == "no-name")
    );
    let store = connect(&server, "limits").await;
    let long = ActorId::named("long", "k".repeat(8_189));
    let refused = store.open(&long, Epoch(1)).await.expect_err("it does not fit");
    assert!(matches!(refused, StoreError::TooLarge { bytes: 8_193, max: 8_192, .. }), "{refused}");
    let large = |bytes| Turn {
        snapshot: Some(Snapshot { schema: 1, bytes: vec![7; bytes], includes: 0 }),
        ..Turn::new(id("limits", 2), Epoch(1), 1)
    };
    let refused = store.commit(large((8 << 20) + 1)).await.expect_err("it does not fit");
    assert!(matches!(refused, StoreError::TooLarge { what: "turn", .. }), "{refused}");
    store.commit(large(8 << 20)).await.expect("the largest one is written");
    // Tables of a later version.
    let later = "UPDATE limits.althing_format SET format = 99 WHERE one = 1";
    client(&server).await.query_unpaged(later, ()).await.expect("it is written");
    let refused = Cassandra::connect_with(&[server.host()], options("limits")).await;
    let refused = refused.expect_err("a later version");
    assert!(matches!(refused, CassandraError::Later { found: 99, known: 1 }), "{refused}");
}

#[test]
fn a_store_whose_runtime_has_ended_refuses_by_name_and_keeps_nobody_waiting() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let store = runtime.block_on(async { connect(&*SERVER.read().await, SHARED).await });
    drop(runtime);
    let answers =
        [store.commit(turn(&id("ended", 1), 1, 1)), store.commit(turn(&id("ended", 2), 1, 1))];
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for answer in answers {
        let refused = runtime.block_on(answer).expect_err("nobody is there");
        assert!(matches!(cause(&refused), CassandraError::Ended), "{refused}");
    }
}
