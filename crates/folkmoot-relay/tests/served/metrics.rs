//! What the operator sees of a relay: its metrics and its health.

use std::net::SocketAddr;

use crate::support::{Listener, database, get, get_from};
use althing_testkit::servers::PostgresServer;
use folkmoot_relay::{Relay, Settings, start};
use serde_json::{Value, json};
use tokio::time::{Duration, sleep};

async fn relay(consumers: Value) -> Relay {
    let settings = json!({
        "client": { "allow_anonymous_connect_without_token": true },
        "http_api": { "key": "key" },
        "prometheus": { "token": "secret" },
        "channel": { "namespaces": [{ "name": "news", "allow_subscribe_for_anonymous": true }] },
        "consumers": consumers,
    });
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    let free: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    start(settings, free).await.expect("it starts")
}

/// Reads the page until it has all these lines.
async fn shows(relay: &Relay, lines: &[&str]) {
    loop {
        let page = get(relay, "/metrics", "").await;
        let missing = lines.iter().filter(|line| !page.lines().any(|one| one == **line));
        if missing.count() == 0 {
            return;
        }
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn what_is_going_on_is_counted() {
    let relay = relay(json!([])).await;
    let listener = Listener::subscribe(&relay, &["news:a", "news:b"]).await;
    crate::support::post(&relay, "publish", &json!({ "channel": "news:a", "data": 1 })).await;
    crate::support::post(&relay, "publish", &json!({ "channel": "nowhere:a", "data": 1 })).await;
    let wanted = [
        "folkmoot_relay_connections 1",
        "folkmoot_relay_subscriptions 2",
        "folkmoot_relay_channels 2",
        "folkmoot_relay_connections_total 1",
        "folkmoot_relay_commands_total 3",
        "folkmoot_relay_publications_total{source=\"api\",outcome=\"published\"} 1",
        "folkmoot_relay_publications_total{source=\"api\",outcome=\"refused\"} 1",
    ];
    shows(&relay, &wanted).await;
    drop(listener);
    shows(&relay, &["folkmoot_relay_connections 0", "folkmoot_relay_channels 0"]).await;
    relay.stop().await;
}

#[tokio::test]
async fn the_metrics_are_for_this_machine_and_for_who_has_the_token() {
    let relay = relay(json!([])).await;
    assert!(get(&relay, "/metrics", "").await.contains(" 200 "));
    let by_proxy = "X-Forwarded-For: 192.0.2.1\r\n";
    assert!(get(&relay, "/metrics", by_proxy).await.contains(" 401 "));
    for (token, status) in [("guess", " 401 "), ("", " 401 "), ("secret", " 200 ")] {
        let headers = format!("{by_proxy}Authorization: Bearer {token}\r\n");
        assert!(get(&relay, "/metrics", &headers).await.contains(status), "{token}");
    }
    assert!(get(&relay, "/health", "").await.contains(" 200 "));
    relay.stop().await;
}

#[tokio::test]
async fn a_page_of_a_stranger_whose_name_leads_to_this_machine_does_not_get_the_metrics() {
    let relay = relay(json!([])).await;
    let port = relay.address().port();
    for (host, status) in [
        ("localhost", " 200 "),
        (&*format!("127.0.0.1:{port}"), " 200 "),
        (&*format!("evil.example:{port}"), " 401 "),
        ("127.0.0.1.evil.example", " 401 "),
    ] {
        let page = get_from(&relay, host, "/metrics", "").await;
        assert!(page.contains(status), "{host}: {page}");
        let token = "Authorization: Bearer secret\r\n";
        assert!(get_from(&relay, host, "/metrics", token).await.contains(" 200 "), "{host}");
    }
    relay.stop().await;
}

#[tokio::test]
async fn backlog_and_rows_that_were_set_aside_are_shown_and_whether_the_database_answers() {
    let server = PostgresServer::start();
    // The first partition only: rows of the other wait.
    let consumer = json!({ "name": "rows", "type": "postgresql", "postgresql": {
        "dsn": server.url(), "partition_poll_interval": "20ms",
    } });
    let relay = relay(json!([consumer])).await;
    shows(&relay, &["folkmoot_relay_consumer_up{consumer=\"rows\"} 1"]).await;
    let client = database(&server.url()).await.expect("it connects");
    let insert = "INSERT INTO centrifugo_outbox (method, payload, partition)
                  SELECT 'publish', jsonb_build_object('channel', channel, 'data', 1), partition
                  FROM (VALUES ('news:a', 0), ('nowhere:a', 0), ('news:a', 1), ('news:a', 1))
                  AS rows (channel, partition)";
    client.batch_execute(insert).await.expect("it is inserted");
    let wanted = [
        "folkmoot_relay_consumer_backlog_rows{consumer=\"rows\"} 2",
        "folkmoot_relay_consumer_stranded_rows{consumer=\"rows\"} 2",
        "folkmoot_relay_consumer_set_aside_rows{consumer=\"rows\"} 1",
        "folkmoot_relay_publications_total{source=\"rows\",outcome=\"published\"} 1",
        "folkmoot_relay_publications_total{source=\"rows\",outcome=\"refused\"} 1",
    ];
    shows(&relay, &wanted).await;
    drop(server);
    shows(&relay, &["folkmoot_relay_consumer_up{consumer=\"rows\"} 0"]).await;
    relay.stop().await;
}
