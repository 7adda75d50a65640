//! A backend commits a thousand rows a second and publishes them, while the relay, its database and
//! both are killed in turn: what was committed reaches a subscriber that comes back, each once and
//! in order, in every mode.
//!
//! `RELAY_KILLS` says how often, in all; without it four times, for `make test`.

use std::time::Instant;

use crate::kill_support::{Follower, Process, Tally};
use crate::support::database;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Duration, interval, sleep};
use tokio_postgres::Client;

use althing_testkit::servers::PostgresServer;

const PARTITIONS: i32 = 2;
/// Rows of one partition in one transaction, and the pause between two: a thousand a second in all.
const AT_ONCE: i64 = 10;
const PAUSE: Duration = Duration::from_millis(20);
/// Rows that must be heard in each partition between two kills.
const BETWEEN_KILLS: u64 = 300;

/// How a backend publishes what it commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Outbox,
    Cdc,
    /// It calls the server API after each commit, again and again with the same keys until that is
    /// answered.
    Api,
    /// Both of the last two, with the same keys: the first to arrive is published.
    ApiAndCdc,
}

impl Mode {
    fn calls(self) -> bool {
        matches!(self, Self::Api | Self::ApiAndCdc)
    }

    fn reads_changes(self) -> bool {
        matches!(self, Self::Cdc | Self::ApiAndCdc)
    }
}

/// Who is killed.
#[derive(Debug, Clone, Copy)]
enum Victim {
    Relay,
    Database,
    Both,
}

fn settings(mode: Mode, server: &PostgresServer, directory: &std::path::Path) -> Value {
    let dsn = server.url();
    let consumers = match mode {
        Mode::Outbox => json!([{ "name": "rows", "type": "postgresql", "postgresql": {
            "dsn": dsn, "num_partitions": PARTITIONS, "partition_poll_interval": "50ms",
            "partition_notification_channel": "outbox",
        } }]),
        Mode::Cdc | Mode::ApiAndCdc => json!([{
            "name": "rows", "type": "postgresql_cdc", "postgresql_cdc": { "dsn": dsn },
        }]),
        Mode::Api => json!([]),
    };
    json!({
        "client": { "allow_anonymous_connect_without_token": true },
        "http_api": { "key": "key" },
        "channel": {
            "history_directory": directory,
            "recovery_max_publication_limit": 100_000,
            "namespaces": [{
                "name": "news", "allow_subscribe_for_anonymous": true, "durable_history": true,
                "force_recovery": true, "history_size": 100_000, "history_ttl": "1h",
            }],
        },
        "consumers": consumers,
    })
}

/// Commits rows until it is told to end, whatever happens meanwhile; in the modes with calls,
/// publishes them too.
async fn work(mode: Mode, url: String, relay: String, partition: i32, end: watch::Receiver<bool>) {
    // What an outage holds up is made up for afterwards.
    let mut pace = interval(PAUSE);
    let mut published = 0;
    loop {
        let Ok(mut client) = database(&url).await else {
            sleep(PAUSE).await;
            continue;
        };
        // A commit without an answer may have been one.
        let newest = "SELECT coalesce(max(number), 0) FROM sent WHERE partition = $1";
        let Ok(row) = client.query_one(newest, &[&partition]).await else { continue };
        let mut last: i64 = row.get(0);
        loop {
            if mode.calls() {
                for first in (published + 1..=last).step_by(AT_ONCE as usize) {
                    publish(&relay, partition, first..=last.min(first + AT_ONCE - 1)).await;
                }
                published = last;
            }
            if *end.borrow() {
                return;
            }
            pace.tick().await;
            if commit(mode, &mut client, partition, last + 1).await.is_err() {
                break;
            }
            last += AT_ONCE;
        }
    }
}

async fn commit(
    mode: Mode,
    client: &mut Client,
    partition: i32,
    first: i64,
) -> Result<(), tokio_postgres::Error> {
    let transaction = client.transaction().await?;
    let last = first + AT_ONCE - 1;
    let sent = "INSERT INTO sent SELECT $1, generate_series($2::bigint, $3::bigint)";
    transaction.execute(sent, &[&partition, &first, &last]).await?;
    if mode != Mode::Api {
        let insert = "INSERT INTO centrifugo_outbox (method, payload, partition)
                      SELECT 'publish', jsonb_strip_nulls(jsonb_build_object('channel', $1::text,
                          'data', number, 'idempotency_key', $5::text || number)), $2
                      FROM generate_series($3::bigint, $4::bigint) AS number ORDER BY number";
        let channel = format!("news:{partition}");
        let keys = mode.calls().then(|| format!("{partition}/"));
        transaction.execute(insert, &[&channel, &partition, &first, &last, &keys]).await?;
    }
    transaction.execute("NOTIFY outbox", &[]).await?;
    transaction.commit().await
}

