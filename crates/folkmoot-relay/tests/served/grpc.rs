//! The server API over gRPC, by a client of its own over real sockets.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use crate::support::Listener;
use crate::support::grpc::{Backend, Fields, field, framed, number};
use axum::body::Body;
use axum::http::Request;
use bytes::Bytes;
use folkmoot_relay::{Relay, Settings, start};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Only turns a promise that is never kept into a failure.
const PATIENCE: Duration = Duration::from_secs(60);

fn settings() -> Value {
    json!({
        "client": { "allow_anonymous_connect_without_token": true },
        "http_api": { "key": "key" },
        "grpc_api": {
            "enabled": true, "key": "secret", "port": 0, "max_receive_message_size": 100_000,
            "keys": [
                { "name": "shop", "key": "less", "namespaces": ["open"] },
                { "name": "till", "key": "least", "methods": ["publish"] },
            ],
        },
        "channel": { "namespaces": [
            {
                "name": "news", "presence": true, "allow_subscribe_for_anonymous": true,
                "history_size": 10, "history_ttl": "60s", "force_recovery": true,
            },
            { "name": "open" },
        ] },
    })
}

async fn relay() -> Relay {
    let settings = Settings::from_json(&settings().to_string()).expect("settings");
    let free: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    start(settings, free).await.expect("it starts")
}

#[tokio::test]
async fn every_method_does_what_it_does_over_http() {
    let relay = relay().await;
    let mut backend = Backend::connect(&relay).await;
    let mut ann = Listener::open(&relay, &[]).await;
    let connected = ann.ask(json!({"id": 1, "connect": {}})).await;
    let client = connected["connect"]["client"].as_str().expect("an id").to_owned();
    ann.ask(json!({"id": 2, "subscribe": {"channel": "news:x"}})).await;

    let tags = [field(1, "kind"), field(2, "a")].concat();
    let publish = [field(1, "news:x"), field(2, "{\"a\":1}"), field(5, tags)].concat();
    let published = backend.call("Publish", publish.clone()).await.expect("it is published");
    assert_eq!(published.number(1), 1);
    let epoch = published.text(2);
    let pushed = ann.message().await["push"]["pub"].clone();
    assert_eq!((&pushed["data"], &pushed["tags"]), (&json!({"a": 1}), &json!({"kind": "a"})));

    let broadcast = [field(1, "news:x"), field(1, "nowhere:y"), field(3, "Mg==")].concat();
    let broadcast = backend.call("Broadcast", broadcast).await.expect("it is published");
    let responses: Vec<_> = broadcast.all(1).into_iter().map(Fields::read).collect();
    assert_eq!(responses[0].inner(2).number(1), 2);
    assert_eq!(responses[1].inner(1).number(1), 102);
    assert_eq!(ann.publication().await.1, 2);

    let channel = field(1, "news:x");
    let presence = backend.call("Presence", channel.clone()).await.expect("who is there");
    let present = presence.inner(1);
    assert_eq!((present.text(1), present.inner(2).text(2)), (client.clone(), client.clone()));
    let stats = backend.call("PresenceStats", channel.clone()).await.expect("how many");
    assert_eq!((stats.number(1), stats.number(2)), (1, 1));

    let since = field(3, [number(1, 1), field(2, &epoch)].concat());
    let history = [channel.clone(), number(2, -1), since].concat();
    let page = backend.call("History", history.clone()).await.expect("a page");
    assert_eq!((page.text(2), page.number(3), page.all(1).len()), (epoch, 2, 1));
    assert_eq!((page.inner(1).text(2), page.inner(1).number(4)), ("2".to_owned(), 2));
    backend.call("HistoryRemove", channel.clone()).await.expect("it is removed");
    let page = backend.call("History", history).await.expect("a page");
    assert_eq!((page.number(3), page.all(1).len()), (2, 0));

    let listed = backend.call("Channels", field(1, "news:*")).await.expect("a list");
    assert_eq!((listed.inner(1).text(1), listed.inner(1).inner(2).number(1)), ("news:x".into(), 1));
    let info = backend.call("Info", Vec::new()).await.expect("a node").inner(1);
    assert_eq!((info.text(2), info.number(4)), ("folkmoot-relay".to_owned(), 1));

    let of = [field(1, "open:y"), field(6, &client), field(7, "{\"b\":2}")].concat();
    backend.call("Subscribe", of).await.expect("it is subscribed");
    let push = ann.message().await["push"].clone();
    assert_eq!(push, json!({"channel": "open:y", "subscribe": {"data": {"b": 2}}}));
    let of = [field(1, "open:y"), field(3, &client)].concat();
    backend.call("Unsubscribe", of).await.expect("it is unsubscribed");
    assert_eq!(ann.message().await["push"]["unsubscribe"]["code"], 2000);
    let refresh = [field(2, &client), number(4, 5_000_000_000)].concat();
    backend.call("Refresh", refresh).await.expect("it goes on");
    assert_eq!(ann.message().await["push"]["refresh"]["expires"], true);

    for parallel in [0, 1] {
        let commands = [field(1, field(4, &publish)), field(1, field(10, &channel))].concat();
        let unknown = field(1, field(17, field(1, "a method")));
        let batch = [commands, unknown, number(2, parallel)].concat();
        let replies = backend.answer("Batch", &batch).await;
        let replies: Vec<_> = replies.all(1).into_iter().map(Fields::read).collect();
        assert!(replies[0].inner(4).number(1) > 2, "{replies:?}");
        assert_eq!(replies[1].inner(10).number(1), 1);
        assert_eq!(replies[2].inner(2).number(1), 104);
        ann.publication().await;
    }

    let why = field(2, [number(1, 4001), field(2, "enough")].concat());
    let disconnect = [why, field(3, &client)].concat();
    backend.call("Disconnect", disconnect).await.expect("it is disconnected");
    assert_eq!(ann.end().await, (4001, "enough".to_owned()));
    // It stops though the backend stays connected.
    timeout(PATIENCE, relay.stop()).await.expect("it does not stop");
}

