//! The store on a real PostgreSQL, which is killed, stopped and started again under it.

use std::sync::Arc;
use std::time::Duration;

use althing::{ActorId, Epoch};
use althing_store::{
    Event, Postgres, PostgresError, PostgresOptions, Snapshot, Store, StoreError, Turn, conformance,
};
use althing_testkit::servers::PostgresServer;
use tokio_postgres::{Client, NoTls};

/// Times that the server is killed in one test.
const KILLS: u64 = 5;
const ACTORS: u64 = 8;
/// Commits that one actor has on their way at once.
const AT_ONCE: u64 = 8;

async fn connect(server: &PostgresServer) -> Postgres {
    Postgres::connect(&server.url()).await.expect("the server takes connections")
}

/// A plain client beside the store.
async fn client(server: &PostgresServer) -> Client {
    let (client, connection) =
        tokio_postgres::connect(&server.url(), NoTls).await.expect("it connects");
    tokio::spawn(connection);
    client
}

fn one_connection() -> PostgresOptions {
    let mut options = PostgresOptions::default();
    options.connections = 1;
    options
}

fn id(key: u64) -> ActorId {
    ActorId::named("postgres", key.to_string())
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

fn cause(error: &StoreError) -> &PostgresError {
    let (StoreError::Unavailable(cause) | StoreError::Unknown(cause)) = error else {
        panic!("{error}")
    };
    cause.downcast_ref().expect("it is an error of this store")
}

#[tokio::test]
async fn the_postgresql_store_keeps_every_promise() {
    let server = PostgresServer::start();
    let store: Arc<dyn Store> = Arc::new(connect(&server).await);
    conformance::run(store, async |store| {
        drop(store);
        let again: Arc<dyn Store> = Arc::new(connect(&server).await);
        again
    })
    .await;
}

#[tokio::test]
async fn a_key_with_a_nul_is_kept_and_one_too_long_for_the_index_is_refused_by_name() {
    let server = PostgresServer::start();
    let store = connect(&server).await;
    for key in ["a", "a\0", "a\0b"] {
        let id = ActorId::named("nul\0kind", key);
        store.open(&id, Epoch(1)).await.expect("it opens");
        store.commit(turn(&id, 1, 1)).await.expect("it follows");
        assert_eq!(whole(&store, &id).await, 1);
    }
    // Random text, because the index compresses what repeats itself.
    let long: String = (0_u32..1_900).map(|n| char::from(33 + (n * n % 89) as u8)).collect();
    let id = ActorId::named("long", long.as_str());
    store.open(&id, Epoch(1)).await.expect("it fits");
    let id = ActorId::named("long", "k".repeat(2_000));
    let refused = store.open(&id, Epoch(1)).await.expect_err("it does not fit");
    assert!(matches!(refused, StoreError::TooLarge { bytes: 2_004, max: 2_000, .. }), "{refused}");
}

#[tokio::test]
async fn a_turn_that_the_server_refuses_takes_nothing_of_the_others_along() {
    let server = PostgresServer::start();
    let store = Postgres::connect_with(&server.url(), one_connection()).await.expect("it connects");
    store.open(&id(0), Epoch(1)).await.expect("it opens");
    store.commit(turn(&id(0), 1, 1)).await.expect("it follows");
    // Its event is there already: the server refuses the whole transaction.
    let twice = Turn { events: turn(&id(0), 1, 1).events, ..turn(&id(0), 1, 2) };
    let before: Vec<_> = (1..=20).map(|key| store.commit(turn(&id(key), 1, 1))).collect();
    let bad = store.commit(twice);
    let last = store.commit(turn(&id(21), 1, 1));
    for other in before {
        other.await.expect("it follows");
    }
    let refused = bad.await.expect_err("the number is taken");
    assert!(!refused.may_have_written(), "{refused}");
    assert!(cause(&refused).to_string().contains("althing_events_pkey"), "{refused}");
    last.await.expect("it follows");
    assert_eq!(whole(&store, &id(0)).await, 1);
}

#[tokio::test]
async fn a_former_owner_on_another_connection_writes_nothing_once_it_is_fenced() {
    let server = PostgresServer::start();
    let (former, owner) = (connect(&server).await, connect(&server).await);
    former.open(&id(1), Epoch(1)).await.expect("it opens");
    let mut version = 0;
    for epoch in 2..20 {
        // Commits of the former owner and the takeover meet in the server.
        let late: Vec<_> =
            (1..=AT_ONCE).map(|n| former.commit(turn(&id(1), epoch - 1, version + n))).collect();
        let kept = owner.open(&id(1), Epoch(epoch)).await.expect("a later epoch");
        let mut written = version;
        for late in late {
            match late.await {
                Ok(()) => written += 1,
                Err(refused) => assert!(matches!(refused, StoreError::Fenced { .. }), "{refused}"),
            }
        }
        assert_eq!(kept.version, written, "nothing is written after the takeover was answered");
        owner.commit(turn(&id(1), epoch, written + 1)).await.expect("the owner goes on");
        version = written + 1;
    }
}

/// Commits until told to end; returns the last version that was acknowledged.
async fn commit_on(
    store: Arc<Postgres>,
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
                    // Also behind one of which nobody knows: then that one was written.
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_loses_nothing_that_was_acknowledged_and_the_store_comes_back_by_itself() {
    let mut server = PostgresServer::start();
    let store = Arc::new(connect(&server).await);
    let (end, ended) = tokio::sync::watch::channel(false);
    let committing: Vec<_> = (0..ACTORS)
        .map(|key| tokio::spawn(commit_on(store.clone(), id(key), ended.clone())))
        .collect();
    for round in 0..KILLS {
        // Amid commits: once some more of them have been made.
        let probe = id(1_000 + round);
        for version in 1..=20 + round * 7 {
            store.commit(turn(&probe, 1, version)).await.expect("the server works");
        }
        tokio::task::block_in_place(|| {
            server.kill();
            server.start_again();
        });
        assert_eq!(whole(&*store, &probe).await, 20 + round * 7);
    }
    end.send(true).expect("they listen");
    for (key, committing) in (0..).zip(committing) {
        let acknowledged = committing.await.expect("no promise is broken");
        assert!(acknowledged > 0, "it got somewhere");
        assert!(whole(&*store, &id(key)).await >= acknowledged);
    }
}

#[tokio::test]
async fn a_server_that_stands_still_for_seconds_is_waited_for() {
    let server = PostgresServer::start();
    let store = connect(&server).await;
    store.open(&id(1), Epoch(1)).await.expect("it opens");
    server.pause();
    let waiting: Vec<_> = (1..=10).map(|version| store.commit(turn(&id(1), 1, version))).collect();
    let mut waiting = Box::pin(futures_util::future::join_all(waiting));
    let early = tokio::time::timeout(Duration::from_secs(3), &mut waiting).await;
    assert!(early.is_err(), "nothing is acknowledged by a server that does not run");
    server.resume();
    for answer in waiting.await {
        answer.expect("the connection is the same");
    }
    assert_eq!(whole(&store, &id(1)).await, 10);
}

#[tokio::test]
async fn calls_wait_for_a_server_that_is_gone_and_are_then_refused_by_name() {
    let mut server = PostgresServer::start();
    let mut options = one_connection();
    options.wait_within = Duration::from_millis(500);
    options.queue_calls_max = 5;
    let store = Postgres::connect_with(&server.url(), options).await.expect("it connects");
    store.open(&id(1), Epoch(1)).await.expect("it opens");
    server.kill();
    let answers: Vec<_> = (1..=10).map(|version| store.commit(turn(&id(1), 1, version))).collect();
    let (mut waited, mut full) = (0, 0);
    for answer in answers {
        let refused = answer.await.expect_err("there is no server");
        assert!(matches!(refused, StoreError::Unavailable(_)), "{refused}");
        match cause(&refused) {
            PostgresError::Unreachable { waited: time, .. } => {
                assert!(*time >= Duration::from_millis(500));
                waited += 1;
            }
            PostgresError::QueueFull { calls: 5, .. } => full += 1,
            other => panic!("{other}"),
        }
    }
    assert_eq!((waited, full), (5, 5), "what is above the limit is refused at once");
    server.start_again();
    // The pause before the next try may be longer than a call waits.
    while store.open(&id(1), Epoch(1)).await.is_err() {}
    store.commit(turn(&id(1), 1, 1)).await.expect("nothing of it was written before");
    assert_eq!(whole(&store, &id(1)).await, 1);
}

/// Makes each commit that changes an actor wait for whoever holds the advisory lock 7.
const WAIT_AT_COMMIT: &str = "
    CREATE FUNCTION wait_at_commit() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END';
    CREATE CONSTRAINT TRIGGER wait_at_commit AFTER UPDATE ON althing_actors
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait_at_commit();
    SELECT pg_advisory_lock(7)";

#[tokio::test]
async fn a_commit_that_is_neither_done_nor_refused_is_unknown_and_an_open_waits_for_the_truth() {
    let server = PostgresServer::start();
    let mut options = one_connection();
    options.answer_within = Duration::from_millis(300);
    options.wait_within = Duration::from_secs(60);
    let store = Postgres::connect_with(&server.url(), options).await.expect("it connects");
    store.open(&id(1), Epoch(1)).await.expect("it opens");
    let client = client(&server).await;
    client.batch_execute(WAIT_AT_COMMIT).await.expect("a superuser may do that");
    let unknown = store.commit(turn(&id(1), 1, 1)).await.expect_err("it is not answered");
    assert!(matches!(unknown, StoreError::Unknown(_)) && unknown.may_have_written(), "{unknown}");
    assert!(matches!(cause(&unknown), PostgresError::NoAnswer(_)), "{unknown}");
    // The store has let the connection go, and the server still works on its transaction.
    let mut opened = store.open(&id(1), Epoch(1));
    let early = tokio::time::timeout(Duration::from_secs(1), &mut opened).await;
    assert!(early.is_err(), "an open that read now would tell a version that is about to change");
    client.batch_execute("SELECT pg_advisory_unlock(7)").await.expect("it holds it");
    assert_eq!(opened.await.expect("it opens").version, 1);
    assert_eq!(whole(&store, &id(1)).await, 1);
    store.commit(turn(&id(1), 1, 2)).await.expect("the actor goes on");
}

#[tokio::test]
async fn tables_of_a_later_version_are_refused_by_name() {
    let server = PostgresServer::start();
    drop(connect(&server).await);
    client(&server)
        .await
        .execute("UPDATE althing_format SET format = 99", &[])
        .await
        .expect("it is written");
    let refused = Postgres::connect(&server.url()).await.expect_err("a later version");
    assert!(matches!(refused, PostgresError::Later { found: 99, known: 2 }), "{refused}");
}

#[tokio::test]
async fn tables_of_the_first_format_are_migrated_and_keep_what_they_have() {
    let server = PostgresServer::start();
    let store = connect(&server).await;
    store.commit(turn(&id(1), 1, 1)).await.expect("it follows");
    drop(store);
    // As the first release left them.
    let before = "DROP TABLE althing_deliveries; DROP TABLE althing_replies;
                  UPDATE althing_format SET format = 1";
    client(&server).await.batch_execute(before).await.expect("a superuser may do that");
    let store = Arc::new(connect(&server).await);
    assert_eq!(whole(&*store, &id(1)).await, 1);
    conformance::run(store, async |_| {
        let again: Arc<dyn Store> = Arc::new(connect(&server).await);
        again
    })
    .await;
}
