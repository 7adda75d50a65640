//! The store on a real PostgreSQL: what it promises like every store on a server, and what is its
//! own.

#[path = "served/refused.rs"]
mod refused;
mod served;

use std::sync::Arc;
use std::time::Duration;

use althing::{ActorId, Epoch};
use althing_store::{Postgres, PostgresError, PostgresOptions, Store, StoreError, conformance};
use althing_testkit::servers::PostgresServer;
use served::{Served, Why, With, turn, whole};
use tokio_postgres::{Client, NoTls};

/// Times that the server is killed in one test.
const KILLS: u64 = 5;

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
    served::id("postgres", key)
}

fn cause(error: &StoreError) -> &PostgresError {
    let (StoreError::Unavailable(cause) | StoreError::Unknown(cause)) = error else {
        panic!("{error}")
    };
    cause.downcast_ref().expect("it is an error of this store")
}

struct Pg(PostgresServer);

impl Served for Pg {
    type Store = Postgres;
    const NAME_MAX: usize = 2_000;
    const LAST_WORD: Option<&'static [u8]> = Some(b"COMMIT\0");

    async fn try_connect(&self, with: With) -> Result<Postgres, String> {
        let mut options = PostgresOptions::default();
        options.answer_within = with.answer_within.unwrap_or(options.answer_within);
        options.wait_within = with.wait_within.unwrap_or(options.wait_within);
        options.queue_bytes_max = with.bytes_max.unwrap_or(options.queue_bytes_max);
        if let Some(calls) = with.calls_max {
            // The limit is that of one connection.
            (options.connections, options.queue_calls_max) = (1, calls);
        }
        let address = with.through.unwrap_or_else(|| self.address());
        let url = self.0.url().replace(&self.address(), &address);
        Postgres::connect_with(&url, options).await.map_err(|error| error.to_string())
    }

    fn address(&self) -> String {
        let url = self.0.url();
        let (_, rest) = url.split_once('@').expect("a user");
        rest.trim_end_matches("/postgres").to_owned()
    }

    fn kill(&mut self) {
        self.0.kill();
    }

    fn start_again(&mut self) {
        self.0.start_again();
    }

    fn pause(&self) {
        self.0.pause();
    }

    fn resume(&self) {
        self.0.resume();
    }

    fn why(error: &StoreError) -> Why {
        let (StoreError::Unavailable(_) | StoreError::Unknown(_)) = error else {
            return Why::Other(error.to_string());
        };
        match cause(error) {
            PostgresError::Unreachable { waited, .. } => Why::Waited(*waited),
            PostgresError::QueueFull { calls, .. } => Why::Full(*calls),
            PostgresError::Ended => Why::Ended,
            other => Why::Other(other.to_string()),
        }
    }

    async fn version_of(&self, id: &ActorId) -> Option<u64> {
        let select = "SELECT version FROM althing_actors WHERE kind = $1 AND key = $2";
        let (kind, key) = (id.kind().as_str().as_bytes(), id.key().expect("it has one").as_bytes());
        let found = client(&self.0).await.query_opt(select, &[&kind, &key]).await;
        found.expect("it reads").map(|row| row.get::<_, i64>(0).cast_unsigned())
    }

    async fn pretend_later(&self) {
        let later = client(&self.0).await;
        later.execute("UPDATE althing_format SET format = 99", &[]).await.expect("it is written");
    }
}

#[tokio::test]
async fn the_postgresql_store_keeps_every_promise() {
    served::keeps_every_promise(&Pg(PostgresServer::start())).await;
}