#[tokio::test]
async fn what_a_method_refuses_is_an_error_in_its_answer() {
    let relay = relay().await;
    let mut backend = Backend::connect(&relay).await;
    for (method, message, code, word) in [
        ("Publish", [field(1, "nowhere:x"), field(2, "1")].concat(), 102, "nowhere"),
        ("Publish", field(1, "news:x"), 107, "data"),
        ("Publish", field(2, "1"), 107, "channel"),
        ("Publish", [field(1, "news:x"), field(3, "!")].concat(), 107, "b64data"),
        ("Broadcast", field(2, "1"), 107, "channels"),
        ("Subscribe", field(1, "news:x"), 107, "user"),
        ("Disconnect", [field(1, "x"), field(2, number(1, 1))].concat(), 107, "disconnect.code"),
        ("Presence", field(1, "open:x"), 108, ""),
        ("History", field(1, "open:x"), 108, ""),
        ("Unsubscribe", [field(1, "news:x"), field(3, "c"), field(5, "")].concat(), 107, "label"),
        ("Unsubscribe", [field(1, "news:x"), field(3, "c"), number(6, 1)].concat(), 107, "all_"),
        ("Disconnect", [field(3, "c"), field(6, "")].concat(), 107, "label_filter"),
        ("Disconnect", [field(3, "c"), number(7, 1)].concat(), 107, "all_users"),
        ("Refresh", [field(2, "c"), field(7, "")].concat(), 107, "label_filter"),
        ("Refresh", [field(2, "c"), number(8, 1)].concat(), 107, "all_users"),
        ("RPC", field(1, "x"), 104, "x"),
        ("RPC", Vec::new(), 107, "method"),
    ] {
        let refused = backend.call(method, message).await.expect_err("it is refused");
        assert_eq!(refused.0, code, "{method} {refused:?}");
        assert!(refused.1.contains(word), "{method} {refused:?}");
    }
    relay.stop().await;
}

