//! What a backend commits is published from PostgreSQL's own log, on a real server that is killed
//! meanwhile.

use std::net::SocketAddr;
use std::time::Duration;

use crate::set_aside::set_aside;
use crate::support::{Listener, database, logical_server};
use althing_testkit::servers::PostgresServer;
use folkmoot_relay::{Relay, Settings, start};
use serde_json::json;
use tokio_postgres::Client;

const ROWS: i64 = 2_000;
const KILLS: usize = 5;
/// Rows that the backend inserts in one transaction.
const AT_ONCE: i64 = 7;

async fn relay(server: &PostgresServer) -> Relay {
    let settings = json!({
        "client": { "allow_anonymous_connect_without_token": true },
        "http_api": { "key": "key" },
        "channel": { "namespaces": [{
            "name": "news", "allow_subscribe_for_anonymous": true,
            "allow_history_for_anonymous": true, "history_size": 10, "history_ttl": "60s",
        }] },
        "consumers": [{
            "name": "changes", "type": "postgresql_cdc", "postgresql_cdc": { "dsn": server.url() },
        }],
    });
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    let free: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    start(settings, free).await.expect("it starts")
}

/// Connects once the relay has made its table and slot.
async fn prepared(server: &PostgresServer) -> Client {
    let client = database(&server.url()).await.expect("it connects");
    let slots = "SELECT count(*) FROM pg_replication_slots WHERE active";
    while client.query_one(slots, &[]).await.expect("it reads").get::<_, i64>(0) == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let sent = "CREATE TABLE sent (number bigint PRIMARY KEY)";
    client.batch_execute(sent).await.expect("it is made");
    client
}

const INSERT: &str = "INSERT INTO centrifugo_outbox (method, payload, partition)
                      VALUES ('publish', $1::text::jsonb, 0)";

/// Commits some numbers as changes of the backend, and what is to be published of them. The rows of
/// the outbox are deleted at once: the log has them.
async fn commit(client: &mut Client, first: i64) -> Result<(), tokio_postgres::Error> {
    let transaction = client.transaction().await?;
    for number in first..first + AT_ONCE {
        transaction.execute("INSERT INTO sent VALUES ($1)", &[&number]).await?;
        let payload = json!({ "channel": "news:x", "data": number }).to_string();
        transaction.execute(INSERT, &[&payload]).await?;
    }
    transaction.execute("DELETE FROM centrifugo_outbox", &[]).await?;
    transaction.commit().await
}

