//! What every store of rows has to do, run by each: SQLite, a real PostgreSQL, a real Cassandra.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use althing_testkit::servers::{CassandraServer, PostgresServer};
use folkmoot_read_states::{
    CassandraRows, Options, PostgresRows, ReadState, ReadStates, ReadStatesError, Retry, Row,
    RowStore, SqliteRows,
};
use support::{Faulty, load, mention};

fn row(user: u64, version: u64, last_read: u64) -> Row {
    let entry = ReadState { room: u64::MAX, last_read, mentions: u32::MAX };
    Row { user, version, entries: vec![entry] }
}

/// The suite. The store is new.
async fn keeps_its_rows(store: &impl RowStore) {
    let first = store.take_over(0).await.unwrap();
    let version = |number| first + number;
    assert_eq!(store.load(7).await.unwrap(), None);
    store.save(vec![]).await.unwrap();
    // The newest one stays, in whatever order they come.
    store.save(vec![row(7, version(5), 50)]).await.unwrap();
    store.save(vec![row(7, version(4), 40)]).await.unwrap();
    assert_eq!(store.load(7).await.unwrap(), Some(row(7, version(5), 50)));
    store.save(vec![row(7, version(7), 70), row(7, version(6), 60)]).await.unwrap();
    assert_eq!(store.load(7).await.unwrap(), Some(row(7, version(7), 70)));
    // Every number, nobody's rooms, and many of them.
    for user in [0, 1 << 63, u64::MAX] {
        store.save(vec![row(user, version(1), u64::MAX)]).await.unwrap();
        assert_eq!(store.load(user).await.unwrap(), Some(row(user, version(1), u64::MAX)));
    }
    let none = Row { user: 7, version: version(8), entries: vec![] };
    store.save(vec![none.clone()]).await.unwrap();
    assert_eq!(store.load(7).await.unwrap(), Some(none));
    let entry = |room| ReadState { room, last_read: room * 3, mentions: room as u32 };
    let many = Row { user: 8, version: version(1), entries: (0..4_000).map(entry).collect() };
    store.save(vec![many.clone()]).await.unwrap();
    assert_eq!(store.load(8).await.unwrap(), Some(many));
    // As many as a round stores at once.
    store.save((1_000..2_000).map(|user| row(user, version(user), user)).collect()).await.unwrap();
    for user in 1_000..2_000 {
        assert_eq!(store.load(user).await.unwrap(), Some(row(user, version(user), user)));
    }
    // Who takes over counts on above all of them, and above what it knows itself.
    assert!(store.take_over(0).await.unwrap() >= version(1_999));
    let known = version(1 << 50);
    assert!(store.take_over(known).await.unwrap() >= known);
}

/// Two processes on one store, of which the second has taken over.
async fn a_former_process_changes_nothing(former: &impl RowStore, owner: &impl RowStore) {
    let before = former.take_over(0).await.unwrap();
    former.save(vec![row(1, before + 1, 10), row(2, before + 1, 10)]).await.unwrap();
    let now = owner.take_over(0).await.unwrap();
    assert!(now > before + (1 << 39));
    owner.save(vec![row(1, now + 1, 20)]).await.unwrap();
    let refused = former.save(vec![row(1, before + 9, 11), row(2, before + 9, 11)]).await;
    assert_eq!(refused.unwrap_err().retry, Retry::TakenOver);
    assert_eq!(owner.load(1).await.unwrap(), Some(row(1, now + 1, 20)));
    assert_eq!(owner.load(2).await.unwrap(), Some(row(2, before + 1, 10)));
}

/// Loads and saves under load, over a store that fails now and then; then another process takes
/// over with what the first one has left on the disk.
async fn nothing_is_lost_or_counted_twice<S: RowStore>(open: impl AsyncFn() -> S) {
    let (directory, after) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = Faulty::new(open().await);
    let options = Options {
        bytes_max: 64 * 2_048,
        store_after: Duration::from_millis(200),
        log: Some(directory.path().join("log")),
        ..Options::default()
    };
    let states = ReadStates::open(store.clone(), options.clone()).await.unwrap();
    store.fail_every(7);
    load::change_and_read(&states).await;
    store.fail_every(u32::MAX);
    load::check(&states).await;
    let changed = states.change(load::USERS, 0, mention(1)).unwrap();
    states.durable(changed).await.unwrap();
    support::copy(directory.path(), after.path());
    let options = Options { log: Some(after.path().join("log")), ..options };
    let successor = ReadStates::open(Arc::new(open().await), options).await.unwrap();
    load::check(&successor).await;
    assert_eq!(successor.one(load::USERS, 0).await.unwrap().mentions, 1);
    // The former one hears of it when it stores something, and answers for nothing any more.
    while states.store_all().await.is_ok() {
        _ = states.change(load::USERS, 0, mention(2));
    }
    assert_eq!(states.change(1, 1, mention(9)), Err(ReadStatesError::TakenOver));
    assert_eq!(states.all(1).await, Err(ReadStatesError::TakenOver));
    load::check(&successor).await;
    successor.store_all().await.unwrap();
}