#[tokio::test]
async fn an_error_is_a_status_where_the_operator_or_the_call_wants_that() {
    let mut settings = settings();
    let by_call = relay().await;
    settings["grpc_api"]["error_mode"] = json!("transport");
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    let free: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let by_setting = start(settings, free).await.expect("it starts");
    for (relay, wants_status) in [(&by_call, true), (&by_setting, false)] {
        let mut backend = Backend { wants_status, ..Backend::connect(relay).await };
        for (method, key, message, status, word) in [
            ("Publish", "secret", [field(1, "nowhere:x"), field(2, "1")].concat(), 5, "nowhere"),
            ("Publish", "secret", field(1, "news:x"), 3, "data"),
            ("History", "secret", field(1, "open:x"), 3, ""),
            ("Publish", "less", [field(1, "news:x"), field(2, "1")].concat(), 7, "`shop`"),
            ("Batch", "least", Vec::new(), 7, "`till`"),
        ] {
            let path = format!("/centrifugal.centrifugo.api.CentrifugoApi/{method}");
            let key = format!("apikey {key}");
            let called = backend.ask(&path, Some(&key), framed(&message)).await;
            assert_eq!(called.status, Some(status), "{called:?}");
            assert!(called.reason.contains(word) && called.body.is_empty(), "{called:?}");
        }
    }
    by_call.stop().await;
    by_setting.stop().await;
}

#[tokio::test]
async fn a_subscription_has_the_end_and_the_options_that_the_call_gives() {
    let relay = relay().await;
    let mut backend = Backend::connect(&relay).await;
    let mut ann = Listener::open(&relay, &[]).await;
    let connected = ann.ask(json!({"id": 1, "connect": {}})).await;
    let client = connected["connect"]["client"].as_str().expect("an id").to_owned();
    let switched_off = field(10, [field(1, number(1, 0)), field(3, number(1, 0))].concat());
    let of = [field(1, "news:x"), field(6, &client), number(3, 5_000_000_000), switched_off];
    backend.call("Subscribe", of.concat()).await.expect("it is subscribed");
    let push = ann.message().await["push"].clone();
    assert_eq!(push, json!({"channel": "news:x", "subscribe": {}}), "it is recoverable");
    let stats = backend.call("PresenceStats", field(1, "news:x")).await.expect("how many");
    assert_eq!(stats.number(1), 0);
    let of = [field(1, "news:y"), field(6, &client)].concat();
    for (narrow, word) in [
        (number(3, 1), "expire_at"),
        (field(12, field(1, "a")), "label_filter"),
        (number(13, 1), "all_users"),
    ] {
        let asked = [of.clone(), narrow].concat();
        let refused = backend.call("Subscribe", asked).await.expect_err("it is refused");
        assert!(refused.0 == 107 && refused.1.contains(word), "{refused:?}");
    }
    relay.stop().await;
}

#[tokio::test]
async fn a_key_does_no_more_than_it_has_a_right_to() {
    let relay = relay().await;
    let mut backend = Backend::connect(&relay).await;
    let publish = |channel| [field(1, channel), field(2, "1")].concat();
    let batch = field(1, field(4, publish("news:x")));
    for (method, message, word) in [
        ("Publish", publish("news:x"), "`news`"),
        ("Publish", publish("x"), "without"),
        ("Presence", field(1, "news:x"), "`news`"),
        ("Disconnect", field(1, "anybody"), "`disconnect`"),
        ("Info", Vec::new(), "`info`"),
    ] {
        let error = backend.answer_to("less", method, &message).await.inner(1);
        assert_eq!(error.number(1), 103, "{method} {}", error.text(2));
        assert!(error.text(2).contains(word), "{method} {}", error.text(2));
    }
    let reply = backend.answer_to("less", "Batch", &batch).await.inner(1);
    assert_eq!(reply.inner(2).number(1), 103, "a batch is no way round");
    assert!(backend.answer_to("less", "Publish", &publish("open:x")).await.all(1).is_empty());
    relay.stop().await;
}

