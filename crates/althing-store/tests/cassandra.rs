//! The store on a real Cassandra: what it promises like every store on a server, and what is its
//! own.
//!
//! It takes ten seconds to start, so all tests share one; those that disturb it have it alone. Each
//! has kinds of its own; those that count rows, the suite, and those that look at limits have a
//! keyspace of their own.

mod served;

use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use althing::remote::Letter;
use althing::{ActorId, Epoch, Timestamp};
use althing_store::{
    Cassandra, CassandraError, CassandraOptions, Delivery, Event, Posting, Settled, Store,
    StoreError, Turn,
};
use althing_testkit::servers::CassandraServer;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::batch::{Batch, BatchType};
use scylla::value::{CqlValue, Row};
use served::{Served, Why, With, id, turn, whole};
use tokio::sync::RwLock;

/// It ends with this process.
static SERVER: LazyLock<RwLock<CassandraServer>> =
    LazyLock::new(|| RwLock::new(CassandraServer::start()));

/// For tests that need no other.
const SHARED: &str = "shared";

/// With this before it, the name of a keyspace in which all actors share a partition.
const CROWDED: &str = "crowded";

fn options(keyspace: &str) -> CassandraOptions {
    let mut options = CassandraOptions::default();
    options.keyspace = keyspace.to_owned();
    options.replicas = 1;
    if keyspace.starts_with(CROWDED) {
        options.partitions = 1;
    }
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

/// One keyspace of the server.
struct In<G>(G, &'static str);

impl<G: std::ops::Deref<Target = CassandraServer>> In<G> {
    async fn client(&self) -> Session {
        client(&self.0).await
    }
}

/// Only who has it alone may disturb it.
trait Disturb {
    fn server_mut(&mut self) -> &mut CassandraServer;
}

impl Disturb for tokio::sync::RwLockWriteGuard<'_, CassandraServer> {
    fn server_mut(&mut self) -> &mut CassandraServer {
        self
    }
}

impl Disturb for tokio::sync::RwLockReadGuard<'_, CassandraServer> {
    fn server_mut(&mut self) -> &mut CassandraServer {
        unreachable!("others use it, too")
    }
}

impl<G: std::ops::Deref<Target = CassandraServer> + Disturb> Served for In<G> {
    type Store = Cassandra;
    const NAME_MAX: usize = 8_192;
    const LAST_WORD: Option<&'static [u8]> = None;

    async fn try_connect(&self, with: With) -> Result<Cassandra, String> {
        let mut options = options(self.1);
        options.answer_within = with.answer_within.unwrap_or(options.answer_within);
        options.wait_within = with.wait_within.unwrap_or(options.wait_within);
        options.calls_max = with.calls_max.unwrap_or(options.calls_max);
        options.bytes_max = with.bytes_max.unwrap_or(options.bytes_max);
        let node = with.through.unwrap_or_else(|| self.0.host());
        Cassandra::connect_with(&[node], options).await.map_err(|error| error.to_string())
    }

    fn address(&self) -> String {
        self.0.host()
    }

    fn kill(&mut self) {
        self.0.server_mut().kill();
    }

    fn start_again(&mut self) {
        self.0.server_mut().start_again();
    }

    fn pause(&self) {
        self.0.pause();
    }

    fn resume(&self) {
        self.0.resume();
    }

    fn why(error: &StoreError) -> Why {
        let (StoreError::Unavailable(cause) | StoreError::Unknown(cause)) = error else {
            return Why::Other(error.to_string());
        };
        match cause.downcast_ref() {
            Some(CassandraError::Unreachable { waited, .. }) => Why::Waited(*waited),
            Some(CassandraError::QueueFull { calls, .. }) => Why::Full(*calls),
            Some(CassandraError::Ended) => Why::Ended,
            _ => Why::Other(error.to_string()),
        }
    }

    async fn version_of(&self, id: &ActorId) -> Option<u64> {
        let select = format!(
            "SELECT version FROM {}.althing_actors WHERE kind = ? AND key = ? AND sort = 0
             ALLOW FILTERING",
            self.1
        );
        let owner = (id.kind().as_str().as_bytes(), id.key().expect("it has one").as_bytes());
        let found = self.client().await.query_unpaged(select, owner).await.expect("it reads");
        let found = found.into_rows_result().expect("rows").maybe_first_row::<(i64,)>();
        found.expect("a number").map(|(version,)| version.cast_unsigned())
    }

