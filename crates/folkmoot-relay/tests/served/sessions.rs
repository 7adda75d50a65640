//! The server API means one connection of a user by its session, the name that only its client was
//! told: by HTTP and by gRPC, of clients that only listen and of those whose commands come by
//! requests of their own.

use crate::support::grpc::{Backend, field, number};
use crate::support::listening::{Response, Silent, TRANSPORTS, Transport};
use crate::support::{Listener, post};
use folkmoot_relay::{Relay, Settings, start};
use serde_json::{Value, json};

async fn relay() -> Relay {
    let settings = json!({
        "client": { "allow_anonymous_connect_without_token": true },
        "http_api": { "key": "key" },
        "grpc_api": { "enabled": true, "key": "secret", "port": 0 },
        "uni_sse": { "enabled": true }, "uni_http_stream": { "enabled": true },
        "uni_websocket": { "enabled": true },
        "channel": { "without_namespace": { "presence": true } },
    });
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    start(settings, "127.0.0.1:0".parse().expect("an address")).await.expect("it starts")
}

async fn call(relay: &Relay, method: &str, params: &Value) -> Value {
    let answer = post(relay, method, params).await;
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
    serde_json::from_str(body).expect("JSON")
}

fn session(connect: &Value) -> String {
    let session = connect["session"].as_str().unwrap_or_default();
    assert!(session.len() >= 32, "nobody may guess it: {connect}");
    assert_ne!(connect["session"], connect["client"], "others see the id");
    session.to_owned()
}

/// A client that only listens, and its session.
async fn listener(relay: &Relay, transport: Transport) -> (Silent, String) {
    let mut silent = Silent::open(relay, transport, &json!({})).await;
    let connect = silent.hear().await.expect("it is connected")["connect"].clone();
    (silent, session(&connect))
}

/// Calls all methods that mean connections, with sessions of two of them and of none.
async fn each_method_means_one_connection(
    relay: &Relay,
    transport: Transport,
    mut call: impl AsyncFnMut(&str, &str),
) {
    let (mut meant, name) = listener(relay, transport).await;
    let (mut other, others) = listener(relay, transport).await;
    for wrong in ["somebody else's", &name[1..]] {
        for method in ["subscribe", "unsubscribe", "refresh", "disconnect"] {
            call(method, wrong).await;
        }
    }
    call("subscribe", &name).await;
    let push = meant.hear().await.expect("it is subscribed");
    assert_eq!((&push["channel"], push["subscribe"].is_object()), (&json!("x"), true), "{push}");
    call("refresh", &name).await;
    let push = meant.hear().await.expect("it goes on");
    assert_eq!(push["refresh"]["expires"], true, "{push}");
    call("unsubscribe", &name).await;
    let push = meant.hear().await.expect("it goes on");
    assert_eq!(push["unsubscribe"]["code"], 2000, "{push}");
    call("disconnect", &name).await;
    assert_eq!(meant.end().await["code"], 3503);
    // The other one of the same user, who is nobody, has heard of nothing until it is meant.
    call("disconnect", &others).await;
    let push = other.hear().await.expect("it is disconnected");
    assert_eq!(push["disconnect"]["code"], 3503, "{push}");
}

#[tokio::test]
async fn a_session_means_one_connection_of_its_user_over_http() {
    let relay = relay().await;
    for transport in TRANSPORTS {
        each_method_means_one_connection(&relay, transport, async |method, session| {
            let asked =
                json!({ "channel": "x", "session": session, "expire_at": 5_000_000_000_u64 });
            let answer = call(&relay, method, &asked).await;
            assert!(answer["error"].is_null(), "{answer}");
        })
        .await;
    }
    relay.stop().await;
}

#[tokio::test]
async fn a_session_means_one_connection_of_its_user_by_grpc() {
    let relay = relay().await;
    let mut backend = Backend::connect(&relay).await;
    for transport in TRANSPORTS {
        each_method_means_one_connection(&relay, transport, async |method, session| {
            let (method, message) = match method {
                "subscribe" => ("Subscribe", [field(1, "x"), field(11, session)].concat()),
                "unsubscribe" => ("Unsubscribe", [field(1, "x"), field(4, session)].concat()),
                "refresh" => ("Refresh", [number(4, 5_000_000_000), field(6, session)].concat()),
                _ => ("Disconnect", field(5, session)),
            };
            backend.call(method, message).await.expect("it is done");
        })
        .await;
    }
    relay.stop().await;
}

#[tokio::test]
async fn a_client_whose_commands_come_by_requests_has_the_session_that_finds_it() {
    let relay = relay().await;
    let connect = json!({ "id": 1, "connect": {} }).to_string();
    let head = "POST /connection/http_stream HTTP/1.1";
    let mut stream = Response::to(&relay, head, &connect).await;
    let line = stream.line().await.expect("a reply");
    let reply: Value = serde_json::from_str(&line).expect("JSON");
    let name = session(&reply["connect"]);
    call(&relay, "subscribe", &json!({ "channel": "x", "session": name })).await;
    let line = stream.line().await.expect("a push");
    assert!(line.contains("\"subscribe\""), "{line}");
    // A WebSocket is told no session, and has none that anybody could guess.
    let mut socket = Listener::open(&relay, &[]).await;
    let connected = socket.ask(json!({ "id": 1, "connect": {} })).await;
    assert!(connected["connect"]["session"].is_null(), "{connected}");
    let id = connected["connect"]["client"].as_str().expect("an id");
    call(&relay, "disconnect", &json!({ "client": id, "session": id })).await;
    socket.ask(json!({ "id": 2, "ping": {} })).await;
    relay.stop().await;
}

#[tokio::test]
async fn a_refresh_says_something_else_of_its_user_and_presence_shows_it() {
    let relay = relay().await;
    let mut backend = Backend::connect(&relay).await;
    let (_silent, name) = listener(&relay, Transport::HttpStream).await;
    call(&relay, "subscribe", &json!({ "channel": "x", "session": name })).await;
    let seen = async || {
        let present = call(&relay, "presence", &json!({ "channel": "x" })).await;
        let present = present["result"]["presence"].as_object().expect("a map").clone();
        present.values().next().expect("it is there")["conn_info"].clone()
    };
    assert_eq!(seen().await, Value::Null);
    let later = 5_000_000_000_u64;
    let asked = json!({ "session": name, "expire_at": later, "info": { "name": "Ada" } });
    call(&relay, "refresh", &asked).await;
    assert_eq!(seen().await, json!({ "name": "Ada" }));
    // Without one, what was said stays.
    call(&relay, "refresh", &json!({ "session": name, "expire_at": later })).await;
    assert_eq!(seen().await, json!({ "name": "Ada" }));
    let asked = [number(4, 5_000_000_000), field(5, "{\"name\":\"Eve\"}"), field(6, &name)];
    backend.call("Refresh", asked.concat()).await.expect("it goes on");
    assert_eq!(seen().await, json!({ "name": "Eve" }));
    relay.stop().await;
}
