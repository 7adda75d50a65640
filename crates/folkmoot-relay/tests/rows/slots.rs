//! The slot of change data capture goes: somebody drops it, or the database gives it up because it
//! kept too much. That is shown and never passed over by a silent beginning anew.

use std::time::Duration;

use crate::support::{Listener, database, get, logical_server};
use althing_testkit::servers::PostgresServer;
use folkmoot_relay::{Relay, Settings, start};
use serde_json::json;
use tokio::time::{sleep, timeout};
use tokio_postgres::Client;

/// Only turns a promise that is never kept into a failure.
const PATIENCE: Duration = Duration::from_secs(60);

async fn relay(server: &PostgresServer) -> Relay {
    let settings = json!({
        "client": { "allow_anonymous_connect_without_token": true },
        "channel": { "namespaces": [{ "name": "news", "allow_subscribe_for_anonymous": true }] },
        "consumers": [{
            "name": "changes", "type": "postgresql_cdc", "postgresql_cdc": { "dsn": server.url() },
        }],
    });
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    start(settings, "127.0.0.1:0".parse().expect("an address")).await.expect("it starts")
}

async fn shows_up(relay: &Relay, up: u8) {
    let wanted = format!("folkmoot_relay_consumer_up{{consumer=\"changes\"}} {up}");
    let looking = async {
        while !get(relay, "/metrics", "").await.lines().any(|line| line == wanted) {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, looking).await.expect("the metric is never as wanted");
}

async fn insert(client: &Client, number: i64) {
    let payload = json!({ "channel": "news:x", "data": number }).to_string();
    let insert = "INSERT INTO centrifugo_outbox (method, payload)
                  VALUES ('publish', $1::text::jsonb)";
    client.execute(insert, &[&payload]).await.expect("it is inserted");
}

/// Publishes one change, so that the slot is known; returns what it takes to go on.
async fn begun(server: &PostgresServer) -> (Relay, Listener, Client) {
    let relay = relay(server).await;
    shows_up(&relay, 1).await;
    let mut listener = Listener::subscribe(&relay, &["news:x"]).await;
    let client = database(&server.url()).await.expect("it connects");
    insert(&client, 1).await;
    assert_eq!(listener.publication().await.1, 1);
    (relay, listener, client)
}

/// Nothing comes until the operator says that the slot may begin anew, and then what follows.
async fn goes_on_when_it_is_told(relay: &Relay, listener: &mut Listener, client: &Client) {
    shows_up(relay, 0).await;
    let slots = "SELECT count(*) FROM pg_replication_slots WHERE active";
    let slots: i64 = client.query_one(slots, &[]).await.expect("it reads").get(0);
    assert_eq!(slots, 0, "it began anew without a word");
    let lost = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots";
    client.batch_execute(lost).await.expect("it is dropped");
    let told = "DELETE FROM folkmoot_relay_slots";
    client.batch_execute(told).await.expect("it is deleted");
    shows_up(relay, 1).await;
    insert(client, 3).await;
    assert_eq!(listener.publication().await.1, 3);
}

#[tokio::test]
async fn a_slot_that_was_dropped_is_shown_until_the_operator_lets_it_begin_anew() {
    let server = logical_server().await;
    let (relay, mut listener, client) = begun(&server).await;
    let drop = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active";
    // The relay comes back at once, so it may have to be cut off again before the slot is free.
    loop {
        client.batch_execute(drop).await.expect("it is cut off");
        let dropped = "SELECT pg_drop_replication_slot('folkmoot_relay')";
        if client.batch_execute(dropped).await.is_ok() {
            break;
        }
    }
    insert(&client, 2).await;
    goes_on_when_it_is_told(&relay, &mut listener, &client).await;
    relay.stop().await;
}

#[tokio::test]
async fn a_slot_that_kept_too_much_is_given_up_by_the_database_and_shown() {
    let server = logical_server().await;
    let (first, _, client) = begun(&server).await;
    first.stop().await;
    client
        .batch_execute("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
        .await
        .expect("it is set");
    client.batch_execute("SELECT pg_reload_conf()").await.expect("it is read");
    insert(&client, 2).await;
    let state = "SELECT wal_status FROM pg_replication_slots";
    let lost = async {
        while client.query_one(state, &[]).await.expect("it reads").get::<_, &str>(0) != "lost" {
            client.batch_execute("CREATE TABLE filler (); DROP TABLE filler").await.expect("made");
            client.batch_execute("SELECT pg_switch_wal()").await.expect("it is switched");
            client.batch_execute("CHECKPOINT").await.expect("it is written");
        }
    };
    timeout(PATIENCE, lost).await.expect("the slot is never given up");
    let relay = relay(&server).await;
    let mut listener = Listener::subscribe(&relay, &["news:x"]).await;
    goes_on_when_it_is_told(&relay, &mut listener, &client).await;
    relay.stop().await;
}