#[tokio::test]
async fn a_command_of_a_batch_that_names_two_methods_runs_neither() {
    let relay = relay().await;
    let mut backend = Backend::connect(&relay).await;
    let publish = |channel| field(4, [field(1, channel), field(2, "1")].concat());
    // One of these is not offered, and one has the number that commands had once.
    let other = |number| field(number, field(1, "news:two"));
    for (command, code) in [
        ([publish("news:two"), other(10)].concat(), 107),
        ([other(10), publish("news:two")].concat(), 107),
        ([publish("news:two"), other(20)].concat(), 107),
        ([publish("news:two"), publish("news:two")].concat(), 107),
        (Vec::new(), 107),
        (other(20), 104),
        ([number(1, 7), other(10)].concat(), 0),
    ] {
        for parallel in [0, 1] {
            let batch = [field(1, &command), field(1, publish("news:one")), number(2, parallel)];
            let replies = backend.answer("Batch", &batch.concat()).await;
            let replies: Vec<_> = replies.all(1).into_iter().map(Fields::read).collect();
            assert_eq!(replies[0].inner(2).number(1), code, "{command:?} {replies:?}");
            assert!(replies[1].inner(4).number(1) > 0, "{command:?} {replies:?}");
        }
    }
    let page = backend.call("History", field(1, "news:two")).await.expect("a page");
    assert_eq!(page.number(3), 0, "one of them was published");
    relay.stop().await;
}

#[tokio::test]
async fn bytes_that_are_no_json_come_back_as_they_were() {
    let relay = relay().await;
    let mut backend = Backend::connect(&relay).await;
    let publish = [field(1, "news:x"), field(2, [0xff, 0x00, b'"'])].concat();
    backend.call("Publish", publish).await.expect("it is published");
    let history = [field(1, "news:x"), number(2, 1)].concat();
    let page = backend.call("History", history).await.expect("a page");
    assert_eq!(page.inner(1).bytes(2), [0xff, 0x00, b'"']);
    relay.stop().await;
}

#[tokio::test]
async fn what_is_no_call_is_told_by_its_status() {
    const KEY: Option<&str> = Some("apikey secret");
    let relay = relay().await;
    let mut backend = Backend::connect(&relay).await;
    let path = |method: &str| format!("/centrifugal.centrifugo.api.CentrifugoApi/{method}");
    let (publish, other) = (path("Publish"), "/other.Service/Publish".to_owned());
    let none = framed(&[]);
    let mut compressed = none.clone();
    compressed[0] = 1;
    let large = framed(&field(2, vec![b'7'; 100_000]));
    for (path, key, body, status, word) in [
        (&publish, None, none.clone(), 16, "key"),
        (&publish, Some("apikey guess"), none.clone(), 16, "key"),
        (&publish, Some("secret"), none.clone(), 16, "key"),
        (&path("Connections"), KEY, none.clone(), 12, "Connections"),
        (&path(""), KEY, none.clone(), 12, "offered"),
        (&other, KEY, none.clone(), 12, "other.Service"),
        (&publish, KEY, large, 8, "100000"),
        (&publish, KEY, compressed, 12, "compression"),
        (&publish, KEY, framed(&[0x0a, 9, b'x']), 13, "read"),
        (&publish, KEY, vec![0, 0, 0, 0, 7, 1], 13, "cut off"),
        (&publish, KEY, Vec::new(), 13, "cut off"),
        (&publish, KEY, [none.clone(), none].concat(), 13, "one message"),
    ] {
        let called = backend.ask(path, key, body).await;
        assert_eq!((called.http_status, called.status), (200, Some(status)), "{called:?}");
        assert!(called.reason.contains(word), "{called:?}");
        assert!(called.body.is_empty());
    }
    let called = backend.ask_as("application/json", &publish, KEY, b"{}".to_vec()).await;
    assert_eq!((called.http_status, called.status), (415, None));
    // The connection is as good as before.
    assert!(backend.call("Info", Vec::new()).await.is_ok());
    relay.stop().await;
}