/// Commits the numbers from 1, each once, whatever happens to the database.
async fn write(url: String) {
    let mut last = 0;
    while last < ROWS {
        let Ok(mut client) = database(&url).await else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        // A commit without an answer may have been one.
        let newest = "SELECT coalesce(max(number), 0) FROM sent";
        let Ok(row) = client.query_one(newest, &[]).await else { continue };
        last = row.get(0);
        while last < ROWS && commit(&mut client, last + 1).await.is_ok() {
            last += AT_ONCE;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_commit_is_published_once_and_in_order_though_the_database_is_killed() {
    let server = logical_server().await;
    let relay = relay(&server).await;
    drop(prepared(&server).await);
    let mut listener = Listener::subscribe(&relay, &["news:x"]).await;
    let writing = tokio::spawn(write(server.url()));
    let listening = tokio::spawn(async move {
        for number in 1..=ROWS {
            let (_, data) = listener.publication().await;
            assert_eq!(data, number, "one is missing, doubled or out of order");
        }
    });
    let _server = crate::support::killed(server, KILLS).await;
    writing.await.unwrap();
    listening.await.unwrap();
    relay.stop().await;
}

#[tokio::test]
async fn what_was_committed_while_no_relay_ran_is_published_by_the_next() {
    let server = logical_server().await;
    let first = relay(&server).await;
    let mut client = prepared(&server).await;
    let mut listener = Listener::subscribe(&first, &["news:x"]).await;
    commit(&mut client, 1).await.unwrap();
    for number in 1..=AT_ONCE {
        assert_eq!(listener.publication().await.1, number);
    }
    // Until the database has heard of it.
    let behind = "SELECT count(*) FROM pg_replication_slots
                  WHERE confirmed_flush_lsn < pg_current_wal_insert_lsn() - 200::numeric";
    let mut left = 1;
    while left > 0 {
        left = client.query_one(behind, &[]).await.unwrap().get::<_, i64>(0);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    first.stop().await;
    commit(&mut client, 100).await.unwrap();
    let second = relay(&server).await;
    let mut listener = Listener::recover(&second, "news:x").await;
    for number in 100..100 + AT_ONCE {
        assert_eq!(listener.publication().await.1, number);
    }
    second.stop().await;
}

#[tokio::test]
async fn a_change_that_cannot_be_published_is_set_aside_and_holds_nobody_up() {
    let server = logical_server().await;
    let relay = relay(&server).await;
    let mut client = prepared(&server).await;
    let mut listener = Listener::subscribe(&relay, &["news:x"]).await;
    client.execute(INSERT, &[&r#"{"channel": "nowhere:x", "data": 1}"#]).await.unwrap();
    commit(&mut client, 1).await.unwrap();
    assert_eq!(listener.publication().await.1, 1);
    let failed = "SELECT error FROM centrifugo_outbox_failed";
    // What was read together is published before it is set aside.
    let mut rows = Vec::new();
    while rows.is_empty() {
        rows = client.query(failed, &[]).await.unwrap();
    }
    assert_eq!(rows.len(), 1);
    assert!(rows[0].get::<_, &str>(0).contains("nowhere"));
    relay.stop().await;
}

#[tokio::test]
async fn a_row_over_the_limit_is_set_aside_and_all_before_and_after_it_is_published() {
    let server = logical_server().await;
    let relay = relay(&server).await;
    let mut client = prepared(&server).await;
    let mut listener = Listener::subscribe(&relay, &["news:x"]).await;
    let huge = "INSERT INTO centrifugo_outbox (method, payload, partition)
                SELECT 'publish', jsonb_build_object('channel', 'news:x', 'data', repeat('x', 68000000)), 0
                RETURNING id";
    let payload = |number: i64| json!({ "channel": "news:x", "data": number }).to_string();
    // Between two rows of one transaction, and deleted in the transaction that inserts it.
    let transaction = client.transaction().await.unwrap();
    transaction.execute(INSERT, &[&payload(1)]).await.unwrap();
    let kept: i64 = transaction.query_one(huge, &[]).await.unwrap().get(0);
    transaction.execute(INSERT, &[&payload(2)]).await.unwrap();
    let deleted: i64 = transaction.query_one(huge, &[]).await.unwrap().get(0);
    let delete = "DELETE FROM centrifugo_outbox WHERE id = $1";
    transaction.execute(delete, &[&deleted]).await.unwrap();
    transaction.commit().await.unwrap();
    client.execute(INSERT, &[&payload(3)]).await.unwrap();
    for number in 1..=3 {
        assert_eq!(listener.publication().await.1, number);
    }
    let failed = "SELECT id, error, coalesce(length(payload->>'data'), 0)
                  FROM centrifugo_outbox_failed ORDER BY id";
    let rows = client.query(failed, &[]).await.unwrap();
    let rows: Vec<(i64, i32)> = rows
        .iter()
        .map(|row| {
            assert!(row.get::<_, &str>(1).contains("over the limit of 67108864"));
            (row.get(0), row.get(2))
        })
        .collect();
    assert_eq!(rows, [(kept, 68_000_000), (deleted, 0)]);
    let page = crate::support::get(&relay, "/metrics", "").await;
    let refused = "publications_total{source=\"changes\",outcome=\"refused\"} 2";
    assert!(page.contains(refused), "{page}");
    relay.stop().await;
}

#[tokio::test]
async fn a_row_over_the_limit_is_set_aside_with_its_id_though_that_comes_after_its_payload() {
    let server = logical_server().await;
    let client = database(&server.url()).await.unwrap();
    let table = "CREATE TABLE centrifugo_outbox (
        payload jsonb NOT NULL, note text, partition integer NOT NULL DEFAULT 0,
        method text NOT NULL, id BIGSERIAL PRIMARY KEY)";
    client.batch_execute(table).await.unwrap();
    let relay = relay(&server).await;
    let client = prepared(&server).await;
    let mut listener = Listener::subscribe(&relay, &["news:x"]).await;
    let huge = "INSERT INTO centrifugo_outbox (id, method, payload, partition) VALUES (41, 'publish',
            jsonb_build_object('channel', 'news:x', 'data', repeat('x', 68000000)), 0);
        WITH gone AS (INSERT INTO centrifugo_outbox (id, method, payload, partition) VALUES (42, 'publish',
            jsonb_build_object('channel', 'news:x', 'data', repeat('y', 68000000)), 3) RETURNING id)
        SELECT FROM gone; DELETE FROM centrifugo_outbox WHERE id = 42;";
    client.batch_execute(huge).await.unwrap();
    let payload = json!({ "channel": "news:x", "data": 1 }).to_string();
    client.execute(INSERT, &[&payload]).await.unwrap();
    assert_eq!(listener.publication().await.1, 1);
    let failed = "SELECT id, method, partition, coalesce(length(payload->>'data'), 0)
                  FROM centrifugo_outbox_failed ORDER BY id";
    let rows = client.query(failed, &[]).await.unwrap();
    let rows: Vec<(i64, String, i32, i32)> =
        rows.iter().map(|row| (row.get(0), row.get(1), row.get(2), row.get(3))).collect();
    let publish = || "publish".to_owned();
    assert_eq!(rows, [(41, publish(), 0, 68_000_000), (42, publish(), 3, 0)]);
    relay.stop().await;
}

#[tokio::test]
async fn a_row_that_gets_the_id_and_the_content_of_one_before_the_table_was_emptied_is_published() {
    let server = logical_server().await;
    let relay = relay(&server).await;
    let client = prepared(&server).await;
    let mut listener = Listener::subscribe(&relay, &["news:x"]).await;
    let insert = async |data: &serde_json::Value| {
        let returning = format!("{INSERT} RETURNING id");
        let row = client.query_one(&returning, &[&data.to_string()]).await.unwrap();
        row.get::<_, i64>(0)
    };
    for round in 0..3 {
        let row = json!({ "channel": "news:x", "data": "the same" });
        let bad = json!({ "channel": "nowhere:x", "data": round });
        assert_eq!((insert(&row).await, insert(&bad).await), (1, 2));
        assert_eq!(listener.publication().await.1, "the same");
        let anew = "TRUNCATE centrifugo_outbox RESTART IDENTITY";
        client.batch_execute(anew).await.unwrap();
    }
    let last = json!({ "channel": "news:x", "data": "last" });
    assert_eq!(insert(&last).await, 1);
    assert_eq!(listener.publication().await.1, "last");
    let all = set_aside(&client, "(payload->'data')::text", 3).await;
    assert_eq!(all, ["0", "1", "2"]);
    relay.stop().await;
}

#[tokio::test]
async fn one_idempotency_key_by_api_and_by_change_is_published_once() {
    let server = logical_server().await;
    let relay = relay(&server).await;
    let client = prepared(&server).await;
    let mut listener = Listener::subscribe(&relay, &["news:x"]).await;
    for number in 1..=20 {
        let payload =
            json!({ "channel": "news:x", "data": number, "idempotency_key": number.to_string() });
        let by_change = async {
            client.execute(INSERT, &[&payload.to_string()]).await.unwrap();
        };
        let by_api = crate::support::post(&relay, "publish", &payload);
        tokio::join!(by_change, by_api);
        assert_eq!(listener.publication().await.1, number);
    }
    commit_end(&client).await;
    assert_eq!(listener.publication().await.1, "end", "something was published twice");
    relay.stop().await;
}

async fn commit_end(client: &Client) {
    let payload = json!({ "channel": "news:x", "data": "end" }).to_string();
    client.execute(INSERT, &[&payload]).await.expect("it is inserted");
}

#[tokio::test]
async fn rows_of_an_outbox_in_partitions_are_published_wherever_they_are() {
    let server = logical_server().await;
    let client = database(&server.url()).await.expect("it connects");
    let table = "CREATE TABLE centrifugo_outbox (
             id BIGSERIAL, method text NOT NULL, payload jsonb NOT NULL,
             partition integer NOT NULL DEFAULT 0, tenant text NOT NULL DEFAULT 'a'
         ) PARTITION BY LIST (tenant);
         CREATE TABLE outbox_of_a PARTITION OF centrifugo_outbox FOR VALUES IN ('a');
         CREATE TABLE outbox_of_others PARTITION OF centrifugo_outbox DEFAULT;";
    client.batch_execute(table).await.expect("it is made");
    let relay = relay(&server).await;
    let client = prepared(&server).await;
    let mut listener = Listener::subscribe(&relay, &["news:x"]).await;
    for (number, tenant) in (1..).zip(["a", "b", "a"]) {
        let payload = json!({ "channel": "news:x", "data": number }).to_string();
        let insert = "INSERT INTO centrifugo_outbox (method, payload, tenant)
                      VALUES ('publish', $1::text::jsonb, $2)";
        client.execute(insert, &[&payload, &tenant]).await.expect("it is inserted");
        assert_eq!(listener.publication().await, ("news:x".to_owned(), json!(number)));
    }
    relay.stop().await;
}

#[tokio::test]
async fn a_publication_that_would_leave_out_rows_in_partitions_is_named() {
    let server = logical_server().await;
    let client = database(&server.url()).await.expect("it connects");
    let table = "CREATE TABLE centrifugo_outbox (
             id BIGSERIAL, method text NOT NULL, payload jsonb NOT NULL,
             partition integer NOT NULL DEFAULT 0
         ) PARTITION BY LIST (partition);
         CREATE TABLE outbox_of_all PARTITION OF centrifugo_outbox DEFAULT;
         CREATE PUBLICATION folkmoot_relay FOR TABLE centrifugo_outbox;";
    client.batch_execute(table).await.expect("it is made");
    let relay = relay(&server).await;
    let up = "folkmoot_relay_consumer_up{consumer=\"changes\"}";
    let is_up = async || {
        let metrics = crate::support::get(&relay, "/metrics", "").await;
        metrics.lines().any(|line| line == format!("{up} 1"))
    };
    let slots = "SELECT count(*) FROM pg_replication_slots";
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!is_up().await);
    assert_eq!(client.query_one(slots, &[]).await.expect("it reads").get::<_, i64>(0), 0);
    let mend = "ALTER PUBLICATION folkmoot_relay SET (publish_via_partition_root = true)";
    client.batch_execute(mend).await.expect("it is changed");
    while !is_up().await {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // It names all changes: only what is inserted is published, and the rest disturbs nobody.
    let mut listener = Listener::subscribe(&relay, &["news:x"]).await;
    let large = "x".repeat(100_000);
    for number in 1..=3 {
        let payload = json!({ "channel": "news:x", "data": [number, large] }).to_string();
        client.execute(INSERT, &[&payload]).await.expect("it is inserted");
        // The payload is stored apart, and does not change.
        let change = "ALTER TABLE outbox_of_all REPLICA IDENTITY FULL;
            UPDATE centrifugo_outbox SET method = 'broadcast';
            TRUNCATE centrifugo_outbox;
            ALTER TABLE centrifugo_outbox ADD COLUMN IF NOT EXISTS mine text DEFAULT 'x';";
        client.batch_execute(change).await.expect("it is changed");
        assert_eq!(listener.publication().await.1[0], number);
    }
    relay.stop().await;
}
