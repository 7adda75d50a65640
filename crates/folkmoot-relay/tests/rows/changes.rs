//! A relay that reads the changes of one table, and what a backend inserts there.

use std::time::Duration;

use crate::support::get;
use althing_testkit::servers::PostgresServer;
use folkmoot_relay::{Relay, Settings, start};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tokio_postgres::Client;

/// Only turns a promise that is never kept into a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn relay(server: &PostgresServer) -> Relay {
    let channel =
        json!({ "namespaces": [{ "name": "news", "allow_subscribe_for_anonymous": true }] });
    relay_with(server, channel).await
}

pub(crate) async fn relay_with(server: &PostgresServer, channel: Value) -> Relay {
    let settings = json!({
        "client": { "allow_anonymous_connect_without_token": true },
        "channel": channel,
        "consumers": [{
            "name": "changes", "type": "postgresql_cdc", "postgresql_cdc": { "dsn": server.url() },
        }],
    });
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    start(settings, "127.0.0.1:0".parse().expect("an address")).await.expect("it starts")
}

pub(crate) async fn shows_up(relay: &Relay, up: u8) {
    let wanted = format!("folkmoot_relay_consumer_up{{consumer=\"changes\"}} {up}");
    let looking = async {
        while !get(relay, "/metrics", "").await.lines().any(|line| line == wanted) {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, looking).await.expect("the metric is never as wanted");
}

pub(crate) async fn insert(client: &Client, channel: &str, number: i64) {
    let payload = json!({ "channel": channel, "data": number }).to_string();
    let insert = "INSERT INTO centrifugo_outbox (method, payload)
                  VALUES ('publish', $1::text::jsonb)";
    client.execute(insert, &[&payload]).await.expect("it is inserted");
}