#[tokio::test]
async fn who_speaks_no_http2_is_sent_away_and_holds_nobody_up() {
    let relay = relay().await;
    let address = relay.grpc_address().expect("it listens");
    let mut stranger = TcpStream::connect(address).await.expect("it listens");
    let request = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n";
    stranger.write_all(request).await.expect("it is open");
    let _silent = TcpStream::connect(address).await.expect("it listens");
    let gone = timeout(PATIENCE, stranger.read_to_end(&mut Vec::new())).await;
    assert!(gone.is_ok(), "the connection was kept");
    let mut backend = Backend::connect(&relay).await;
    assert!(backend.call("Info", Vec::new()).await.is_ok());
    timeout(PATIENCE, relay.stop()).await.expect("it does not stop");
}

#[tokio::test]
async fn connections_that_are_silent_keep_no_backend_out() {
    let relay = relay().await;
    let address = relay.grpc_address().expect("it listens");
    let mut before = Backend::connect(&relay).await;
    assert!(before.call("Info", Vec::new()).await.is_ok());
    // More than there are places.
    let mut silent = Vec::new();
    for _ in 0..1_100 {
        silent.push(TcpStream::connect(address).await.expect("it listens"));
    }
    let mut backend = Backend::connect(&relay).await;
    assert!(backend.call("Info", Vec::new()).await.is_ok());
    assert!(before.call("Info", Vec::new()).await.is_ok());
    let gone = timeout(PATIENCE, silent[0].read_to_end(&mut Vec::new())).await;
    assert!(gone.is_ok(), "the oldest was kept");
    relay.stop().await;
}

#[tokio::test]
async fn who_knows_no_key_is_sent_away_though_it_calls() {
    let relay = relay().await;
    let mut stranger = Backend::connect(&relay).await;
    let path = "/centrifugal.centrifugo.api.CentrifugoApi/Info";
    for key in [None, Some("apikey guess")] {
        assert_eq!(stranger.ask(path, key, framed(&[])).await.status, Some(16));
    }
    let gone = timeout(PATIENCE, async {
        while !stranger.calls.is_closed() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    gone.await.expect("the connection was kept");
    relay.stop().await;
}

#[tokio::test]
async fn an_api_without_a_key_or_with_a_wrong_address_does_not_start() {
    let free: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    for (name, value, word) in [("key", "", "grpc_api.key"), ("address", "here", "address")] {
        let mut settings = settings();
        settings["grpc_api"]["keys"] = json!([]);
        settings["grpc_api"][name] = json!(value);
        let settings = Settings::from_json(&settings.to_string()).expect("settings");
        let error = start(settings, free).await.expect_err("it starts").to_string();
        assert!(error.contains(word), "{error}");
    }
    let settings = Settings::from_json("{}").expect("settings");
    let relay = start(settings, free).await.expect("it starts");
    assert_eq!(relay.grpc_address(), None);
    relay.stop().await;
}

#[tokio::test]
async fn a_call_of_which_half_has_come_does_not_hold_up_the_end() {
    let relay = relay().await;
    let mut backend = Backend::connect(&relay).await;
    let half = stream::iter([Ok::<_, Infallible>(Bytes::from_static(&[0, 0, 0, 0, 9, 10, 6]))]);
    let request = Request::post("http://here/centrifugal.centrifugo.api.CentrifugoApi/Publish")
        .header("content-type", "application/grpc")
        .header("authorization", "apikey secret")
        .body(Body::from_stream(half.chain(stream::pending())))
        .expect("a request");
    let calling = tokio::spawn(backend.calls.send_request(request));
    // Behind it on the same connection.
    backend.call("Info", Vec::new()).await.expect("it answers");
    assert!(!calling.is_finished(), "the rest is waited for");
    timeout(PATIENCE / 4, relay.stop()).await.expect("it does not stop");
    let answer = timeout(PATIENCE, calling).await.expect("the connection is still there");
    assert!(answer.expect("it does not panic").is_err(), "nobody answers half a call");
}
