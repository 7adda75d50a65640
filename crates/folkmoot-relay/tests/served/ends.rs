//! Ends that are over already: nothing that a backend answers with one is opened or goes on.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::proxies::{backend, connected, relay};
use crate::support::{Listener, post};
use folkmoot_relay::{Settings, start};
use serde_json::{Value, json};
use tokio::time::timeout;

/// Far less than the delay after which what was not renewed ends.
const SOON: Duration = Duration::from_secs(10);

/// Seconds since 1970, so many from now.
fn in_seconds(seconds: i64) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    i64::try_from(now).expect("a number") + seconds
}

#[tokio::test]
async fn who_the_backend_lets_in_until_a_time_that_is_over_connects_and_subscribes_nowhere() {
    let (backend, _asked) = backend(|event, body| {
        let over = json!({ "result": { "user": "ada", "expire_at": in_seconds(-10) } });
        Some(match (event, body["name"] == "early") {
            ("connect", true) => json!({ "result": { "user": "ada" } }),
            _ => over,
        })
    })
    .await;
    let relay = relay(backend).await;
    let mut late = Listener::open(&relay, &[]).await;
    let reply = late.reply(json!({"id": 1, "connect": {}})).await;
    assert_eq!(reply["error"], json!({ "code": 110, "message": "expired" }));
    timeout(SOON, late.end()).await.expect("it goes on");
    let mut early = Listener::open(&relay, &[]).await;
    early.ask(json!({"id": 1, "connect": { "name": "early" }})).await;
    let reply = early.reply(json!({"id": 2, "subscribe": {"channel": "news:x"}})).await;
    assert_eq!(reply["error"], json!({ "code": 110, "message": "expired" }));
    early.ask(json!({"id": 3, "subscribe": {"channel": "free:x"}})).await;
    relay.stop().await;
}

#[tokio::test]
async fn what_the_backend_renews_until_a_time_that_is_over_ends() {
    let (backend, _asked) = backend(|event, body| {
        let soon = match (event, body["name"] == "stays") {
            ("connect", true) => 600,
            ("connect" | "subscribe", _) => 1,
            _ => -10,
        };
        Some(json!({ "result": { "user": "ada", "expire_at": in_seconds(soon) } }))
    })
    .await;
    let relay = relay(backend).await;
    let mut ends = connected(&relay).await;
    assert_eq!(timeout(SOON, ends.end()).await.expect("it goes on").0, 3005);
    let mut stays = Listener::open(&relay, &[]).await;
    stays.ask(json!({"id": 1, "connect": { "name": "stays" }})).await;
    stays.ask(json!({"id": 2, "subscribe": {"channel": "news:x"}})).await;
    let ended = timeout(SOON, stays.message()).await.expect("it goes on");
    assert_eq!(ended["push"]["unsubscribe"]["code"], 2501, "{ended}");
    relay.stop().await;
}

#[tokio::test]
async fn a_refresh_by_the_server_api_until_a_time_that_is_over_ends_the_connection() {
    // Nobody is asked whether it goes on.
    let (backend, _asked) = backend(|_, _| Some(json!({ "result": { "user": "ada" } }))).await;
    let connect = json!({ "enabled": true, "endpoint": format!("http://{backend}/connect") });
    let settings = json!({
        "client": { "proxy": { "connect": connect } }, "http_api": { "key": "key" },
    });
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    let relay = start(settings, "127.0.0.1:0".parse().expect("an address")).await;
    let relay = relay.expect("it starts");
    let mut client = connected(&relay).await;
    let over: Value = json!({ "user": "ada", "expire_at": in_seconds(-10) });
    assert!(post(&relay, "refresh", &over).await.contains(r#""result":{}"#));
    assert_eq!(timeout(SOON, client.end()).await.expect("it goes on").0, 3005);
    relay.stop().await;
}
