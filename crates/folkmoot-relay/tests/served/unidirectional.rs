//! Clients that only listen, over real sockets: by server-sent events, HTTP streaming and WebSocket.

use std::net::SocketAddr;
use std::time::Duration;

use crate::support::listening::{Response, Silent, TRANSPORTS, Transport};
use folkmoot_relay::{Relay, Settings, start};
use futures_util::future::join_all;
use futures_util::{SinkExt, StreamExt};
use jsonwebtoken::{EncodingKey, Header};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

/// Only turns a promise that is never kept into a failure.
const PATIENCE: Duration = Duration::from_secs(60);

fn settings() -> Value {
    json!({
        "client": {
            "token": { "hmac_secret_key": "secret" }, "queue_max_size": 200_000,
            "expired_close_delay": "1ms", "allowed_origins": ["https://app.example"],
        },
        "http_api": { "key": "key" },
        "uni_sse": { "enabled": true },
        "uni_http_stream": { "enabled": true },
        "uni_websocket": { "enabled": true },
        "channel": { "namespaces": [
            {
                "name": "news", "presence": true, "history_size": 10, "history_ttl": "60s",
                "force_recovery": true,
            },
            { "name": "open", "allow_subscribe_for_client": true },
            { "name": "hall", "join_leave": true, "force_push_join_leave": true },
            { "name": "own", "allow_user_limited_channels": true },
        ] },
    })
}

async fn relay(settings: Value) -> Relay {
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    let free: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    start(settings, free).await.expect("it starts")
}

/// A connect request of Ann, whose token names these channels.
fn connect(channels: &[&str]) -> Value {
    json!({ "token": token(&json!({ "sub": "ann", "channels": channels })) })
}

fn token(claims: &Value) -> String {
    let key = EncodingKey::from_secret(b"secret");
    jsonwebtoken::encode(&Header::default(), claims, &key).expect("a token")
}

async fn api(relay: &Relay, method: &str, params: &Value) -> Value {
    let answer = crate::support::post(relay, method, params).await;
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
    let answer: Value = serde_json::from_str(body).expect("JSON");
    assert!(answer["error"].is_null(), "{answer}");
    answer["result"].clone()
}

async fn publish(relay: &Relay, channel: &str, data: Value) {
    api(relay, "publish", &json!({ "channel": channel, "data": data })).await;
}

/// What was told first: who this is, and what it is subscribed to.
async fn opened(listener: &mut Silent) -> Value {
    let first = listener.hear().await.expect("it is told");
    assert!(first["connect"]["client"].is_string(), "{first}");
    first["connect"].clone()
}

#[tokio::test]
async fn who_only_listens_hears_all_that_happens_to_it_by_each_transport() {
    let relay = relay(settings()).await;
    for transport in TRANSPORTS {
        let mut ann = Silent::open(&relay, transport, &connect(&["news:x"])).await;
        let told = opened(&mut ann).await;
        assert_eq!(told["subs"]["news:x"]["recoverable"], true, "{told}");
        assert_eq!((&told["ping"], &told["pong"]), (&json!(25), &Value::Null));

        publish(&relay, "news:x", json!({ "number": 1 })).await;
        let push = ann.hear().await.expect("a push");
        assert_eq!(push["channel"], "news:x");
        assert_eq!(push["pub"]["data"], json!({ "number": 1 }));
        assert!(push["pub"]["offset"].is_u64(), "{push}");

        let (of_ann, channel) = (json!({ "user": "ann", "channel": "open:y" }), "open:y");
        api(&relay, "subscribe", &of_ann).await;
        let push = ann.hear().await.expect("a push");
        assert_eq!(push, json!({ "channel": channel, "subscribe": {} }));
        publish(&relay, channel, json!(2)).await;
        assert_eq!(ann.hear().await.expect("a push")["pub"]["data"], 2);
        api(&relay, "unsubscribe", &of_ann).await;
        let push = ann.hear().await.expect("a push");
        assert_eq!(
            (&push["channel"], &push["unsubscribe"]["code"]),
            (&json!(channel), &json!(2000))
        );

        let why = json!({ "code": 4001, "reason": "enough" });
        api(&relay, "disconnect", &json!({ "user": "ann", "disconnect": why })).await;
        let told = ann.end().await;
        assert_eq!((&told["code"], &told["reason"]), (&why["code"], &why["reason"]));
    }
    relay.stop().await;
}

