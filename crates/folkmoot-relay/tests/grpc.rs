//! The server API over gRPC, by a client of its own over real sockets: what goes over the wire is
//! put together here from field numbers, by nothing that the server reads it with.

mod support;

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Request};
use folkmoot_relay::{Relay, Settings, start};
use hyper::body::Body as _;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use support::Listener;
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
            "keys": [{ "name": "shop", "key": "less", "namespaces": ["open"] }],
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

/// A field of bytes, a text or a message.
fn field(number: u8, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    [varint(u64::from(number) << 3 | 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
}

fn number(number: u8, value: i64) -> Vec<u8> {
    [varint(u64::from(number) << 3), varint(value.cast_unsigned())].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("a text")
}

/// What a message has.
#[derive(Debug, Default)]
struct Fields(Vec<(u64, Vec<u8>)>);

impl Fields {
    fn read(mut bytes: &[u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = take(&mut bytes);
            let value = match key & 7 {
                0 => take(&mut bytes).to_le_bytes().to_vec(),
                2 => {
                    let len = usize::try_from(take(&mut bytes)).expect("a length");
                    let (value, rest) = bytes.split_at(len);
                    bytes = rest;
                    value.to_vec()
                }
                kind => panic!("a field of kind {kind}"),
            };
            fields.push((key >> 3, value));
        }
        Self(fields)
    }

    fn all(&self, number: u64) -> Vec<&[u8]> {
        let fields = self.0.iter().filter(|(one, _)| *one == number);
        fields.map(|(_, value)| value.as_slice()).collect()
    }

    fn bytes(&self, number: u64) -> &[u8] {
        self.all(number).first().copied().unwrap_or_default()
    }

    fn text(&self, number: u64) -> String {
        text(self.bytes(number))
    }

    fn number(&self, number: u64) -> u64 {
        let bytes = self.bytes(number);
        if bytes.is_empty() { 0 } else { u64::from_le_bytes(bytes.try_into().expect("a number")) }
    }

    fn inner(&self, number: u64) -> Self {
        Self::read(self.bytes(number))
    }
}

fn take(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a number");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    value
}

/// What came of a call.
#[derive(Debug)]
struct Called {
    http_status: u16,
    /// Of gRPC; `None`: there is none.
    status: Option<u16>,
    /// Why.
    reason: String,
    body: Vec<u8>,
}

/// A backend's connection.
struct Backend {
    calls: SendRequest<Body>,
    /// Whether its calls ask for errors as their status.
    wants_status: bool,
}

impl Backend {
    async fn connect(relay: &Relay) -> Self {
        let address = relay.grpc_address().expect("it listens");
        let socket = TcpStream::connect(address).await.expect("it listens");
        let handshake = handshake(TokioExecutor::new(), TokioIo::new(socket)).await;
        let (sender, connection) = handshake.expect("it speaks HTTP/2");
        tokio::spawn(async move { drop(connection.await) });
        Self { calls: sender, wants_status: false }
    }

    /// Calls a method with the right key; returns the result or the error in its answer.
    async fn call(&mut self, method: &str, message: Vec<u8>) -> Result<Fields, (u64, String)> {
        let answer = self.answer(method, &message).await;
        match answer.all(1).first() {
            Some(error) => {
                let error = Fields::read(error);
                Err((error.number(1), error.text(2)))
            }
            None => Ok(answer.inner(2)),
        }
    }

    /// Calls a method with the right key; returns the message of its answer.
    async fn answer(&mut self, method: &str, message: &[u8]) -> Fields {
        self.answer_to("secret", method, message).await
    }

    async fn answer_to(&mut self, key: &str, method: &str, message: &[u8]) -> Fields {
        let path = format!("/centrifugal.centrifugo.api.CentrifugoApi/{method}");
        let called = self.ask(&path, Some(&format!("apikey {key}")), framed(message)).await;
        assert_eq!((called.http_status, called.status), (200, Some(0)), "{called:?}");
        let message = &called.body[5..];
        assert_eq!(called.body, framed(message));
        Fields::read(message)
    }

    async fn ask(&mut self, path: &str, key: Option<&str>, body: Vec<u8>) -> Called {
        self.ask_as("application/grpc+proto", path, key, body).await
    }

    async fn ask_as(&mut self, kind: &str, path: &str, key: Option<&str>, body: Vec<u8>) -> Called {
        let request = Request::post(format!("http://here{path}"))
            .header("content-type", kind)
            .header("te", "trailers");
        let request = key.into_iter().fold(request, |it, key| it.header("authorization", key));
        let mode = self.wants_status.then_some("transport");
        let request =
            mode.into_iter().fold(request, |it, mode| it.header("x-centrifugo-error-mode", mode));
        let request = request.body(Body::from(body)).expect("a request");
        let response =
            timeout(PATIENCE, self.calls.send_request(request)).await.expect("nothing came");
        let (head, mut body) = response.expect("a response").into_parts();
        let mut called = Called {
            http_status: head.status.as_u16(),
            status: None,
            reason: String::new(),
            body: Vec::new(),
        };
        called.note(&head.headers);
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            match frame.expect("a frame").into_data() {
                Ok(data) => called.body.extend_from_slice(&data),
                Err(frame) => called.note(&frame.into_trailers().expect("trailers")),
            }
        }
        called
    }
}

impl Called {
    fn note(&mut self, headers: &HeaderMap) {
        let value = |name| headers.get(name).map(|value| value.to_str().expect("a text"));
        if let Some(status) = value("grpc-status") {
            self.status = Some(status.parse().expect("a number"));
            self.reason = value("grpc-message").unwrap_or_default().to_owned();
        }
    }
}

/// A message behind the flag of compression and its length.
fn framed(message: &[u8]) -> Vec<u8> {
    let len = u32::try_from(message.len()).expect("a length").to_be_bytes();
    [&[0], len.as_slice(), message].concat()
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
        let unknown = field(1, field(14, field(1, "a method")));
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
    for (narrow, word) in [(number(3, 1), "expire_at"), (field(11, "s"), "session")] {
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
        (&path("RPC"), KEY, none.clone(), 12, "RPC"),
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