#[tokio::test]
async fn a_former_owner_on_another_connection_writes_nothing_once_it_is_fenced() {
    let server = Pg(PostgresServer::start());
    served::a_former_owner_writes_nothing_once_it_is_fenced(&server, 18).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_loses_nothing_acknowledged_and_calls_wait_and_are_then_refused_by_name() {
    let mut server = Pg(PostgresServer::start());
    served::a_killed_server_loses_nothing_and_calls_wait_and_are_then_refused_by_name(
        &mut server,
        KILLS,
    )
    .await;
}

#[tokio::test]
async fn a_server_that_stands_still_for_seconds_is_waited_for() {
    let server = Pg(PostgresServer::start());
    served::a_server_that_stands_still_is_waited_for(&server, With::default()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stands_still_for_long_loses_nothing() {
    let server = Pg(PostgresServer::start());
    served::a_server_that_stands_still_for_long_loses_nothing(&server, Duration::from_secs(30))
        .await;
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_unknown_and_an_open_tells() {
    let server = Pg(PostgresServer::start());
    served::lost::a_commit_whose_answer_is_lost_is_acknowledged_once_or_unknown(&server).await;
}

#[tokio::test]
async fn what_does_not_fit_is_refused_by_name() {
    let server = Pg(PostgresServer::start());
    served::what_does_not_fit_is_refused_by_name_and_the_largest_is_kept(&server, 600).await;
}

#[tokio::test]
async fn tables_of_a_later_version_are_refused_by_name() {
    served::tables_of_a_later_version_are_refused_by_name(&Pg(PostgresServer::start())).await;
}

#[test]
fn a_store_whose_runtime_has_ended_refuses_by_name_and_keeps_nobody_waiting() {
    let server = PostgresServer::start();
    served::a_store_whose_runtime_has_ended_refuses_by_name::<Pg>(connect(&server));
}

#[tokio::test]
async fn a_turn_that_the_server_refuses_takes_nothing_of_the_others_along() {
    let server = PostgresServer::start();
    let store = Postgres::connect_with(&server.url(), one_connection()).await.expect("it connects");
    refused::a_turn_that_is_refused_takes_nothing_of_the_others_along(&store).await;
}

/// Who holds it makes or migrates the tables.
const LOCK_TABLES: &str = "SELECT pg_advisory_lock(x'616c7468696e67'::bigint)";

#[tokio::test]
async fn who_connects_does_not_wait_for_ever_for_others_that_make_the_tables() {
    let server = PostgresServer::start();
    let client = client(&server).await;
    client.batch_execute(LOCK_TABLES).await.expect("nobody has it");
    let mut options = PostgresOptions::default();
    options.wait_within = Duration::from_millis(500);
    let url = server.url();
    let connecting = Postgres::connect_with(&url, options);
    let refused = tokio::time::timeout(Duration::from_secs(20), connecting).await;
    let refused = refused.expect("it gives up").expect_err("somebody else is at it");
    assert!(matches!(refused, PostgresError::NoAnswer(_)), "{refused}");
    client.batch_execute("SELECT pg_advisory_unlock_all()").await.expect("it has it");
    assert_eq!(whole(&connect(&server).await, &id(1)).await, 0, "nothing is left half made");
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

/// Has every turn take longer than the statements of the role may.
const SLOW_TURNS_OF_A_HASTY_ROLE: &str = "
    CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_sleep(0.6); RETURN NULL; END';
    CREATE TRIGGER slowly AFTER UPDATE ON althing_actors EXECUTE FUNCTION slowly();
    ALTER ROLE CURRENT_USER SET statement_timeout = '300ms'";

#[tokio::test]
async fn turns_are_written_however_short_the_statements_of_the_role_are() {
    let server = PostgresServer::start();
    drop(connect(&server).await);
    let hasty = client(&server).await.batch_execute(SLOW_TURNS_OF_A_HASTY_ROLE).await;
    hasty.expect("a superuser may do that");
    let store = connect(&server).await;
    store.open(&id(1), Epoch(1)).await.expect("it opens");
    store.commit(turn(&id(1), 1, 1)).await.expect("it has the time that it takes");
    assert_eq!(whole(&store, &id(1)).await, 1);
}

/// Settings with which other programs may want to be treated.
const STRICT: &str = "
    CREATE ROLE strict LOGIN SUPERUSER;
    ALTER ROLE strict SET default_transaction_isolation = 'serializable';
    ALTER ROLE strict SET default_transaction_read_only = on;
    ALTER ROLE strict SET lock_timeout = '1ms';
    ALTER ROLE strict SET idle_in_transaction_session_timeout = '200ms';
    ALTER ROLE strict SET idle_session_timeout = '300ms'";

#[tokio::test]
async fn the_store_is_made_once_and_keeps_every_promise_whatever_the_role_has_set() {
    let server = PostgresServer::start();
    let client = client(&server).await;
    client.batch_execute(STRICT).await.expect("a superuser may do that");
    let url = server.url().replace("test@", "strict@");
    // Both wait, and the second one has looked at a database in which nothing was.
    client.batch_execute(LOCK_TABLES).await.expect("nobody has it");
    let connecting = [(); 2].map(|()| {
        let url = url.clone();
        tokio::spawn(async move { Postgres::connect(&url).await })
    });
    let waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    while client.query_one(waiting, &[]).await.expect("it reads").get::<_, i64>(0) < 2 {
        assert!(connecting.iter().all(|it| !it.is_finished()), "nobody gives up");
    }
    client.batch_execute("SELECT pg_advisory_unlock_all()").await.expect("it has it");
    for connecting in connecting {
        connecting.await.expect("no panic").expect("the tables are there");
    }
    let store: Arc<dyn Store> = Arc::new(Postgres::connect(&url).await.expect("it connects"));
    conformance::run(store, async |_| {
        let again: Arc<dyn Store> = Arc::new(Postgres::connect(&url).await.expect("it connects"));
        again
    })
    .await;
}