#[tokio::test]
async fn server_sent_events_are_what_a_browser_reads() {
    let relay = relay(settings()).await;
    let Silent::Http(mut response) =
        Silent::open(&relay, Transport::Events, &connect(&["news:x"])).await
    else {
        panic!("events come by HTTP")
    };
    assert_eq!(response.status, 200);
    let head = response.head.to_lowercase();
    assert!(head.contains("content-type: text/event-stream\r\n"), "{head}");
    assert!(head.contains("cache-control: no-cache"), "{head}");
    let first = response.line().await.expect("a line");
    assert!(first.starts_with("data: {\"connect\":{"), "{first}");
    assert_eq!(response.line().await.as_deref(), Some(""));
    // A line break in what is published is none in the event.
    let params = "{\"channel\":\"news:x\",\"data\":{\"a\":\n1}}";
    let head = "POST /api/publish HTTP/1.1\r\nX-API-Key: key";
    assert_eq!(Response::to(&relay, head, params).await.status, 200);
    let event = response.line().await.expect("a line");
    let event = event.strip_prefix("data: ").expect("an event");
    let event: Value = serde_json::from_str(event).expect("JSON");
    assert_eq!(event["pub"]["data"], json!({ "a": 1 }));
    assert_eq!(response.line().await.as_deref(), Some(""));
    relay.stop().await;
}

#[tokio::test]
async fn who_was_away_gets_what_was_missed_with_the_connect_push() {
    let relay = relay(settings()).await;
    for transport in TRANSPORTS {
        let channel = format!("news:{transport:?}");
        let mut ann = Silent::open(&relay, transport, &connect(&[&channel])).await;
        let epoch = opened(&mut ann).await["subs"][&channel]["epoch"].clone();
        publish(&relay, &channel, json!(1)).await;
        let offset = ann.hear().await.expect("a push")["pub"]["offset"].clone();
        drop(ann);
        publish(&relay, &channel, json!(2)).await;
        publish(&relay, &channel, json!(3)).await;

        let mut back = connect(&[&channel]);
        let position = json!({ "recover": true, "epoch": epoch, "offset": offset });
        back["subs"] = json!({ (&channel): position });
        let mut ann = Silent::open(&relay, transport, &back).await;
        let told = opened(&mut ann).await["subs"][&channel].clone();
        assert_eq!(told["recovered"], true, "{told}");
        let missed = told["publications"].as_array().expect("publications").iter();
        assert_eq!(missed.map(|one| &one["data"]).collect::<Vec<_>>(), [&json!(2), &json!(3)]);
        publish(&relay, &channel, json!(4)).await;
        assert_eq!(ann.hear().await.expect("a push")["pub"]["data"], 4);

        back["subs"][&channel]["epoch"] = json!("another");
        let mut ann = Silent::open(&relay, transport, &back).await;
        let told = opened(&mut ann).await["subs"][&channel].clone();
        let recovered = (&told["recovered"], &told["was_recovering"]);
        assert_eq!(recovered, (&Value::Null, &json!(true)), "{told}");
    }
    relay.stop().await;
}

#[tokio::test]
async fn who_may_not_connect_is_told_why_and_nothing_else() {
    let relay = relay(settings()).await;
    let expired = token(&json!({ "sub": "ann", "exp": 1_000_000_000 }));
    let unknown = token(&json!({ "sub": "ann", "channels": ["nowhere:x"] }));
    for transport in TRANSPORTS {
        for (request, code) in [
            (json!({ "token": "nonsense" }), 3500),
            (json!({ "token": expired }), 3005),
            (json!({ "token": unknown }), 3500),
            (json!({}), 3501),
            (Value::Null, 3501),
        ] {
            let mut refused = Silent::open(&relay, transport, &request).await;
            let said = refused.hear().await.expect("a push");
            assert_eq!(said["disconnect"]["code"], code, "{transport:?} {request}");
            assert_eq!(refused.hear().await, None);
        }
    }
    relay.stop().await;
}

