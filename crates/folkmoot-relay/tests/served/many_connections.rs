//! What the server API does to a user reaches all of its connections, whatever comes of it for some.

use crate::proxies::backend;
use crate::support::{Listener, post};
use folkmoot_relay::{Settings, start};
use serde_json::json;

#[tokio::test]
async fn all_connections_of_a_user_are_subscribed_though_the_first_has_no_room() {
    let (backend, _asked) = backend(|_, _| Some(json!({ "result": { "user": "ada" } }))).await;
    let connect = json!({ "enabled": true, "endpoint": format!("http://{backend}/connect") });
    let settings = json!({
        "client": { "channel_limit": 1, "proxy": { "connect": connect } },
        "http_api": { "key": "key" },
        "channel": { "namespaces": [{ "name": "free", "allow_subscribe_for_client": true }] },
    });
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    let free = "127.0.0.1:0".parse().expect("an address");
    let relay = start(settings, free).await.expect("it starts");
    let mut clients = Vec::new();
    for _ in 0..4 {
        let mut client = Listener::open(&relay, &[]).await;
        client.ask(json!({"id": 1, "connect": {}})).await;
        clients.push(client);
    }
    for full in [0, 2] {
        clients[full].ask(json!({"id": 2, "subscribe": {"channel": "free:own"}})).await;
    }
    let asked = json!({ "user": "ada", "channel": "free:all" });
    let answer = post(&relay, "subscribe", &asked).await;
    for (number, client) in clients.iter_mut().enumerate() {
        if [0, 2].contains(&number) {
            // As with Centrifugo: it must not go on without what its backend takes it to have.
            assert_eq!(client.end().await, (3505, "channel limit".to_owned()));
        } else {
            let push = client.message().await;
            assert_eq!(push["push"]["channel"], "free:all", "{push}");
        }
    }
    assert!(answer.contains(r#"{"result":{}}"#), "{answer}");
    relay.stop().await;
}

/// Its code is final: a client that came again would name as many.
#[tokio::test]
async fn a_connection_that_names_more_channels_than_it_may_is_closed_with_the_limits_code() {
    let answer = |_: &str, _: &_| {
        let subs = json!({ "free:a": {}, "free:b": {} });
        Some(json!({ "result": { "user": "ada", "subs": subs } }))
    };
    let (backend, _asked) = backend(answer).await;
    let connect = json!({ "enabled": true, "endpoint": format!("http://{backend}/connect") });
    for limit in [1, 2] {
        let settings = json!({
            "client": { "channel_limit": limit, "proxy": { "connect": connect } },
            "channel": { "namespaces": [{ "name": "free" }] },
        });
        let settings = Settings::from_json(&settings.to_string()).expect("settings");
        let free = "127.0.0.1:0".parse().expect("an address");
        let relay = start(settings, free).await.expect("it starts");
        let mut client = Listener::open(&relay, &[]).await;
        client.send(json!({"id": 1, "connect": {}})).await;
        if limit == 1 {
            assert_eq!(client.end().await, (3505, "channel limit".to_owned()));
        } else {
            let reply = client.message().await;
            assert_eq!(reply["connect"]["subs"].as_object().map(serde_json::Map::len), Some(2));
        }
        relay.stop().await;
    }
}
