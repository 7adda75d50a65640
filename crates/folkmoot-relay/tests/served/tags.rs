//! Subscribers that want only what is tagged as they say, over real sockets.

use std::net::SocketAddr;

use crate::support::Listener;
use folkmoot_relay::{Relay, Settings, start};
use serde_json::{Value, json};

async fn relay() -> Relay {
    let settings = json!({
        "client": { "allow_anonymous_connect_without_token": true },
        "http_api": { "key": "key" },
        "channel": {
            "without_namespace": { "allow_subscribe_for_anonymous": true },
            "namespaces": [{
                "name": "news", "allow_subscribe_for_anonymous": true, "allow_tags_filter": true,
            }],
        },
    });
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    let free: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    start(settings, free).await.expect("it starts")
}

fn subscribe(id: u32, channel: &str, filter: &Value) -> Value {
    json!({ "id": id, "subscribe": { "channel": channel, "tf": filter } })
}

#[tokio::test]
async fn a_subscriber_hears_what_its_filter_lets_through_and_others_hear_all() {
    let relay = relay().await;
    let mut all = Listener::subscribe(&relay, &["news:x"]).await;
    let mut some = Listener::subscribe(&relay, &[]).await;
    let filter = json!({ "op": "and", "nodes": [
        { "key": "city", "cmp": "in", "vals": ["Oslo", "Bergen"] },
        { "op": "not", "nodes": [{ "key": "degrees", "cmp": "lt", "val": "10" }] },
    ] });
    some.ask(subscribe(2, "news:x", &filter)).await;
    for (number, tags) in (1..).zip([
        json!({ "city": "Oslo", "degrees": "9.5" }),
        json!({ "city": "Oslo", "degrees": "10.5" }),
        json!({ "city": "Rome", "degrees": "30" }),
        json!({}),
        json!({ "city": "Bergen" }),
    ]) {
        let params = json!({ "channel": "news:x", "data": number, "tags": tags });
        crate::support::post(&relay, "publish", &params).await;
    }
    for number in 1..=5 {
        assert_eq!(all.publication().await.1, number);
    }
    assert_eq!((some.publication().await.1, some.publication().await.1), (json!(2), json!(5)));
    relay.stop().await;
}

#[tokio::test]
async fn a_filter_that_is_none_or_not_allowed_is_a_bad_request_and_subscribes_nobody() {
    let relay = relay().await;
    let mut client = Listener::subscribe(&relay, &[]).await;
    let fine = json!({ "key": "city", "cmp": "ex" });
    let deep = (0..40).fold(fine.clone(), |node, _| json!({ "op": "not", "nodes": [node] }));
    for (channel, filter, word) in [
        ("plain", &fine, "allow_tags_filter"),
        ("news:x", &json!({ "op": "nand", "nodes": [fine] }), "nand"),
        ("news:x", &json!({ "key": "city", "cmp": "like", "val": "O" }), "like"),
        ("news:x", &json!({}), "cmp"),
        ("news:x", &deep, "deep"),
    ] {
        let error = client.reply(subscribe(2, channel, filter)).await["error"].clone();
        assert_eq!(error["code"], 107, "{filter}");
        assert!(error["message"].as_str().expect("a text").contains(word), "{error}");
    }
    client.ask(subscribe(3, "news:x", &fine)).await;
    relay.stop().await;
}
