//! A backlog of rows with large payloads: a relay holds some of them at a time, whatever their
//! number.

use crate::kill_support::Process;
use crate::support::{Listener, database};
use althing_testkit::servers::PostgresServer;
use serde_json::json;
use tokio::time::{Duration, sleep};

/// Two hundred megabytes, of which the database keeps little: they are all alike.
const ROWS: i32 = 200;
const ROW_BYTES: i32 = 1_000_000;
/// As much as all rows. One that held them at once, and read them, took 480 MiB.
const MEMORY_KIB_MAX: u64 = 200 << 10;

const TABLE: &str = "CREATE TABLE centrifugo_outbox (
    id BIGSERIAL PRIMARY KEY, method text NOT NULL, payload jsonb NOT NULL,
    partition integer NOT NULL DEFAULT 0, created_at timestamptz NOT NULL DEFAULT now())";

#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_of_large_rows_is_published_a_few_megabytes_at_a_time() {
    let server = PostgresServer::start();
    let client = database(&server.url()).await.expect("it connects");
    client.batch_execute(TABLE).await.expect("it is made");
    let insert = "INSERT INTO centrifugo_outbox (method, payload)
                  SELECT 'publish', jsonb_build_object('channel', 'news:x', 'data', repeat('x', $1))
                  FROM generate_series(1, $2)";
    client.execute(insert, &[&ROW_BYTES, &ROWS]).await.expect("they are inserted");
    let directory = tempfile::tempdir().expect("a directory");
    let settings = json!({
        "channel": { "namespaces": [{ "name": "news" }] },
        "consumers": [{
            "name": "rows", "type": "postgresql", "postgresql": { "dsn": server.url() },
        }],
    });
    let relay = Process::start(directory.path(), &settings);
    let left = "SELECT count(*) FROM centrifugo_outbox";
    while client.query_one(left, &[]).await.expect("it reads").get::<_, i64>(0) > 0 {
        sleep(Duration::from_millis(20)).await;
    }
    let peak = relay.memory_peak_kib();
    assert!(peak < MEMORY_KIB_MAX, "{peak} KiB at the most");
}

#[tokio::test]
async fn a_row_over_the_limit_is_set_aside_and_all_before_and_after_it_is_published() {
    let server = PostgresServer::start();
    let client = database(&server.url()).await.expect("it connects");
    client.batch_execute(TABLE).await.expect("it is made");
    let insert = "INSERT INTO centrifugo_outbox (method, payload)
                  VALUES ('publish', jsonb_build_object('channel', 'news:x', 'data', $1::text))";
    let huge = "INSERT INTO centrifugo_outbox (method, payload) SELECT 'publish',
                jsonb_build_object('channel', 'news:x', 'data', repeat('x', 68000000))";
    client.execute(insert, &[&"before"]).await.expect("it is inserted");
    client.execute(huge, &[]).await.expect("it is inserted");
    client.execute(insert, &[&"after"]).await.expect("it is inserted");
    let settings = json!({
        "client": { "allow_anonymous_connect_without_token": true },
        "channel": { "namespaces": [{
            "name": "news", "allow_subscribe_for_anonymous": true,
            "allow_history_for_anonymous": true, "history_size": 10, "history_ttl": "60s",
        }] },
        "consumers": [{
            "name": "rows", "type": "postgresql", "postgresql": { "dsn": server.url() },
        }],
    });
    let settings = folkmoot_relay::Settings::from_json(&settings.to_string()).expect("settings");
    let free = "127.0.0.1:0".parse().expect("an address");
    let relay = folkmoot_relay::start(settings, free).await.expect("it starts");
    let mut listener = Listener::recover(&relay, "news:x").await;
    for word in ["before", "after"] {
        assert_eq!(listener.publication().await.1, word);
    }
    let failed = "SELECT error, length(payload->>'data') FROM centrifugo_outbox_failed";
    // The transaction that sets it aside may end after the publication was heard.
    let mut rows = Vec::new();
    while rows.is_empty() {
        rows = client.query(failed, &[]).await.expect("it reads");
    }
    let (error, len): (String, i32) = (rows[0].get(0), rows[0].get(1));
    assert!(error.contains("68000033 bytes is over the limit of 67108864"), "{error}");
    assert_eq!(len, 68_000_000, "the row itself is kept");
    let page = crate::support::get(&relay, "/metrics", "").await;
    let refused = "publications_total{source=\"rows\",outcome=\"refused\"} 1";
    assert!(page.contains(refused), "{page}");
    relay.stop().await;
}
