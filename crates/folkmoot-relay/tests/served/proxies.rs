//! A backend is asked over HTTP about what clients do, and its answers count; one that hangs holds
//! up only who waits for it.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::support::Listener;
use axum::Json;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use folkmoot_relay::{Relay, Settings, start};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// What the backend was asked: about what, with which headers, and the body.
pub(crate) type Asked = (String, HeaderMap, Value);
type Answer = Arc<dyn Fn(&str, &Value) -> Option<Value> + Send + Sync>;

/// A backend on an address of its own; without an answer it hangs.
pub(crate) async fn backend(
    answer: impl Fn(&str, &Value) -> Option<Value> + Send + Sync + 'static,
) -> (SocketAddr, mpsc::UnboundedReceiver<Asked>) {
    let (asked, asking) = mpsc::unbounded_channel();
    let state: (Answer, mpsc::UnboundedSender<Asked>) = (Arc::new(answer), asked);
    let app = Router::new().route("/{event}", post(reply)).with_state(state);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("it listens");
    tokio::spawn(async { axum::serve(listener, app).await });
    (address, asking)
}

async fn reply(
    State((answer, asked)): State<(Answer, mpsc::UnboundedSender<Asked>)>,
    Path(event): Path<String>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let answer = answer(&event, &body);
    let _ = asked.send((event, headers, body));
    match answer {
        Some(Value::Number(status)) => {
            let status = status.as_u64().and_then(|status| u16::try_from(status).ok());
            StatusCode::from_u16(status.expect("a status")).expect("a status").into_response()
        }
        Some(answer) => Json(answer).into_response(),
        None => std::future::pending().await,
    }
}

pub(crate) async fn relay(backend: SocketAddr) -> Relay {
    let proxy = |event: &str| {
        json!({
            "enabled": true, "endpoint": format!("http://{backend}/{event}"), "timeout": "1s",
            "http_headers": ["Cookie"], "emulated_headers": ["Authorization"],
            "http": { "static_headers": { "X-Relay": "folkmoot" } },
            "include_connection_meta": event != "publish",
        })
    };
    let settings = json!({
        "client": {
            "proxy": { "connect": proxy("connect"), "refresh": proxy("refresh") },
        },
        "http_api": { "key": "key" },
        "channel": {
            "proxy": {
                "subscribe": proxy("subscribe"), "publish": proxy("publish"),
                "sub_refresh": proxy("sub_refresh"),
            },
            "namespaces": [
                { "name": "news", "subscribe_proxy_enabled": true, "publish_proxy_enabled": true,
                  "sub_refresh_proxy_enabled": true, "presence": true },
                { "name": "free", "allow_subscribe_for_client": true },
            ],
        },
        "rpc": { "proxy": proxy("rpc"), "namespaces": [{ "name": "app", "proxy_enabled": true }] },
    });
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    start(settings, "127.0.0.1:0".parse().expect("an address")).await.expect("it starts")
}

/// Answers that let everybody do everything.
fn friendly(event: &str, body: &Value) -> Option<Value> {
    Some(match event {
        "connect" => json!({ "result": { "user": "ada", "data": { "hello": body["data"] } } }),
        "rpc" => json!({ "result": { "data": { "was": body["data"], "by": body["user"] } } }),
        _ => json!({ "result": {} }),
    })
}

pub(crate) async fn connected(relay: &Relay) -> Listener {
    let mut client = Listener::open(relay, &[]).await;
    client.ask(json!({"id": 1, "connect": {}})).await;
    client
}

#[tokio::test]
async fn the_backend_says_who_connects_and_gets_the_headers_that_are_listed_and_no_others() {
    let (backend, mut asked) = backend(friendly).await;
    let relay = relay(backend).await;
    let headers = [("cookie", "session=1"), ("x-secret", "no"), ("authorization", "of the wire")];
    let mut client = Listener::open(&relay, &headers).await;
    let said = json!({ "Authorization": "Bearer 7", "X-Secret": "no", "X-Relay": "forged" });
    let connect = json!({ "data": { "from": "here" }, "name": "js", "headers": said });
    let reply = client.ask(json!({"id": 1, "connect": connect})).await;
    assert_eq!(reply["connect"]["data"], json!({ "hello": { "from": "here" } }));
    let (event, headers, body) = asked.recv().await.expect("it was asked");
    assert_eq!(event, "connect");
    let client_id = reply["connect"]["client"].clone();
    let wanted = json!({
        "client": client_id, "transport": "websocket", "protocol": "json", "encoding": "json",
        "name": "js", "data": { "from": "here" },
    });
    assert_eq!(body, wanted);
    assert_eq!(headers["cookie"], "session=1");
    assert_eq!(headers["authorization"], "Bearer 7");
    assert_eq!(headers["x-relay"], "folkmoot");
    assert!(!headers.contains_key("x-secret"));
    relay.stop().await;
}

