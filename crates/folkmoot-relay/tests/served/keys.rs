//! Keys of the server API that may do a part of it, over real sockets.

use std::net::SocketAddr;

use crate::support::listening::Response;
use crate::support::{Listener, post_as};
use folkmoot_relay::{Relay, Settings, start};
use serde_json::{Value, json};

fn settings(keys: &Value) -> Settings {
    let settings = json!({
        "client": { "allow_anonymous_connect_without_token": true },
        "http_api": { "key": "all", "keys": keys },
        "channel": {
            "without_namespace": { "allow_subscribe_for_anonymous": true },
            "namespaces": [
                { "name": "orders", "allow_subscribe_for_anonymous": true, "presence": true,
                  "history_size": 10, "history_ttl": "60s" },
                { "name": "staff", "allow_subscribe_for_anonymous": true, "presence": true },
            ],
        },
    });
    Settings::from_json(&settings.to_string()).expect("settings")
}

async fn relay(keys: Value) -> Relay {
    let free: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    start(settings(&keys), free).await.expect("it starts")
}

/// Calls a method; the body of the answer, whose status is 200.
async fn call(relay: &Relay, key: &str, method: &str, params: Value) -> Value {
    let answer = post_as(relay, key, method, &params).await;
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    serde_json::from_str(body).expect("JSON")
}

#[track_caller]
fn assert_refused(answer: &Value, word: &str) {
    assert_eq!(answer["error"]["code"], 103, "{answer}");
    let message = answer["error"]["message"].as_str().expect("a text");
    assert!(message.contains("`shop`") && message.contains(word), "{answer}");
}

#[tokio::test]
async fn a_key_is_read_behind_the_name_of_its_scheme_in_any_case() {
    let relay = relay(json!([])).await;
    for (value, status) in [
        ("apikey all", 200),
        ("Apikey all", 200),
        ("APIKEY all", 200),
        ("apikey  all", 200),
        ("apikey ALL", 401),
        ("Bearer all", 401),
        ("all", 401),
    ] {
        let head = format!("POST /api/info HTTP/1.1\r\nAuthorization: {value}");
        assert_eq!(Response::to(&relay, &head, "{}").await.status, status, "{value}");
    }
    relay.stop().await;
}

#[tokio::test]
async fn a_key_reaches_its_namespaces_only() {
    let shop = json!([{ "name": "shop", "key": "s", "namespaces": ["orders"] }]);
    let relay = relay(shop).await;
    let mut listener = Listener::subscribe(&relay, &["orders:1", "staff:1", "plain"]).await;
    for channel in ["staff:1", "plain", "$staff:1"] {
        let message = json!({ "channel": channel, "data": 1 });
        for method in ["publish", "presence", "history", "history_remove", "subscribe"] {
            let refused = call(&relay, "s", method, message.clone()).await;
            assert_refused(&refused, if channel == "plain" { "without" } else { "`staff`" });
        }
    }
    let both = json!({ "channels": ["staff:1", "orders:1"], "data": "to both" });
    let outcome = call(&relay, "s", "broadcast", both.clone()).await;
    assert_refused(&outcome["result"]["responses"][0], "`staff`");
    assert_eq!(outcome["result"]["responses"][1]["result"]["offset"], 1, "{outcome}");
    // A batch is no way round.
    let batch = json!({ "commands": [
        { "publish": { "channel": "staff:1", "data": 2 } }, { "broadcast": both },
        { "disconnect": { "user": "anybody" } },
    ] });
    for parallel in [false, true] {
        let mut batch = batch.clone();
        batch["parallel"] = json!(parallel);
        let replies = call(&relay, "s", "batch", batch).await;
        assert_refused(&replies["replies"][0], "`staff`");
        let responses = &replies["replies"][1]["broadcast"]["responses"];
        assert_refused(&responses[0], "`staff`");
        assert_refused(&replies["replies"][2], "`disconnect`");
    }
    let listed = call(&relay, "s", "channels", json!({})).await;
    let listed = listed["result"]["channels"].as_object().expect("channels");
    assert_eq!(listed.keys().collect::<Vec<_>>(), ["orders:1"]);
    // What names no channel is for all of them.
    for method in ["disconnect", "refresh", "info"] {
        let refused = call(&relay, "s", method, json!({ "user": "anybody" })).await;
        assert_refused(&refused, &format!("`{method}`"));
    }
    // The key without a limit does as before.
    let message = json!({ "channel": "staff:1", "data": "for all" });
    assert!(call(&relay, "all", "publish", message).await["error"].is_null());
    for _ in 0..3 {
        assert_eq!(listener.publication().await, ("orders:1".to_owned(), json!("to both")));
    }
    let (channel, data) = listener.publication().await;
    assert_eq!((channel.as_str(), data), ("staff:1", json!("for all")), "nothing came before it");
    relay.stop().await;
}

#[tokio::test]
async fn a_key_calls_its_methods_only() {
    let keys = json!([
        { "name": "shop", "key": "s", "methods": ["publish", "info"] },
        { "name": "none", "key": "n", "methods": [] },
    ]);
    let relay = relay(keys).await;
    let message = json!({ "channel": "staff:1", "data": 1 });
    assert!(call(&relay, "s", "publish", message.clone()).await["error"].is_null());
    assert!(call(&relay, "s", "info", json!({})).await["error"].is_null());
    for method in ["broadcast", "presence", "channels", "batch", "disconnect", "nothing"] {
        assert_refused(&call(&relay, "s", method, message.clone()).await, &format!("`{method}`"));
    }
    assert_eq!(call(&relay, "n", "publish", message.clone()).await["error"]["code"], 103);
    for wrong in ["", "x", "ss", "al"] {
        let answer = post_as(&relay, wrong, "publish", &message).await;
        assert!(answer.starts_with("HTTP/1.1 401"), "{wrong}: {answer}");
    }
    relay.stop().await;
}

#[tokio::test]
async fn a_key_that_makes_no_sense_is_named_at_the_start() {
    let free: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    for (key, word) in [
        (json!({ "name": "shop", "key": "" }), "required"),
        (json!({ "name": "", "key": "s" }), "required"),
        (json!({ "name": "shop", "key": "all" }), "twice"),
        (json!({ "name": "shop", "key": "s", "methods": ["publishes"] }), "`publishes`"),
        (json!({ "name": "shop", "key": "s", "namespaces": ["order"] }), "`order`"),
    ] {
        let error = start(settings(&json!([key])), free).await.expect_err("it starts").to_string();
        assert!(error.contains("http_api.keys") && error.contains(word), "{error}");
    }
}
