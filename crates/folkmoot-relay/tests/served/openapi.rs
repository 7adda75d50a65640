//! The OpenAPI document says what the server API does: each method is called over a real socket with
//! what the document says of its request, and answers with what it says of its response.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use crate::support::{Listener, get, post, post_with};
use folkmoot_relay::{Relay, Settings, start};
use serde_json::{Value, json};

async fn relay() -> Relay {
    let settings = json!({
        "client": { "allow_anonymous_connect_without_token": true },
        "http_api": { "key": "key" },
        "channel": { "namespaces": [{
            "name": "news", "allow_subscribe_for_anonymous": true, "presence": true,
            "allow_publish_for_anonymous": true, "history_size": 10, "history_ttl": "60s",
        }] },
    });
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    let free: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    start(settings, free).await.expect("it starts")
}

fn body(answer: &str) -> Value {
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    serde_json::from_str(body).expect("JSON")
}

/// The document, and which properties of its schemas were seen.
struct Document {
    document: Value,
    seen: BTreeSet<String>,
}

impl Document {
    /// Checks that `value` has what `schema` requires and nothing that it does not know.
    fn check(&mut self, schema: &Value, value: &Value, path: &str) {
        if let Some(reference) = schema["$ref"].as_str() {
            let name = reference.rsplit('/').next().expect("a reference names a schema");
            let schema = self.document["components"]["schemas"][name].clone();
            assert!(schema.is_object(), "{path}: {name} is no schema");
            return self.check(&schema, value, name);
        }
        let is_of_type = match schema["type"].as_str() {
            Some("object") => value.is_object(),
            Some("array") => value.is_array(),
            Some("integer") => value.is_i64() || value.is_u64(),
            Some("boolean") => value.is_boolean(),
            Some("string") => value.is_string(),
            Some(kind) => panic!("{path}: {kind} is no type that is used here"),
            // Any JSON.
            None => return,
        };
        assert!(is_of_type, "{path}: {value} is not {}", schema["type"]);
        for item in value.as_array().into_iter().flatten() {
            self.check(&schema["items"], item, path);
        }
        for required in schema["required"].as_array().into_iter().flatten() {
            let name = required.as_str().expect("a name");
            assert!(value.get(name).is_some(), "{path}: {name} is missing in {value}");
        }
        for (name, part) in value.as_object().into_iter().flatten() {
            let property = &schema["properties"][name];
            let is_map = property.is_null();
            let known = if is_map { &schema["additionalProperties"] } else { property };
            assert!(!known.is_null(), "{path}: {name} is not described");
            let inner = format!("{path}.{name}");
            self.check(known, part, if is_map { path } else { &inner });
            self.seen.insert(inner);
        }
    }

    /// The properties of all schemas.
    fn properties(&self) -> BTreeSet<String> {
        let schemas = self.document["components"]["schemas"].as_object().expect("schemas");
        let properties = schemas.iter().flat_map(|(name, schema)| {
            let properties = schema["properties"].as_object().into_iter().flatten();
            properties.map(move |(property, _)| format!("{name}.{property}"))
        });
        properties.collect()
    }
}

/// `base` with the fields of `more`.
fn with(base: &Value, more: &Value) -> Value {
    let mut base = base.clone();
    let fields = base.as_object_mut().expect("an object");
    fields.extend(more.as_object().expect("an object").clone());
    base
}

/// One command of each kind for a batch; the last is refused.
fn commands(client: &str) -> Value {
    let news = json!({ "channel": "news:x" });
    json!([
        { "publish": with(&news, &json!({ "data": 1 })) },
        { "broadcast": { "channels": ["news:x"], "data": 1 } },
        { "subscribe": { "channel": "news:z", "client": client } },
        { "unsubscribe": { "channel": "news:z", "client": client } },
        { "disconnect": { "user": "nobody" } },
        { "refresh": { "user": "nobody" } },
        { "presence": news }, { "presence_stats": news }, { "history": news },
        { "history_remove": { "channel": "news:other" } }, { "channels": {} }, { "info": {} },
        { "rpc": { "method": "x" } },
        { "publish": { "channel": "nowhere:x", "data": 1 } },
    ])
}