#[tokio::test]
async fn the_backend_decides_subscriptions_publications_and_calls() {
    let (backend, mut asked) = backend(|event, body| match (event, body["channel"].as_str()) {
        ("subscribe", Some("news:closed")) => {
            Some(json!({ "error": { "code": 403, "message": "no" } }))
        }
        ("subscribe", _) => Some(json!({ "result": { "data": { "welcome": true } } })),
        ("publish", _) if body["data"] == "bad" => {
            Some(json!({ "error": { "code": 1000, "message": "language" } }))
        }
        ("publish", _) => Some(json!({ "result": { "data": { "cleaned": body["data"] } } })),
        _ => friendly(event, body),
    })
    .await;
    let relay = relay(backend).await;
    let mut client = connected(&relay).await;
    let closed = client.reply(json!({"id": 2, "subscribe": {"channel": "news:closed"}})).await;
    assert_eq!(closed["error"], json!({ "code": 403, "message": "no" }));
    let open = client.ask(json!({"id": 3, "subscribe": {"channel": "news:open"}})).await;
    assert_eq!(open["subscribe"]["data"], json!({ "welcome": true }));
    let bad = json!({"id": 4, "publish": {"channel": "news:open", "data": "bad"}});
    assert_eq!(client.reply(bad).await["error"]["code"], 1000);
    client.ask(json!({"id": 5, "publish": {"channel": "news:open", "data": "good"}})).await;
    assert_eq!(client.publication().await.1, json!({ "cleaned": "good" }));
    let call = json!({"id": 6, "rpc": {"method": "app:echo", "data": [1]}});
    assert_eq!(client.ask(call).await["rpc"]["data"], json!({ "was": [1], "by": "ada" }));
    // A namespace of calls that no backend answers.
    let call = json!({"id": 7, "rpc": {"method": "echo", "data": [1]}});
    assert_eq!(client.reply(call).await["error"]["code"], 104);
    let mut events = Vec::new();
    while let Ok((event, _, body)) = asked.try_recv() {
        assert!(event == "connect" || body["user"] == "ada", "{body}");
        events.push(event);
    }
    let wanted = ["connect", "subscribe", "subscribe", "publish", "publish", "rpc"];
    assert_eq!(events, wanted);
    relay.stop().await;
}