/// A server that does nothing for a while amid loads and saves, longer than it may take for an answer.
async fn a_server_that_stands_still_loses_and_doubles_nothing<S: RowStore>(
    open: impl AsyncFn() -> S,
    (pause, resume): (impl Fn(), impl Fn()),
    still: Duration,
) {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        bytes_max: 64 * 2_048,
        store_after: Duration::from_millis(200),
        log: Some(directory.path().join("log")),
        ..Options::default()
    };
    let bytes_max = options.bytes_max;
    let states = ReadStates::open(Arc::new(open().await), options).await.unwrap();
    let changing = tokio::spawn({
        let states = states.clone();
        async move { load::change_and_read(&states).await }
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    pause();
    tokio::time::sleep(still).await;
    assert!(states.sizes().bytes <= bytes_max, "{:?}", states.sizes());
    resume();
    changing.await.unwrap();
    while states.store_all().await.is_err() {}
    load::check(&states).await;
    let options = Options { bytes_max, ..Options::default() };
    let successor = ReadStates::open(Arc::new(open().await), options).await.unwrap();
    load::check(&successor).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_states_in_postgresql_outlive_that_it_stands_still() {
    let server = PostgresServer::start();
    let connect = async || PostgresRows::connect(&server.url()).await.unwrap();
    let hold = (|| server.pause(), || server.resume());
    a_server_that_stands_still_loses_and_doubles_nothing(connect, hold, Duration::from_secs(13))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_states_in_cassandra_outlive_that_it_stands_still() {
    let server = CassandraServer::start();
    let url = format!("cassandra://{}/still?replicas=1", server.host());
    let connect = async || CassandraRows::connect(&url).await.unwrap();
    let hold = (|| server.pause(), || server.resume());
    a_server_that_stands_still_loses_and_doubles_nothing(connect, hold, Duration::from_secs(23))
        .await;
}

#[tokio::test]
async fn rows_are_kept_in_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteRows::open(&directory.path().join("read-states.db")).unwrap();
    keeps_its_rows(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_states_in_postgresql_are_not_lost_or_counted_twice() {
    let server = PostgresServer::start();
    nothing_is_lost_or_counted_twice(async || PostgresRows::connect(&server.url()).await.unwrap())
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_kept_in_postgresql_also_when_it_is_killed() {
    let mut server = PostgresServer::start();
    let connect = async || PostgresRows::connect(&server.url()).await.unwrap();
    keeps_its_rows(&connect().await).await;
    a_former_process_changes_nothing(&connect().await, &connect().await).await;
    let store = connect().await;
    let version = store.take_over(0).await.unwrap();
    store.save(vec![row(3, version + 1, 30)]).await.unwrap();
    server.kill();
    let away = store.save(vec![row(3, version + 2, 40)]).await.unwrap_err();
    assert_eq!((away.doing, away.retry), ("save rows", Retry::MayHelp));
    assert!(store.load(3).await.is_err());
    server.start_again();
    assert_eq!(store.load(3).await.unwrap(), Some(row(3, version + 1, 30)));
    store.save(vec![row(3, version + 2, 40)]).await.unwrap();
    let again = PostgresRows::connect(&server.url()).await.unwrap();
    assert_eq!(again.load(3).await.unwrap(), Some(row(3, version + 2, 40)));
}

/// Has every statement that writes rows take longer than the role's statements may.
const SLOW_ROWS_OF_A_HASTY_ROLE: &str = "
    CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql
        AS 'BEGIN PERFORM pg_sleep(0.6); RETURN NULL; END';
    CREATE TRIGGER slowly AFTER INSERT ON folkmoot_read_states EXECUTE FUNCTION slowly();
    ALTER ROLE CURRENT_USER SET statement_timeout = '300ms';
    ALTER ROLE CURRENT_USER SET lock_timeout = '1ms';";

#[tokio::test]
async fn rows_are_saved_in_postgresql_however_short_the_statements_of_its_role_are() {
    let server = PostgresServer::start();
    drop(PostgresRows::connect(&server.url()).await.unwrap());
    let (client, connection) =
        server.url().parse::<althing_postgres::Server>().unwrap().connect().await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(SLOW_ROWS_OF_A_HASTY_ROLE).await.unwrap();
    let store = PostgresRows::connect(&server.url()).await.unwrap();
    let version = store.take_over(0).await.unwrap();
    store.save((0..1_000).map(|user| row(user, version + 1, 10)).collect()).await.unwrap();
    assert_eq!(store.load(999).await.unwrap(), Some(row(999, version + 1, 10)));
}

/// Settings with which other programs may want to be treated.
const STRICT_ROLE: &str = "
    CREATE ROLE strict LOGIN SUPERUSER;
    ALTER ROLE strict SET default_transaction_isolation = 'serializable';
    ALTER ROLE strict SET default_transaction_read_only = on;
    ALTER ROLE strict SET idle_in_transaction_session_timeout = '1ms';
    ALTER ROLE strict SET idle_session_timeout = '300ms';
    SELECT pg_advisory_lock(1718578283, 1919247731)";

#[tokio::test]
async fn rows_are_kept_in_postgresql_whatever_the_role_has_set() {
    let server = PostgresServer::start();
    let (client, connection) =
        server.url().parse::<althing_postgres::Server>().unwrap().connect().await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(STRICT_ROLE).await.unwrap();
    let url = server.url().replace("test@", "strict@");
    // Both wait to make the tables, and the second one has looked before there were any.
    let connecting = [(); 2].map(|()| {
        let url = url.clone();
        tokio::spawn(async move { PostgresRows::connect(&url).await })
    });
    let waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    while client.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) < 2 {
        assert!(connecting.iter().all(|it| !it.is_finished()), "nobody gives up");
    }
    client.batch_execute("SELECT pg_advisory_unlock_all()").await.unwrap();
    let [former, owner] = connecting;
    let (former, owner) = (former.await.unwrap().unwrap(), owner.await.unwrap().unwrap());
    keeps_its_rows(&former).await;
    let other = PostgresRows::connect(&url).await.unwrap();
    a_former_process_changes_nothing(&other, &owner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_kept_in_cassandra_also_when_it_is_killed() {
    let mut server = CassandraServer::start();
    let host = server.host();
    let url = |keyspace: &str| format!("cassandra://{host}/{keyspace}?replicas=1");
    let connect = async |keyspace| CassandraRows::connect(&url(keyspace)).await.unwrap();
    keeps_its_rows(&connect("suite").await).await;
    a_former_process_changes_nothing(&connect("owners").await, &connect("owners").await).await;
    nothing_is_lost_or_counted_twice(async || connect("busy").await).await;
    let store = connect("killed").await;
    let version = store.take_over(0).await.unwrap();
    store.save(vec![row(3, version + 1, 30)]).await.unwrap();
    server.kill();
    let away = store.save(vec![row(3, version + 2, 40)]).await.unwrap_err();
    assert_eq!((away.doing, away.retry), ("save rows", Retry::MayHelp));
    server.start_again();
    let again = connect("killed").await;
    assert_eq!(again.load(3).await.unwrap(), Some(row(3, version + 1, 30)));
    // The driver finds the server again by itself.
    let saved = async { while store.save(vec![row(3, version + 2, 40)]).await.is_err() {} };
    tokio::time::timeout(Duration::from_secs(60), saved).await.unwrap();
    assert_eq!(again.load(3).await.unwrap(), Some(row(3, version + 2, 40)));
}

#[tokio::test]
async fn tables_of_a_later_version_and_wrong_addresses_are_refused_by_name() {
    let server = PostgresServer::start();
    drop(PostgresRows::connect(&server.url()).await.unwrap());
    let (client, connection) =
        server.url().parse::<althing_postgres::Server>().unwrap().connect().await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("UPDATE folkmoot_read_states_owner SET format = 9").await.unwrap();
    let store = PostgresRows::connect(&server.url()).await.unwrap();
    let refused = store.take_over(0).await.unwrap_err();
    assert!(refused.why.contains("format 9"), "{refused}");
    for wrong in ["cassandra://ana:hush@host", "cassandra://ana:hush@/chat"] {
        let refused = CassandraRows::connect(wrong).await.err().unwrap().to_string();
        assert!(refused.contains("address") && !refused.contains("hush"), "{refused}");
    }
}
