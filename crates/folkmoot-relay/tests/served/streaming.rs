//! Connections over HTTP, as strangers and networks use them: commands for sessions that are not
//! there, pages of other sites, clients that go away or read nothing.

use std::net::SocketAddr;
use std::time::Duration;

use crate::support::asked::Asked;
use folkmoot_relay::{Relay, Settings, start};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

/// Only turns a promise that is never kept into a failure.
const PATIENCE: Duration = Duration::from_secs(30);

async fn relay() -> Relay {
    let settings = json!({
        "client": {
            "allow_anonymous_connect_without_token": true, "queue_max_size": 200_000, "expired_close_delay": "1ms",
            "allowed_origins": ["https://app.example"],
        },
        "http_api": { "key": "key" },
        "channel": { "namespaces": [{
            "name": "news", "presence": true, "allow_subscribe_for_anonymous": true,
            "history_size": 10, "history_ttl": "60s", "allow_history_for_anonymous": true,
        }] },
    });
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    let free: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    start(settings, free).await.expect("it starts")
}

async fn api(relay: &Relay, method: &str, params: &Value) -> Value {
    let answer = crate::support::post(relay, method, params).await;
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
    serde_json::from_str(body).expect("JSON")
}

/// Connects by HTTP streaming and subscribes to `news:x`.
async fn subscribed(relay: &Relay) -> Asked {
    let (mut stream, connect) = connected(relay).await;
    command(relay, &connect, &json!({"id": 2, "subscribe": {"channel": "news:x"}})).await;
    stream.until("\"subscribe\"").await;
    stream
}

/// Sends a command of the connection that got this reply to its connect command.
async fn command(relay: &Relay, connect: &Value, command: &Value) {
    let (session, node) = (&connect["session"], &connect["node"]);
    let body = json!({ "session": session, "node": node, "data": command.to_string() });
    let sent = Asked::request(relay, "POST /emulation HTTP/1.1", &body.to_string()).await;
    assert_eq!(sent.status(), 204);
}

/// Connects by HTTP streaming; returns the result of the connect command too.
async fn connected(relay: &Relay) -> (Asked, Value) {
    let connect = json!({"id": 1, "connect": {}}).to_string();
    let mut stream = Asked::request(relay, "POST /connection/http_stream HTTP/1.1", &connect).await;
    let text = stream.until("\"node\"").await;
    let line = text.lines().find(|line| line.contains("\"node\"")).expect("a reply");
    let reply: Value = serde_json::from_str(line).expect("JSON");
    (stream, reply["connect"].clone())
}

/// Waits until so many are subscribed.
async fn until_present(relay: &Relay, wanted: u64) {
    let present = async || {
        let stats = api(relay, "presence_stats", &json!({"channel": "news:x"})).await;
        stats["result"]["num_clients"].as_u64().expect("a number")
    };
    let all = async { while present().await != wanted {} };
    timeout(PATIENCE, all).await.expect("they never came to that number");
}

#[tokio::test]
async fn commands_find_their_session_or_are_told_that_it_is_elsewhere() {
    let relay = relay().await;
    for (body, status) in [
        (json!({"node": "another", "session": "x", "data": "{}"}).to_string(), 404),
        ("nonsense".to_owned(), 400),
        ("{\"data\": 1}".to_owned(), 400),
    ] {
        let asked = Asked::request(&relay, "POST /emulation HTTP/1.1", &body).await;
        assert_eq!(asked.status(), status, "{body}");
    }
    relay.stop().await;
}

#[tokio::test]
async fn pages_of_other_sites_are_refused_unless_the_operator_named_them() {
    let relay = relay().await;
    for (origin, status) in [("https://evil.example", 403), ("https://app.example", 204)] {
        let head = format!("OPTIONS /connection/http_stream HTTP/1.1\r\nOrigin: {origin}");
        let asked = Asked::request(&relay, &head, "").await;
        assert_eq!(asked.status(), status);
        let text = String::from_utf8_lossy(&asked.read).into_owned();
        assert_eq!(text.contains(&format!("access-control-allow-origin: {origin}")), status == 204);
    }
    relay.stop().await;
}

#[tokio::test]
async fn who_goes_away_is_subscribed_no_more() {
    let relay = relay().await;
    let (first, second) = (subscribed(&relay).await, subscribed(&relay).await);
    until_present(&relay, 2).await;
    drop(first);
    until_present(&relay, 1).await;
    drop(second);
    until_present(&relay, 0).await;
    relay.stop().await;
}

#[tokio::test]
async fn who_reads_nothing_is_cut_off_and_holds_nobody_up() {
    let relay = relay().await;
    let mut silent = subscribed(&relay).await;
    let mut reading = subscribed(&relay).await;
    let text = "x".repeat(30_000);
    let mut number = 0;
    while api(&relay, "presence_stats", &json!({"channel": "news:x"})).await["result"]["num_clients"]
        == 2
    {
        number += 1;
        let data = json!({ "number": number, "text": text });
        api(&relay, "publish", &json!({ "channel": "news:x", "data": data })).await;
        reading.until(&format!("\"number\":{number},")).await;
        reading.read.clear();
    }
    // What was under way may still be read, and then the connection is over.
    let mut rest = Vec::new();
    let ended = timeout(PATIENCE, silent.socket.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "the connection was kept");
    relay.stop().await;
}

#[tokio::test]
async fn a_relay_that_stops_says_so() {
    let relay = relay().await;
    let mut stream = subscribed(&relay).await;
    relay.stop().await;
    let said = stream.until("\"reconnect\":true").await;
    assert!(said.contains("\"disconnect\"") && said.contains("3001"), "{said}");
}

#[tokio::test]
async fn who_asks_for_bytes_that_are_no_json_is_told_so_and_subscribed_no_more() {
    let relay = relay().await;
    api(&relay, "publish", &json!({"channel": "news:x", "b64data": "/w=="})).await;
    let (mut stream, connect) = connected(&relay).await;
    command(&relay, &connect, &json!({"id": 2, "subscribe": {"channel": "news:x"}})).await;
    until_present(&relay, 1).await;
    let history = json!({"id": 3, "history": {"channel": "news:x", "limit": 1}});
    command(&relay, &connect, &history).await;
    stream.until("\"disconnect\"").await;
    until_present(&relay, 0).await;
    relay.stop().await;
}

#[tokio::test]
async fn an_end_that_the_backend_sets_counts_though_it_is_the_first_or_earlier() {
    let relay = relay().await;
    let (mut stream, connect) = connected(&relay).await;
    let client = &connect["client"];
    // In a hundred years, and then long ago.
    for expire_at in [5_000_000_000_u64, 1] {
        api(&relay, "refresh", &json!({ "client": client, "expire_at": expire_at })).await;
    }
    stream.until("\"disconnect\":{\"code\":3005").await;
    relay.stop().await;
}