/// Calls with all fields of each method, but for those that end what the others need.
fn calls(client: &str, epoch: &Value) -> Vec<(&'static str, Value)> {
    let on = json!({ "value": true });
    let overrides = json!({
        "presence": on, "join_leave": on, "force_push_join_leave": on, "force_positioning": on,
        "force_recovery": on,
    });
    let position = json!({ "offset": 1, "epoch": epoch });
    let news = json!({ "channel": "news:x" });
    let content = json!({
        "skip_history": false, "tags": { "kind": "a" }, "idempotency_key": "k", "delta": true, "version": 1,
        "version_epoch": "a",
    });
    vec![
        ("publish", with(&with(&news, &json!({ "data": { "a": 1 } })), &content)),
        ("publish", with(&news, &json!({ "b64data": "Mg==" }))),
        ("broadcast", with(&json!({ "channels": ["news:x", "nowhere:x"], "data": 3 }), &content)),
        ("broadcast", json!({ "channels": ["news:y"], "b64data": "Mg==" })),
        (
            "subscribe",
            json!({
                "channel": "news:y", "user": "", "client": client, "info": { "b": 1 },
                "data": { "c": 1 }, "recover_since": position, "expire_at": 5_000_000_000_u64,
                "override": overrides,
            }),
        ),
        (
            "subscribe",
            json!({ "channel": "news:z", "client": client, "b64info": "MQ==", "b64data": "MQ==" }),
        ),
        ("subscribe", json!({ "channel": "news:z", "session": "of nobody" })),
        ("rpc", json!({ "method": "x", "params": { "a": 1 } })),
        ("presence_stats", news.clone()),
        ("history", with(&news, &json!({ "limit": 10, "since": position, "reverse": false }))),
        ("history", with(&news, &json!({ "limit": 10 }))),
        ("channels", json!({ "pattern": "news:*" })),
        ("info", json!({})),
        ("batch", json!({ "commands": commands(client), "parallel": false })),
        ("history_remove", news),
        (
            "refresh",
            json!({
                "user": "", "client": client, "session": "", "expired": false,
                "expire_at": 5_000_000_000_u64, "info": { "name": "Ada" },
            }),
        ),
        ("presence", json!({ "channel": "news:y" })),
        (
            "unsubscribe",
            json!({ "channel": "news:y", "user": "", "client": client, "session": "" }),
        ),
        (
            "disconnect",
            json!({
                "user": "", "client": client, "session": "", "whitelist": ["other"],
                "disconnect": { "code": 4000, "reason": "enough" },
            }),
        ),
        // Refused.
        ("publish", json!({ "channel": "nowhere:x", "data": 1 })),
        ("batch", json!({ "commands": vec![json!({}); 100_001] })),
    ]
}

#[tokio::test]
async fn each_method_takes_and_answers_what_its_document_says() {
    let relay = relay().await;
    let document = body(&get(&relay, "/api/openapi.json", "").await);
    let mut client = Listener::open(&relay, &[]).await;
    let connected = client.ask(json!({ "id": 1, "connect": {} })).await;
    client.ask(json!({ "id": 2, "subscribe": { "channel": "news:x" } })).await;
    client.ask(json!({ "id": 3, "publish": { "channel": "news:x", "data": 0 } })).await;
    let asked = json!({ "channel": "news:x" });
    let epoch = body(&post(&relay, "history", &asked).await)["result"]["epoch"].clone();
    let id = connected["connect"]["client"].as_str().expect("an id");
    let mut described = Document { document: document.clone(), seen: BTreeSet::new() };
    let mut called = BTreeSet::new();
    for (method, params) in calls(id, &epoch) {
        let described_method = &document["paths"][format!("/api/{method}")]["post"];
        let schema = |part: &Value| part["content"]["application/json"]["schema"].clone();
        let (request, responses) =
            (schema(&described_method["requestBody"]), &described_method["responses"]);
        if params["commands"].as_array().is_none_or(|commands| commands.len() < 100_000) {
            described.check(&request, &params, method);
        }
        let answer = body(&post(&relay, method, &params).await);
        described.check(&schema(&responses["200"]), &answer, method);
        // The same by the status; what was done is done again, which harms nothing.
        let mode = "X-Centrifugo-Error-Mode: transport\r\n";
        let answer = post_with(&relay, "key", method, &params, mode).await;
        if !answer.starts_with("HTTP/1.1 200") {
            described.check(&schema(&responses["default"]), &body(&answer), method);
        }
        called.insert(format!("/api/{method}"));
    }
    let paths = document["paths"].as_object().expect("paths").keys().cloned().collect();
    assert_eq!(called, paths);
    let unseen: Vec<_> = described.properties().difference(&described.seen).cloned().collect();
    assert!(unseen.is_empty(), "{unseen:?}");
    relay.stop().await;
}