/// Publishes numbers until each is answered.
async fn publish(relay: &str, partition: i32, numbers: std::ops::RangeInclusive<i64>) {
    let command = |number: i64| {
        let (channel, key) = (format!("news:{partition}"), format!("{partition}/{number}"));
        json!({ "publish": { "channel": channel, "data": number, "idempotency_key": key } })
    };
    let batch = json!({ "commands": numbers.map(command).collect::<Vec<_>>() });
    loop {
        let answer = crate::kill_support::call(relay, "batch", &batch).await.ok();
        let replies = answer.as_ref().and_then(|answer| answer["replies"].as_array());
        if replies.is_some_and(|all| all.iter().all(|reply| reply["error"].is_null())) {
            return;
        }
        sleep(PAUSE).await;
    }
}

/// The tables of the backend, and a server whose log has enough for all modes.
async fn prepared() -> PostgresServer {
    let mut server = PostgresServer::start();
    let client = database(&server.url()).await.expect("it connects");
    client.batch_execute("ALTER SYSTEM SET wal_level = 'logical'").await.expect("it is set");
    let tables = "CREATE TABLE centrifugo_outbox (
             id BIGSERIAL PRIMARY KEY, method text NOT NULL, payload jsonb NOT NULL,
             partition integer NOT NULL DEFAULT 0, created_at timestamptz NOT NULL DEFAULT now());
         CREATE TABLE sent (partition integer, number bigint, PRIMARY KEY (partition, number))";
    client.batch_execute(tables).await.expect("tables are made");
    let restart = move || {
        server.start_again();
        server
    };
    tokio::task::spawn_blocking(restart).await.expect("it starts again")
}

/// Kills both in turn while the backend works; returns what a subscriber saw of it.
async fn what_is_seen_across_kills(mode: Mode) -> Tally {
    let times: usize =
        std::env::var("RELAY_KILLS").map_or(4, |times| times.parse().expect("a number"));
    let mut server = prepared().await;
    let directory = tempfile::tempdir().expect("it is made");
    let histories = directory.path().join("histories");
    let mut relay = Process::start(directory.path(), &settings(mode, &server, &histories));
    if mode.reads_changes() {
        // From the slot on, nothing is lost.
        let client = database(&server.url()).await.expect("it connects");
        let slots = "SELECT count(*) FROM pg_replication_slots WHERE active";
        while client.query_one(slots, &[]).await.expect("it reads").get::<_, i64>(0) == 0 {
            sleep(PAUSE).await;
        }
    }
    let mut followers: Vec<Follower> =
        (0..PARTITIONS).map(|partition| Follower::start(relay.address(), partition)).collect();
    let (ending, end) = watch::channel(false);
    let address = relay.address().to_owned();
    let workers: Vec<_> = (0..PARTITIONS)
        .map(|number| work(mode, server.url(), address.clone(), number, end.clone()))
        .map(tokio::spawn)
        .collect();
    let began = Instant::now();
    for victim in [Victim::Relay, Victim::Database, Victim::Both].into_iter().cycle().take(times) {
        for follower in &mut followers {
            follower.hears(BETWEEN_KILLS).await;
        }
        let kills = move || {
            if matches!(victim, Victim::Relay | Victim::Both) {
                relay.kill();
            }
            if matches!(victim, Victim::Database | Victim::Both) {
                server.kill();
                server.start_again();
            }
            relay.start_again();
            (relay, server)
        };
        (relay, server) = tokio::task::spawn_blocking(kills).await.expect("both start again");
    }
    ending.send_replace(true);
    for worker in workers {
        worker.await.expect("it ends");
    }
    let took = began.elapsed();
    let client = database(&server.url()).await.expect("it connects");
    let mut tally = Tally::default();
    for (partition, follower) in (0..PARTITIONS).zip(followers) {
        let sent = "SELECT count(*), coalesce(max(number), 0) FROM sent WHERE partition = $1";
        let sent = client.query_one(sent, &[&partition]).await.expect("it reads");
        let committed: i64 = sent.get(0);
        assert_eq!(committed, sent.get::<_, i64>(1), "the backend numbers without gaps");
        tally.add(&follower.end(committed.unsigned_abs()).await, committed.unsigned_abs());
    }
    let per_second = tally.committed as f64 / took.as_secs_f64();
    eprintln!("{mode:?}: {times} kills, {per_second:.0} rows/s: {tally:?}");
    tally
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outbox_is_seen_whole_once_and_in_order_though_relay_and_database_are_killed() {
    what_is_seen_across_kills(Mode::Outbox).await.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_seen_whole_once_and_in_order_though_relay_and_database_are_killed() {
    what_is_seen_across_kills(Mode::Cdc).await.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_with_keys_are_seen_whole_once_and_in_order_though_relay_and_database_are_killed() {
    what_is_seen_across_kills(Mode::Api).await.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_and_changes_with_one_key_are_seen_once_and_in_order_though_both_are_killed() {
    what_is_seen_across_kills(Mode::ApiAndCdc).await.check();
}