#[tokio::test]
async fn what_the_backend_says_for_itself_comes_back_where_it_wants_it_and_its_client_never_sees_it()
 {
    let (backend, mut asked) = backend(|event, body| {
        Some(match (event, body["meta"]["shop"].as_u64()) {
            ("connect", _) => {
                let meta = json!({ "shop": 7 });
                json!({ "result": { "user": "ada", "meta": meta, "expire_at": 4_000_000_000_u64 } })
            }
            ("subscribe", Some(7)) => {
                json!({ "result": { "override": { "presence": { "value": false } } } })
            }
            _ => json!({ "result": {} }),
        })
    })
    .await;
    let relay = relay(backend).await;
    let mut client = Listener::open(&relay, &[]).await;
    let reply = client.ask(json!({"id": 1, "connect": {}})).await;
    assert!(!reply.to_string().contains("shop"), "{reply}");
    client.ask(json!({"id": 2, "subscribe": {"channel": "news:x"}})).await;
    client.ask(json!({"id": 3, "publish": {"channel": "news:x", "data": 1}})).await;
    client.ask(json!({"id": 4, "rpc": {"method": "app:x"}})).await;
    let mut metas = Vec::new();
    while let Ok((event, _, body)) = asked.try_recv() {
        metas.push((event, body["meta"]["shop"].clone()));
    }
    let wanted = [
        ("connect", json!(null)),
        ("subscribe", json!(7)),
        ("publish", json!(null)),
        ("rpc", json!(7)),
    ];
    assert_eq!(metas, wanted.map(|(event, shop)| (event.to_owned(), shop)));
    // What it set otherwise for this subscription holds: nobody sees it there.
    let presence = crate::support::post(&relay, "presence", &json!({ "channel": "news:x" })).await;
    assert!(presence.contains(r#""presence":{}"#), "{presence}");
    relay.stop().await;
}

#[tokio::test]
async fn a_disconnect_of_the_backend_ends_the_connection_with_its_code_and_reason() {
    let (backend, _asked) = backend(|event, body| match event {
        "connect" if body["name"] == "stranger" => {
            Some(json!({ "disconnect": { "code": 4501, "reason": "unauthorized" } }))
        }
        "rpc" => Some(json!({ "disconnect": { "code": 4001, "reason": "come back" } })),
        _ => friendly(event, body),
    })
    .await;
    let relay = relay(backend).await;
    let mut stranger = Listener::open(&relay, &[]).await;
    stranger.send(json!({"id": 1, "connect": {"name": "stranger"}})).await;
    assert_eq!(stranger.end().await, (4501, "unauthorized".to_owned()));
    let mut client = connected(&relay).await;
    client.send(json!({"id": 2, "rpc": {"method": "app:leave"}})).await;
    assert_eq!(client.end().await, (4001, "come back".to_owned()));
    relay.stop().await;
}

#[tokio::test]
async fn a_backend_that_hangs_or_fails_is_a_temporary_error_and_holds_nobody_else_up() {
    let (backend, mut asked) = backend(|event, body| match (event, body["method"].as_str()) {
        ("rpc", Some("app:hang")) => None,
        ("rpc", Some("app:fail")) => Some(json!(500)),
        ("rpc", Some("app:nonsense")) => Some(json!("nonsense")),
        _ => friendly(event, body),
    })
    .await;
    let relay = relay(backend).await;
    let (mut waiting, mut other) = (connected(&relay).await, connected(&relay).await);
    waiting.send(json!({"id": 2, "rpc": {"method": "app:hang"}})).await;
    while asked.recv().await.expect("it is asked").2["method"] != "app:hang" {}
    // The same connection and others go on while it hangs.
    waiting.ask(json!({"id": 3, "subscribe": {"channel": "free:x"}})).await;
    other.ask(json!({"id": 2, "rpc": {"method": "app:echo"}})).await;
    assert_eq!(
        waiting.message().await,
        json!({"id": 2, "error": {
            "code": 100, "message": "internal server error", "temporary": true,
        }})
    );
    for method in ["app:fail", "app:nonsense"] {
        let reply = other.reply(json!({"id": 3, "rpc": {"method": method}})).await;
        assert_eq!(reply["error"]["code"], 100);
    }
    let page = crate::support::get(&relay, "/metrics", "").await;
    assert!(page.contains("folkmoot_relay_proxy_errors_total{event=\"rpc\"} 3"), "{page}");
    relay.stop().await;
}

#[tokio::test]
async fn the_backend_renews_what_expires_or_ends_it() {
    let now = || {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.expect("after 1970").as_secs()
    };
    let (backend, mut asked) = backend(move |event, body| {
        Some(match (event, body["channel"].as_str()) {
            ("connect", _) => json!({ "result": { "user": "ada", "expire_at": now() + 1 } }),
            ("subscribe", _) => json!({ "result": { "expire_at": now() + 1 } }),
            ("sub_refresh", Some("news:short")) => json!({ "result": { "expired": true } }),
            ("sub_refresh" | "refresh", _) => json!({ "result": { "expire_at": now() + 600 } }),
            _ => return None,
        })
    })
    .await;
    let relay = relay(backend).await;
    let mut client = Listener::open(&relay, &[]).await;
    let reply = client.ask(json!({"id": 1, "connect": {}})).await;
    assert!(reply["connect"]["expires"].is_null(), "the client would ask for more time: {reply}");
    client.ask(json!({"id": 2, "subscribe": {"channel": "news:long"}})).await;
    client.ask(json!({"id": 3, "subscribe": {"channel": "news:short"}})).await;
    let ended = client.message().await;
    assert_eq!(ended["push"]["unsubscribe"]["code"], 2501);
    assert_eq!(ended["push"]["channel"], "news:short");
    let mut renewed = 0;
    while renewed < 3 {
        let (event, _, _) = asked.recv().await.expect("it is asked");
        renewed += usize::from(event == "refresh" || event == "sub_refresh");
    }
    crate::support::post(&relay, "publish", &json!({ "channel": "news:long", "data": 1 })).await;
    assert_eq!(client.publication().await, ("news:long".to_owned(), json!(1)));
    relay.stop().await;
}

#[tokio::test]
async fn who_the_backend_says_nothing_of_does_not_connect() {
    let (backend, _asked) = backend(|_, _| Some(json!({}))).await;
    let relay = relay(backend).await;
    let mut stranger = Listener::open(&relay, &[]).await;
    stranger.send(json!({"id": 1, "connect": {}})).await;
    assert_eq!(stranger.end().await.0, 3501);
    relay.stop().await;
}

#[tokio::test]
async fn an_answer_with_an_end_before_all_others_opens_nothing() {
    let (backend, _asked) = backend(|event, body| {
        Some(match (event, body["data"]["may"].as_bool()) {
            ("connect", Some(true)) => json!({ "result": { "user": "ada" } }),
            _ => json!({ "result": { "user": "ada", "expire_at": -1 } }),
        })
    })
    .await;
    let relay = relay(backend).await;
    let mut client = Listener::open(&relay, &[]).await;
    let reply = client.reply(json!({"id": 1, "connect": {}})).await;
    assert_eq!(reply["error"]["code"], 100, "{reply}");
    let mut client = Listener::open(&relay, &[]).await;
    client.ask(json!({"id": 1, "connect": { "data": { "may": true } }})).await;
    let reply = client.reply(json!({"id": 2, "subscribe": {"channel": "news:x"}})).await;
    assert_eq!(reply["error"]["code"], 100, "{reply}");
    relay.stop().await;
}

#[tokio::test]
async fn an_answer_without_an_end_ends_no_subscription_and_says_something_else_of_its_user() {
    let in_seconds = |seconds: u64| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.expect("after 1970").as_secs() + seconds
    };
    let (backend, _asked) = backend(move |event, body| {
        let soon = in_seconds(1);
        Some(match (event, body["channel"].as_str()) {
            ("connect", _) => json!({ "result": { "user": "ada", "expire_at": soon } }),
            ("subscribe", _) => json!({ "result": { "expire_at": soon } }),
            ("sub_refresh", Some("news:silent")) => json!({}),
            ("sub_refresh", Some("news:told")) => {
                json!({ "result": { "expire_at": in_seconds(600), "info": "of this channel" } })
            }
            ("sub_refresh", _) => json!({ "result": {} }),
            _ => json!({ "result": { "expire_at": in_seconds(600), "info": "renewed" } }),
        })
    })
    .await;
    let relay = relay(backend).await;
    let mut client = connected(&relay).await;
    client.ask(json!({"id": 2, "subscribe": {"channel": "news:endless"}})).await;
    client.ask(json!({"id": 3, "subscribe": {"channel": "news:silent"}})).await;
    let ended = client.message().await;
    assert_eq!(ended["push"]["unsubscribe"]["code"], 2501);
    assert_eq!(ended["push"]["channel"], "news:silent");
    let seen = json!({ "channel": "news:endless" });
    while !crate::support::post(&relay, "presence", &seen).await.contains("renewed") {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    // What is said of a user in one channel is seen there, beside what is said everywhere.
    client.ask(json!({"id": 4, "subscribe": {"channel": "news:told"}})).await;
    let told = json!({ "channel": "news:told" });
    let shown = loop {
        let presence = crate::support::post(&relay, "presence", &told).await;
        if presence.contains("chan_info") {
            break presence;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    assert!(shown.contains(r#""chan_info":"of this channel""#), "{shown}");
    assert!(shown.contains(r#""conn_info":"renewed""#), "{shown}");
    // Longer than until it is asked again, had it the end that it had.
    tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
    let message = json!({ "channel": "news:endless", "data": 1 });
    crate::support::post(&relay, "publish", &message).await;
    assert_eq!(client.publication().await, ("news:endless".to_owned(), json!(1)));
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_a_client_publishes_comes_in_its_order_though_its_backend_takes_longer_for_the_first()
{
    let (backend, _asked) = backend(|event, body| {
        if event == "publish" && body["data"] == 1 {
            std::thread::sleep(std::time::Duration::from_millis(300));
        }
        friendly(event, body)
    })
    .await;
    let relay = relay(backend).await;
    let mut client = connected(&relay).await;
    client.ask(json!({"id": 2, "subscribe": {"channel": "news:x"}})).await;
    for number in 1..=3 {
        let publish = json!({ "channel": "news:x", "data": number });
        client.send(json!({ "id": 10 + number, "publish": publish })).await;
    }
    for number in 1..=3 {
        assert_eq!(client.publication().await.1, json!(number));
    }
    relay.stop().await;
}

#[tokio::test]
async fn settings_of_a_proxy_that_mean_nothing_are_refused_by_name() {
    let connect = |endpoint: &str| json!({ "client": { "proxy": { "connect": { "enabled": true, "endpoint": endpoint } } } });
    let enabled = json!({ "name": "a", "subscribe_proxy_enabled": true });
    for (settings, word) in [
        (connect(""), "proxy of connect"),
        (connect("grpc://127.0.0.1"), "http://"),
        (json!({ "channel": { "namespaces": [enabled] } }), "channel.proxy.subscribe.endpoint"),
    ] {
        let settings = Settings::from_json(&settings.to_string()).expect("settings");
        let refused = start(settings, "127.0.0.1:0".parse().unwrap()).await.unwrap_err();
        assert!(refused.to_string().contains(word), "{refused}");
    }
}