#[tokio::test]
async fn a_connect_request_that_is_none_or_too_large_is_refused() {
    let relay = relay(settings()).await;
    let large = json!({ "token": "x".repeat(66_000) }).to_string();
    for (head, body, status) in [
        ("POST /connection/uni_http_stream", "nonsense", 400),
        ("POST /connection/uni_http_stream", "", 400),
        ("POST /connection/uni_http_stream", &large, 413),
        ("GET /connection/uni_http_stream", "", 405),
        ("POST /connection/uni_sse", "{\"token\":7}", 400),
        ("POST /connection/uni_sse", &large, 413),
        ("GET /connection/uni_sse?cf_connect=nonsense", "", 400),
        ("PUT /connection/uni_sse", "", 405),
    ] {
        let asked = Response::to(&relay, &format!("{head} HTTP/1.1"), body).await;
        assert_eq!(asked.status, status, "{head}");
    }
    let url = format!("ws://{}/connection/uni_websocket", relay.address());
    let refused = connect_async(format!("{url}?cf_connect=nonsense")).await;
    assert!(refused.is_err(), "the socket was opened");
    for (message, code) in [
        (Message::text("nonsense"), 3501),
        (Message::text(""), 3501),
        (Message::text(large), 1009),
        (Message::text("x".repeat(200_000)), 1009),
        (Message::binary("{}"), 3506),
    ] {
        let (mut socket, _) = connect_async(&url).await.expect("it takes connections");
        socket.send(message).await.expect("it is open");
        let said = socket.next().await.expect("a message").expect("it reads");
        let said: Value = serde_json::from_str(said.to_text().expect("text")).expect("JSON");
        assert_eq!(said["disconnect"]["code"], code);
        let Some(Ok(Message::Close(Some(close)))) = socket.next().await else {
            panic!("there is no close frame")
        };
        assert_eq!(u16::from(close.code), code);
    }
    relay.stop().await;
}

#[tokio::test]
async fn what_the_operator_did_not_ask_for_is_not_there() {
    let relay = relay(json!({ "http_api": { "key": "key" } })).await;
    for path in ["uni_sse", "uni_http_stream", "uni_websocket"] {
        let head = format!("POST /connection/{path} HTTP/1.1");
        assert_eq!(Response::to(&relay, &head, "{}").await.status, 404, "{path}");
    }
    relay.stop().await;
}

#[tokio::test]
async fn pages_of_other_sites_may_not_listen_unless_the_operator_named_them() {
    let relay = relay(settings()).await;
    for (origin, is_allowed) in [("https://evil.example", false), ("https://app.example", true)] {
        for head in [
            "GET /connection/uni_sse?cf_connect=%7B%7D HTTP/1.1".to_owned(),
            "OPTIONS /connection/uni_http_stream HTTP/1.1".to_owned(),
            "GET /connection/uni_websocket HTTP/1.1\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
                .to_owned(),
        ] {
            let asked = Response::to(&relay, &format!("{head}\r\nOrigin: {origin}"), "").await;
            assert_eq!(asked.status != 403, is_allowed, "{origin} {head}");
        }
    }
    relay.stop().await;
}

#[tokio::test]
async fn who_comes_and_goes_is_heard_where_the_channel_tells_it() {
    let relay = relay(settings()).await;
    let bob = json!({ "token": token(&json!({ "sub": "bob", "channels": ["hall:x"] })) });
    for transport in TRANSPORTS {
        let mut ann = Silent::open(&relay, transport, &connect(&["hall:x"])).await;
        opened(&mut ann).await;
        assert_eq!(ann.hear().await.expect("a push")["join"]["info"]["user"], "ann");
        let mut other = Silent::open(&relay, transport, &bob).await;
        opened(&mut other).await;
        assert_eq!(ann.hear().await.expect("a push")["join"]["info"]["user"], "bob");
        drop(other);
        assert_eq!(ann.hear().await.expect("a push")["leave"]["info"]["user"], "bob");
    }
    relay.stop().await;
}

#[tokio::test]
async fn channels_may_be_asked_for_by_name_and_those_of_others_are_left_out() {
    let relay = relay(settings()).await;
    let mut request = connect(&["news:x"]);
    request["subs"] = json!({ "open:a": {}, "news:y": {}, "own:#ann": {}, "own:#bob": {} });
    let mut unknown = request.clone();
    unknown["subs"]["nowhere:a"] = json!({});
    for transport in TRANSPORTS {
        let mut ann = Silent::open(&relay, transport, &request).await;
        let told = opened(&mut ann).await;
        let channels: Vec<_> = told["subs"].as_object().expect("subs").keys().collect();
        assert_eq!(channels, ["news:x", "open:a", "own:#ann"]);
        let mut refused = Silent::open(&relay, transport, &unknown).await;
        assert_eq!(refused.end().await["code"], 3501);
    }
    relay.stop().await;
}

