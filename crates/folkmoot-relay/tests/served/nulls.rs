//! Fields that a backend has nothing for and writes as `null`, as many languages do: they are as if
//! they were not there, for Centrifugo, and so for the relay.

use crate::proxies::{backend, connected, relay};
use crate::support::{Listener, post};
use folkmoot_relay::{Settings, start};
use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::{Value, json};

/// An object with these fields as `null`, and others.
fn with_nulls(names: &[&str], others: Value) -> Value {
    let mut all: serde_json::Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), Value::Null)).collect();
    let Value::Object(others) = others else { panic!("no object") };
    all.extend(others);
    all.into()
}

#[tokio::test]
async fn what_a_backend_answers_with_nulls_is_an_answer() {
    let (backend, _asked) = backend(|event, body| {
        let fields = ["expire_at", "info", "b64info", "data", "b64data", "meta"];
        let more = ["channels", "subs", "override", "expired", "skip_history"];
        let names = [&fields[..], &more[..]].concat();
        let result = with_nulls(&names, json!({ "user": "ada" }));
        let refused = with_nulls(&["message", "temporary"], json!({ "code": 1000 }));
        Some(match body["data"] == "bad" {
            false => json!({ "result": result, "error": null, "disconnect": null }),
            true if event == "rpc" => json!({ "disconnect": { "code": 4001, "reason": null } }),
            true => json!({ "result": null, "error": refused }),
        })
    })
    .await;
    let relay = relay(backend).await;
    let mut client = connected(&relay).await;
    client.ask(json!({"id": 2, "subscribe": {"channel": "news:x"}})).await;
    client.ask(json!({"id": 3, "publish": {"channel": "news:x", "data": 1}})).await;
    assert_eq!(client.publication().await.1, 1);
    client.ask(json!({"id": 4, "rpc": {"method": "app:x"}})).await;
    let bad = json!({"id": 5, "publish": {"channel": "news:x", "data": "bad"}});
    assert_eq!(client.reply(bad).await["error"]["code"], 1000);
    client.send(json!({"id": 6, "rpc": {"method": "app:x", "data": "bad"}})).await;
    assert_eq!(client.end().await.0, 4001);
    relay.stop().await;
}

#[tokio::test]
async fn tokens_and_calls_with_nulls_are_taken_as_without() {
    let settings = json!({
        "client": { "token": { "hmac_secret_key": "secret" } },
        "http_api": { "key": "key" },
        "channel": { "namespaces": [{
            "name": "news", "history_size": 10, "history_ttl": "60s", "presence": true,
        }] },
    });
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    let relay = start(settings, "127.0.0.1:0".parse().expect("an address")).await;
    let relay = relay.expect("it starts");
    let token = |claims: &Value| {
        encode(&Header::default(), claims, &EncodingKey::from_secret(b"secret")).expect("a token")
    };
    let nothing = ["info", "b64info", "meta", "channels", "subs", "expire_at", "override"];
    let mut client = Listener::open(&relay, &[]).await;
    let own = token(&with_nulls(&nothing, json!({ "sub": "ada", "channel": null })));
    client.ask(json!({ "id": 1, "connect": { "token": own } })).await;
    let own = token(&with_nulls(&nothing, json!({ "sub": "ada", "channel": "news:x" })));
    client.ask(json!({ "id": 2, "subscribe": { "channel": "news:x", "token": own } })).await;
    let content = ["b64data", "skip_history", "delta", "tags", "idempotency_key", "version"];
    let whose = ["client", "session", "whitelist", "label_filter", "all_users", "disconnect"];
    let how = ["expire_at", "b64info", "b64data", "data", "info", "recover_since", "override"];
    let calls = [
        ("publish", with_nulls(&content, json!({ "channel": "news:x", "data": 1 }))),
        ("broadcast", with_nulls(&content, json!({ "channels": ["news:x"], "data": 2 }))),
        ("refresh", with_nulls(&[&whose[..], &how[..]].concat(), json!({ "user": "ada" }))),
        ("batch", json!({ "commands": null, "parallel": null })),
        ("channels", json!({ "pattern": null })),
    ];
    for (method, params) in calls {
        let answer = post(&relay, method, &params).await;
        assert!(!answer.contains("error"), "{method}: {answer}");
    }
    let params = json!({ "user": "ada", "channel": "news:y" });
    let params = with_nulls(&[&whose[..], &how[..]].concat(), params);
    for method in ["subscribe", "unsubscribe", "disconnect"] {
        let answer = post(&relay, method, &params).await;
        assert!(answer.contains(r#"{"result":{}}"#), "{method}: {answer}");
    }
    assert_eq!(client.end().await.0, 3503);
    relay.stop().await;
}

#[tokio::test]
async fn null_is_data_that_a_backend_may_publish() {
    let settings = json!({
        "client": { "allow_anonymous_connect_without_token": true },
        "http_api": { "key": "key" },
        "channel": { "without_namespace": { "allow_subscribe_for_anonymous": true } },
    });
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    let free = "127.0.0.1:0".parse().expect("an address");
    let relay = start(settings, free).await.expect("it starts");
    let mut client = Listener::subscribe(&relay, &["news"]).await;
    let publish = json!({ "channel": "news", "data": null });
    let command = json!({ "publish": publish });
    for (method, params) in [
        ("publish", publish),
        ("broadcast", json!({ "channels": ["news"], "data": null })),
        ("batch", json!({ "commands": [command] })),
    ] {
        let answer = post(&relay, method, &params).await;
        assert!(!answer.contains("error"), "{method}: {answer}");
        assert_eq!(client.publication().await.1, json!(null), "{method}");
    }
    let answer = post(&relay, "publish", &json!({ "channel": "news" })).await;
    assert!(answer.contains("data is required"), "{answer}");
    relay.stop().await;
}
