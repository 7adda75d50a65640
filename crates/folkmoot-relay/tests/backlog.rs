//! An outbox after an outage: many rows wait, and tables that do not fit.

mod support;

use std::time::Duration;

use althing_testkit::servers::PostgresServer;
use folkmoot_relay::{Relay, Settings, start};
use serde_json::json;
use support::{Listener, database, get};
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};
use tokio_postgres::Client;

/// Only turns a promise that is never kept into a failure.
const PATIENCE: Duration = Duration::from_secs(60);
/// What the relay may take beside its batches and the buffers of sockets.
const GROWTH_BYTES_MAX: u64 = 64 << 20;

/// Memory is that of the process, so these tests run one after the other.
static ALONE: Mutex<()> = Mutex::const_new(());

async fn relay(server: &PostgresServer) -> Relay {
    let settings = json!({
        "client": { "allow_anonymous_connect_without_token": true },
        "channel": { "namespaces": [{ "name": "news", "allow_subscribe_for_anonymous": true }] },
        "consumers": [{ "name": "outbox", "type": "postgresql", "postgresql": {
            "dsn": server.url(), "partition_poll_interval": "20ms",
        } }],
    });
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    start(settings, "127.0.0.1:0".parse().expect("an address")).await.expect("it starts")
}

/// A database whose outbox was made by a relay that is gone.
async fn outbox(server: &PostgresServer) -> Client {
    let relay = relay(server).await;
    shows(&relay, "up", |up| up == 1).await;
    relay.stop().await;
    database(&server.url()).await.expect("it connects")
}

/// Reads a metric of the consumer until it is as wanted; returns it.
async fn shows(relay: &Relay, metric: &str, is_wanted: impl Fn(u64) -> bool) -> u64 {
    let name = format!("folkmoot_relay_consumer_{metric}{{consumer=\"outbox\"}} ");
    let looking = async {
        loop {
            let page = get(relay, "/metrics", "").await;
            let value = page.lines().find_map(|line| line.strip_prefix(&name));
            let value: u64 = value.expect("the metric is there").parse().expect("a number");
            if is_wanted(value) {
                return value;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("{metric} is never as wanted"))
}

/// What this process takes at the moment, which is the relay and its listeners.
fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("the system tells it");
    let pages: u64 = pages.split(' ').nth(1).expect("a field").parse().expect("a number");
    pages * 4_096
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_million_rows_of_backlog_are_published_in_order_with_little_memory() {
    const LOOKED_AT: i64 = 20_000;
    let _alone = ALONE.lock().await;
    let server = PostgresServer::start();
    let client = outbox(&server).await;
    let insert = "INSERT INTO centrifugo_outbox (method, payload)
        SELECT 'publish', jsonb_build_object('channel', 'news:x', 'data', number)
        FROM generate_series(1, 1000000) AS number";
    client.batch_execute(insert).await.expect("it is inserted");
    // The listener is there before the relay reads: nothing is kept for those who come later.
    client.batch_execute("BEGIN; LOCK centrifugo_outbox").await.expect("it is locked");
    let before = resident_bytes();
    let relay = relay(&server).await;
    let mut listener = Listener::subscribe(&relay, &["news:x"]).await;
    client.batch_execute("COMMIT").await.expect("it is let go");
    for number in 1..=LOOKED_AT {
        assert_eq!(listener.publication().await.1, number, "missing, doubled or out of order");
    }
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < GROWTH_BYTES_MAX, "{grown} bytes");
    let waiting = shows(&relay, "backlog_rows", |waiting| waiting > 0).await;
    shows(&relay, "backlog_rows", |now| now < waiting).await;
    relay.stop().await;
}

#[tokio::test]
async fn a_table_that_does_not_fit_is_shown_and_its_rows_are_published_once_it_does() {
    let _alone = ALONE.lock().await;
    let server = PostgresServer::start();
    let client = outbox(&server).await;
    let insert = "INSERT INTO centrifugo_outbox (method, payload)
        VALUES ('publish', '{\"channel\": \"news:x\", \"data\": ";
    for (number, (broken, mended)) in [
        ("ALTER COLUMN payload DROP NOT NULL", "ALTER COLUMN payload SET NOT NULL"),
        (
            "ALTER COLUMN payload TYPE text",
            "ALTER COLUMN payload TYPE jsonb USING payload::text::jsonb",
        ),
        ("RENAME COLUMN partition TO part", "RENAME COLUMN part TO partition"),
        // Columns of the backend's own are passed over.
        ("ADD COLUMN tenant text NOT NULL DEFAULT 'us'", ""),
    ]
    .into_iter()
    .enumerate()
    {
        let alter = |how: &str| format!("ALTER TABLE centrifugo_outbox {how}");
        client.batch_execute(&alter(broken)).await.expect("it is altered");
        let drop = "DROP TABLE centrifugo_outbox_failed";
        client.batch_execute(drop).await.expect("it is dropped");
        let insert = format!("{insert}{number}}}')");
        if broken.starts_with("ADD") {
            let relay = relay(&server).await;
            let mut listener = Listener::subscribe(&relay, &["news:x"]).await;
            client.batch_execute(&insert).await.expect("it is inserted");
            assert_eq!(listener.publication().await.1, number);
            relay.stop().await;
            continue;
        }
        client.batch_execute(&insert).await.expect("it is inserted");
        let relay = relay(&server).await;
        let mut listener = Listener::subscribe(&relay, &["news:x"]).await;
        // It looks at the shape of the one once it has made the other.
        let made = "SELECT to_regclass('centrifugo_outbox_failed') IS NOT NULL";
        while !client.query_one(made, &[]).await.expect("it reads").get::<_, bool>(0) {
            sleep(Duration::from_millis(5)).await;
        }
        shows(&relay, "up", |up| up == 0).await;
        let left = "SELECT count(*) FROM centrifugo_outbox";
        let left: i64 = client.query_one(left, &[]).await.expect("it reads").get(0);
        assert_eq!(left, 1, "what cannot be read is not deleted");
        client.batch_execute(&alter(mended)).await.expect("it is altered");
        assert_eq!(listener.publication().await.1, number);
        shows(&relay, "up", |up| up == 1).await;
        let failed = "SELECT count(*) FROM centrifugo_outbox_failed";
        let failed: i64 = client.query_one(failed, &[]).await.expect("it reads").get(0);
        assert_eq!(failed, 0);
        relay.stop().await;
    }
}