#[tokio::test]
async fn a_user_hears_the_personal_channel_on_one_connection_if_there_shall_be_one() {
    let mut settings = settings();
    let personal = json!({
        "enabled": true, "personal_channel_namespace": "own", "single_connection": true,
    });
    settings["client"]["subscribe_to_user_personal_channel"] = personal;
    let relay = relay(settings).await;
    let mut before: Option<Silent> = None;
    for transport in TRANSPORTS {
        let mut ann = Silent::open(&relay, transport, &connect(&[])).await;
        assert!(opened(&mut ann).await["subs"]["own:#ann"].is_object());
        if let Some(mut before) = before.replace(ann) {
            assert_eq!(before.end().await["code"], 3504);
        }
        publish(&relay, "own:#ann", json!("hello")).await;
        let heard = before.as_mut().expect("the newest one").hear().await;
        assert_eq!(heard.expect("a push")["pub"]["data"], "hello");
    }
    relay.stop().await;
}

#[tokio::test]
async fn who_reads_nothing_is_cut_off_and_holds_no_listener_up() {
    let relay = relay(settings()).await;
    join_all(TRANSPORTS.map(|transport| cuts_off_who_reads_nothing(&relay, transport))).await;
    relay.stop().await;
}

async fn cuts_off_who_reads_nothing(relay: &Relay, transport: Transport) {
    let channel = format!("news:{transport:?}");
    let mut silent = Silent::narrow(relay, transport, &connect(&[&channel])).await;
    let mut reading = Silent::open(relay, transport, &connect(&[&channel])).await;
    opened(&mut reading).await;
    let present = async || {
        let stats = api(relay, "presence_stats", &json!({ "channel": channel })).await;
        stats["num_clients"].as_u64().expect("a number")
    };
    let both = async { while present().await != 2 {} };
    timeout(PATIENCE, both).await.expect("both are subscribed");
    let text = "x".repeat(30_000);
    let mut number = 0;
    while present().await == 2 {
        number += 1;
        publish(relay, &channel, json!({ "number": number, "text": text })).await;
        let heard = reading.hear().await.expect("it is not cut off");
        assert_eq!(heard["pub"]["data"]["number"], number);
    }
    // What was under way may still be read, and then it is over.
    timeout(PATIENCE, silent.end()).await.expect("the connection was kept");
}

#[tokio::test]
async fn pings_come_for_as_long_as_somebody_listens() {
    let mut settings = settings();
    settings["client"]["ping_interval"] = json!("20ms");
    let relay = relay(settings).await;
    for transport in TRANSPORTS {
        let mut ann = Silent::open(&relay, transport, &connect(&["news:x"])).await;
        opened(&mut ann).await;
        for _ in 0..3 {
            assert_eq!(ann.text().await.as_deref(), Some("{}"));
        }
        publish(&relay, "news:x", json!(1)).await;
        assert_eq!(ann.hear().await.expect("a push")["pub"]["data"], 1);
    }
    relay.stop().await;
}

#[tokio::test]
async fn a_websocket_that_answers_no_ping_is_closed() {
    let mut settings = settings();
    settings["client"]["ping_interval"] = json!("20ms");
    settings["client"]["pong_timeout"] = json!("20ms");
    settings["client"]["allow_anonymous_connect_without_token"] = json!(true);
    let relay = relay(settings).await;
    // It reads what comes, and says nothing.
    let head = "GET /connection/uni_websocket?cf_connect=%7B%7D HTTP/1.1\r\nUpgrade: websocket\r\n\
                Connection: upgrade\r\nSec-WebSocket-Version: 13\r\n\
                Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
    let silent = Response::to(&relay, head, "").await;
    assert_eq!(silent.status, 101);
    let said = silent.rest().await;
    assert!(String::from_utf8_lossy(&said).contains("{\"disconnect\":{\"code\":3012"));
    relay.stop().await;
}

#[tokio::test]
async fn a_listener_ends_with_its_time_and_with_the_relay() {
    let relay = relay(settings()).await;
    let mut listeners = Vec::new();
    for transport in TRANSPORTS {
        let mut ann = Silent::open(&relay, transport, &connect(&[])).await;
        let client = opened(&mut ann).await["client"].clone();
        let refresh = json!({ "user": "ann", "client": client, "expire_at": 5_000_000_000_u64 });
        api(&relay, "refresh", &refresh).await;
        assert_eq!(ann.hear().await.expect("a push")["refresh"]["expires"], true);
        api(&relay, "refresh", &json!({ "user": "ann", "client": client, "expire_at": 1 })).await;
        assert_eq!(ann.end().await["code"], 3005);
        let mut bob = Silent::open(&relay, transport, &connect(&[])).await;
        opened(&mut bob).await;
        listeners.push(bob);
    }
    let stopping = tokio::spawn(relay.stop());
    for mut listener in listeners {
        let said = listener.end().await;
        assert_eq!((&said["code"], &said["reconnect"]), (&json!(3001), &json!(true)));
    }
    stopping.await.expect("it stops");
}