    async fn pretend_later(&self) {
        let later = format!("UPDATE {}.althing_format SET format = 99 WHERE one = 1", self.1);
        self.client().await.query_unpaged(later, ()).await.expect("it is written");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cassandra_store_keeps_every_promise() {
    served::keeps_every_promise(&In(SERVER.read().await, "conformance")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn actors_that_share_a_partition_are_kept_and_fenced_as_those_that_do_not() {
    let server = In(SERVER.read().await, CROWDED);
    served::keeps_every_promise(&server).await;
    // Both owners have others beside the actor, so that its turns are in batches with theirs.
    let others = async {
        let stores = [server.connect().await, server.connect().await];
        for version in 1..=40 {
            let commit =
                |actor| stores[actor as usize % 2].commit(turn(&id("other", actor), 1, version));
            for answer in (0..16).map(commit).collect::<Vec<_>>() {
                answer.await.expect("it follows");
            }
        }
    };
    tokio::join!(served::a_former_owner_writes_nothing_once_it_is_fenced(&server, 20), others);
    served::lost::a_commit_whose_answer_is_lost_is_acknowledged_once_or_unknown(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_fenced_or_refused_takes_nothing_of_the_others_in_its_batch_along() {
    const ACTORS: u64 = 40;
    let server = SERVER.read().await;
    let (ours, theirs) =
        (connect(&server, "crowded_batch").await, connect(&server, "crowded_batch").await);
    for actor in 0..ACTORS {
        ours.open(&id("batch", actor), Epoch(1)).await.expect("it opens");
    }
    // Some have another owner, of whom the first one does not know.
    for actor in (0..ACTORS).step_by(4) {
        theirs.open(&id("batch", actor), Epoch(2)).await.expect("a later epoch");
    }
    // The first one has the partition to itself; what is called meanwhile waits, and is one batch.
    for version in 1..=5 {
        let commit = |actor| ours.commit(turn(&id("batch", actor), 1, version));
        let answers: Vec<_> = (0..ACTORS).map(commit).collect();
        for (actor, answer) in (0..).zip(answers) {
            let outcome = answer.await;
            if actor % 4 == 0 {
                let refused = outcome.expect_err("it is fenced");
                assert!(matches!(refused, StoreError::Fenced { .. }), "{refused}");
            } else {
                outcome.expect("it has its epoch");
            }
        }
    }
    for actor in 0..ACTORS {
        let kept = theirs.open(&id("batch", actor), Epoch(2)).await.expect("it opens");
        assert_eq!(kept.version, if actor % 4 == 0 { 0 } else { 5 });
    }
}

/// Two nodes whose actors share a partition keep each other waiting, and no more than that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_stores_that_write_into_one_partition_all_get_through() {
    let server = SERVER.read().await;
    let nodes = ["one", "other"].map(async |kind| {
        let store = std::sync::Arc::new(connect(&server, "crowded_nodes").await);
        let actors = (0..8).map(|actor| {
            let (id, store) = (id(kind, actor), store.clone());
            tokio::spawn(async move {
                for version in 1..=20 {
                    store.commit(turn(&id, 1, version)).await.expect("it follows");
                }
                assert_eq!(whole(&*store, &id).await, 20);
            })
        });
        for actor in actors.collect::<Vec<_>>() {
            actor.await.expect("it gets through");
        }
    });
    futures_util::future::join_all(nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn into_how_many_partitions_actors_are_dealt_stays_as_it_was_said_first() {
    let server = SERVER.read().await;
    for partitions in [3, 4_096] {
        let mut options = options("dealt");
        options.partitions = partitions;
        let store = Cassandra::connect_with(&[server.host()], options).await.expect("it connects");
        for actor in 0..50 {
            let version = whole(&store, &id("dealt", actor)).await + 1;
            store.commit(turn(&id("dealt", actor), 1, version)).await.expect("it follows");
        }
    }
    let client = client(&server).await;
    let parts = client.query_unpaged("SELECT DISTINCT part FROM dealt.althing_actors", ()).await;
    assert_eq!(parts.expect("it reads").into_rows_result().expect("rows").rows_num(), 3);
    assert_eq!(count(&client, "dealt.althing_actors WHERE sort = 0 AND version = 2").await, 50);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_former_owner_on_another_connection_writes_nothing_once_it_is_fenced() {
    let server = In(SERVER.read().await, SHARED);
    served::a_former_owner_writes_nothing_once_it_is_fenced(&server, 6).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_loses_nothing_acknowledged_and_calls_wait_and_are_then_refused_by_name() {
    let mut server = In(SERVER.write().await, SHARED);
    served::a_killed_server_loses_nothing_and_calls_wait_and_are_then_refused_by_name(
        &mut server,
        1,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stands_still_for_seconds_is_waited_for() {
    let server = In(SERVER.write().await, SHARED);
    // What was sent before may be done when it goes on, while what excludes it is on its way.
    let answer_within = Some(Duration::from_millis(700));
    served::a_server_that_stands_still_is_waited_for(
        &server,
        With { answer_within, ..With::default() },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stands_still_for_long_loses_nothing() {
    let server = In(SERVER.write().await, SHARED);
    served::a_server_that_stands_still_for_long_loses_nothing(&server, Duration::from_secs(35))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_times_out_after_it_was_applied_is_found_or_else_unknown() {
    let server = In(SERVER.read().await, SHARED);
    served::lost::a_commit_whose_answer_is_lost_is_acknowledged_once_or_unknown(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_fit_is_refused_by_name() {
    let wrong = Cassandra::connect_with(&[SERVER.read().await.host()], options("no-name")).await;
    assert!(
        matches!(wrong.expect_err("no name"), CassandraError::Keyspace(name) if name == "no-name")
    );
    let server = In(SERVER.read().await, "limits");
    served::what_does_not_fit_is_refused_by_name_and_the_largest_is_kept(&server, 8_192).await;
    // As many changes as a turn may have, and one more.
    let store = server.connect().await;
    let many = |count: u64| {
        let event = |number| Event { number, schema: 1, bytes: vec![] };
        Turn { events: (1..=count).map(event).collect(), ..Turn::new(id("many", 1), Epoch(1), 1) }
    };
    let refused = store.commit(many(32_769)).await.expect_err("too many");
    assert!(matches!(refused, StoreError::TooMany { changes: 32_769, max: 32_768, .. }));
    store.commit(many(32_768)).await.expect("the most are written");
    let last = store.events(&id("many", 1), 32_700, 99).await.expect("it reads");
    assert_eq!(last.len(), 68);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_a_later_version_are_refused_by_name() {
    let server = In(SERVER.read().await, "later");
    served::tables_of_a_later_version_are_refused_by_name(&server).await;
}

#[test]
fn a_store_whose_runtime_has_ended_refuses_by_name_and_keeps_nobody_waiting() {
    type Shared = In<tokio::sync::RwLockReadGuard<'static, CassandraServer>>;
    let connect = async { connect(&*SERVER.read().await, SHARED).await };
    served::a_store_whose_runtime_has_ended_refuses_by_name::<Shared>(connect);
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_of_the_largest_events_is_read_a_few_at_a_time() {
    const EVENTS: u64 = 20;
    let server = SERVER.read().await;
    let store = connect(&server, "large").await;
    let id = id("large", 1);
    let bytes: Vec<u8> = (0..7_000_000_u32).map(|n| (n % 251) as u8).collect();
    for number in 1..=EVENTS {
        let events = vec![Event { number, schema: 1, bytes: bytes.clone() }];
        let turn = Turn { events, ..Turn::new(id.clone(), Epoch(1), number) };
        store.commit(turn).await.expect("it follows");
    }
    // More than a quarter of what the server has, if it were read as one.
    let events = store.events(&id, 0, usize::MAX).await.expect("it reads");
    assert_eq!(events.len() as u64, EVENTS);
    assert!((1..).zip(&events).all(|(number, it)| it.number == number && it.bytes == bytes));
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
    let settled = due.iter().map(|it| Settled { mark: it.mark(), next: None });
    store.settle(settled.collect()).await.expect("it is taken down");
    assert_eq!(store.due(Timestamp(u64::MAX), None, 9).await.expect("it reads"), []);
    assert_eq!(count(&client, "counted.althing_due").await, 0);
    assert_eq!(count(&client, "counted.althing_actors WHERE sort = 2").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_due_is_found_behind_more_that_was_removed_than_the_server_passes_over() {
    // The server ends a read after 100,000 of them.
    const REMOVED: u32 = 120_000;
    let server = SERVER.read().await;
    let store = connect(&server, "removed").await;
    let client = client(&server).await;
    let left = vec![posted("first", 0), posted("last", 59_999)];
    let left = Turn { postings: left, ..Turn::new(id("due", 1), Epoch(1), 1) };
    store.commit(left).await.expect("it follows");
    let select = "SELECT bucket, shard, at, kind, key FROM removed.althing_due LIMIT 1";
    let found = client.query_unpaged(select, ()).await.expect("it reads");
    let found = found.into_rows_result().expect("rows").first_row::<Row>().expect("one is there");
    let remove = "DELETE FROM removed.althing_due WHERE bucket = ? AND shard = ? AND at = ?
                  AND kind = ? AND key = ? AND name = ? AND entry = 0x00";
    let remove = client.prepare(remove).await.expect("it is a statement");
    for numbers in (0..REMOVED).collect::<Vec<_>>().chunks(1_000) {
        let mut batch = Batch::new(BatchType::Unlogged);
        let values = numbers.iter().map(|number| {
            let mut values = found.columns.clone();
            values[2] = Some(CqlValue::BigInt(i64::from(*number % 60_000)));
            values.push(Some(CqlValue::Blob(number.to_be_bytes().to_vec())));
            values
        });
        let values: Vec<_> = values.collect();
        numbers.iter().for_each(|_| batch.append_statement(remove.clone()));
        client.batch(&batch, values).await.expect("it is written");
    }
    assert_eq!(due_names(&store, 60_000).await, ["first", "last"]);
    let first = store.due(Timestamp(60_000), None, 1).await.expect("it reads");
    let next = store.due(Timestamp(60_000), Some(first[0].mark()), 1).await.expect("it reads");
    assert_eq!((first[0].name.as_str(), next[0].name.as_str()), ("first", "last"));
}

/// What is due until then, by names.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn letters_are_found_behind_more_that_were_taken_than_the_server_passes_over() {
    // The server ends a read after 100,000 of them.
    const TAKEN: u64 = 230_000;
    let letter = |version: u64| format!(">{version:020}.000000");
    let server = SERVER.read().await;
    let store = connect(&server, "letters").await;
    let client = client(&server).await;
    let left = vec![posted(&letter(1), 7), posted(&letter(TAKEN), 7)];
    let left = Turn { postings: left, ..Turn::new(id("due", 1), Epoch(1), 1) };
    store.commit(left).await.expect("it follows");
    let select = "SELECT part, kind, key FROM letters.althing_actors LIMIT 1";
    let found = client.query_unpaged(select, ()).await.expect("it reads");
    let found = found.into_rows_result().expect("rows").first_row::<Row>().expect("one is there");
    let remove = "DELETE FROM letters.althing_actors
                  WHERE part = ? AND kind = ? AND key = ? AND sort = 2 AND number = 0 AND name = ?";
    let remove = client.prepare(remove).await.expect("it is a statement");
    for versions in (2..TAKEN).collect::<Vec<_>>().chunks(1_000) {
        let mut batch = Batch::new(BatchType::Unlogged);
        let values = versions.iter().map(|version| {
            let mut values = found.columns.clone();
            values.push(Some(CqlValue::Blob(letter(*version).into_bytes())));
            values
        });
        let values: Vec<_> = values.collect();
        versions.iter().for_each(|_| batch.append_statement(remove.clone()));
        client.batch(&batch, values).await.expect("it is written");
    }
    for (before, names) in [(TAKEN, vec![letter(1)]), (TAKEN + 1, vec![letter(1), letter(TAKEN)])] {
        let left = store.left_before(vec![(id("due", 1), letter(before))], 9).await;
        let left = left.expect("it reads").into_iter().map(|it| it.name);
        assert_eq!(left.collect::<Vec<_>>(), names);
    }
}

async fn due_names(store: &Cassandra, until: u64) -> Vec<String> {
    let due = store.due(Timestamp(until), None, usize::MAX).await.expect("it reads");
    due.into_iter().map(|it| it.name).collect()
}

fn micros(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).expect("it is later");
    i64::try_from(since.as_micros()).expect("it fits")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reminder_is_found_though_a_clock_that_was_ahead_has_forgotten_its_minute() {
    let server = SERVER.read().await;
    let store = connect(&server, "steps").await;
    let client = client(&server).await;
    // An hour later, as somebody thought, nothing was in the first minutes.
    let ahead = micros(SystemTime::now() + Duration::from_secs(3_600));
    let forget =
        "DELETE FROM steps.althing_due_buckets USING TIMESTAMP ? WHERE one = 1 AND bucket = ?";
    for bucket in [0_i64, 1] {
        client.query_unpaged(forget, (ahead, bucket)).await.expect("it is written");
    }
    let postings = vec![posted("first", 7), posted("second", 60_007)];
    let left = Turn { postings, ..Turn::new(id("due", 1), Epoch(1), 1) };
    store.commit(left).await.expect("it follows");
    assert_eq!(due_names(&store, 100_000).await, ["first", "second"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_minute_that_is_empty_is_forgotten_and_found_again_when_it_is_used() {
    let server = SERVER.read().await;
    let store = connect(&server, "minutes").await;
    let client = client(&server).await;
    // Written down long ago, and nothing is there.
    let before = micros(SystemTime::now() - Duration::from_secs(3_600));
    let old =
        "INSERT INTO minutes.althing_due_buckets (one, bucket) VALUES (1, 5) USING TIMESTAMP ?";
    client.query_unpaged(old, (before,)).await.expect("it is written");
    assert_eq!(due_names(&store, 400_000).await, [""; 0]);
    assert_eq!(count(&client, "minutes.althing_due_buckets").await, 0, "it is forgotten");
    let left =
        Turn { postings: vec![posted("late", 300_000)], ..Turn::new(id("due", 1), Epoch(1), 1) };
    store.commit(left).await.expect("it follows");
    assert_eq!(due_names(&store, 400_000).await, ["late"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_of_one_mark_are_found_though_a_page_ends_between_them() {
    let server = SERVER.read().await;
    let store = connect(&server, "cut").await;
    let client = client(&server).await;
    let left = Turn { postings: vec![posted("cut", 7)], ..Turn::new(id("due", 1), Epoch(1), 1) };
    store.commit(left).await.expect("it follows");
    // So many attempts to leave it have ended between an entry and its row that they fill a page.
    let select = "SELECT bucket, shard, at, kind, key, name FROM cut.althing_due LIMIT 1";
    let found = client.query_unpaged(select, ()).await.expect("it reads");
    let found = found.into_rows_result().expect("rows").first_row::<Row>().expect("one is there");
    let stale = "INSERT INTO cut.althing_due (bucket, shard, at, kind, key, name, entry, made)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
    let stale = client.prepare(stale).await.expect("it is a statement");
    let now = micros(SystemTime::now()) / 1_000;
    for number in 0..300_u16 {
        let mut values = found.columns.clone();
        // Before the name of any that a store gives, but for one in 2^48.
        let name = [&[0; 6][..], &number.to_be_bytes()].concat();
        values.extend([Some(CqlValue::Blob(name)), Some(CqlValue::BigInt(now))]);
        client.execute_unpaged(&stale, values).await.expect("it is written");
    }
    assert_eq!(due_names(&store, 7).await, ["cut"]);
    let page = store.due(Timestamp(7), None, 1).await.expect("it reads");
    assert_eq!(page.len(), 1);
    let after = Some(page[0].mark());
    assert_eq!(store.due(Timestamp(7), after, 1).await.expect("it reads"), []);
}

/// Until others can see that the keyspace is being made.
async fn is_listed(client: &Session, keyspace: &str) {
    let select = "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?";
    while client
        .query_unpaged(select, (keyspace,))
        .await
        .expect("it reads")
        .into_rows_result()
        .expect("rows")
        .rows_num()
        == 0
    {}
}

/// A keyspace or a table is listed a moment before it can be used: who looks then waits for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_start_together_make_the_tables_once_and_all_can_use_them() {
    let server = SERVER.read().await;
    let client = std::sync::Arc::new(client(&server).await);
    for keyspace in (1..=6).map(|number| format!("together_{number}")) {
        let start = (1..=6).map(|node| {
            let (host, client, keyspace) = (server.host(), client.clone(), keyspace.clone());
            tokio::spawn(async move {
                if node > 1 {
                    is_listed(&client, &keyspace).await;
                }
                let connected = Cassandra::connect_with(&[host], options(&keyspace)).await;
                let store = connected.expect("it is made, or will be in a moment");
                store.commit(turn(&id("node", node), 1, 1)).await.expect("it is written");
            })
        });
        for node in start.collect::<Vec<_>>() {
            node.await.expect("it starts");
        }
    }
}
