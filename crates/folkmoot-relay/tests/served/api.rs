//! The server API over HTTP: what its methods take and refuse, over real sockets.

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::support::asked::Asked;
use crate::support::{Listener, post};
use folkmoot_relay::{Relay, Settings, start};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn settings() -> Value {
    json!({
        "client": {
            "allow_anonymous_connect_without_token": true, "expired_sub_close_delay": "1ms",
        },
        "http_api": { "key": "key" },
        "channel": { "namespaces": [{
            "name": "news", "allow_subscribe_for_anonymous": true, "presence": true,
            "history_size": 10, "history_ttl": "60s", "force_positioning": true,
        }, { "name": "plain" }] },
    })
}

async fn relay_with(settings: &Value) -> Relay {
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    let free: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    start(settings, free).await.expect("it starts")
}

async fn relay() -> Relay {
    relay_with(&settings()).await
}

/// Calls a method; the body of its answer.
async fn call(relay: &Relay, method: &str, params: &Value) -> Value {
    let answer = post(relay, method, params).await;
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    serde_json::from_str(body).expect("JSON")
}

#[track_caller]
fn assert_bad(answer: &Value, word: &str) {
    assert_eq!(answer["error"]["code"], 107, "{answer}");
    assert!(answer["error"]["message"].as_str().expect("a text").contains(word), "{answer}");
}

#[tokio::test]
async fn nothing_is_read_of_who_knows_no_key() {
    let relay = relay().await;
    for (path, key) in [
        ("/api/publish", ""),
        ("/api/publish", "X-API-Key: guess\r\n"),
        ("/api", "Authorization: apikey guess\r\n"),
    ] {
        let mut socket = TcpStream::connect(relay.address()).await.expect("it listens");
        let length = "Content-Length: 33000000\r\n\r\n";
        let head = format!("POST {path} HTTP/1.1\r\nHost: here\r\n{key}{length}");
        socket.write_all(head.as_bytes()).await.expect("it is open");
        let mut status = [0; 12];
        let answer = socket.read_exact(&mut status);
        let answer = tokio::time::timeout(std::time::Duration::from_secs(60), answer).await;
        answer.expect("it waits for what it does not take").expect("it answers");
        assert_eq!(&status, b"HTTP/1.1 401");
    }
    relay.stop().await;
}

#[tokio::test]
async fn a_command_of_a_batch_that_names_two_methods_runs_neither() {
    let relay = relay().await;
    let message = json!({ "channel": "news:x", "data": 1 });
    let both = json!({ "history_remove": { "channel": "news:x" }, "publish": message });
    let batch = json!({ "commands": [{ "publish": message }, both, {}] });
    let replies = call(&relay, "batch", &batch).await["replies"].clone();
    assert_eq!(replies[0]["publish"]["offset"], 1);
    assert_bad(&replies[1], "one method");
    assert_bad(&replies[2], "one method");
    // Nor the same one twice, of which a map would keep the last.
    let twice = format!("{{\"commands\": [{{\"publish\": {message}, \"publish\": {message}}}]}}");
    let head = "POST /api/batch HTTP/1.1\r\nX-API-Key: key";
    let answer = Asked::request(&relay, head, &twice).await.until("]}").await;
    assert!(answer.contains("one method"), "{answer}");
    let asked = json!({ "channel": "news:x", "limit": 10 });
    let kept = call(&relay, "history", &asked).await["result"]["publications"].clone();
    assert_eq!(kept.as_array().map(Vec::len), Some(1), "{kept}");
    relay.stop().await;
}

#[tokio::test]
async fn channels_are_listed_whatever_is_in_their_names() {
    let relay = relay().await;
    let names = ["news:a.b", "news:a\nb", "news:[a]"];
    let _listener = Listener::subscribe(&relay, &names).await;
    let listed = async |pattern: &str| {
        let answer = call(&relay, "channels", &json!({ "pattern": pattern })).await;
        let channels = answer["result"]["channels"].as_object().expect("channels").clone();
        channels.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(listed("**").await, ["news:[a]", "news:a\nb", "news:a.b"]);
    assert_eq!(listed("news:*").await, ["news:[a]", "news:a\nb"]);
    assert_eq!(listed("news:[a]").await, ["news:[a]"]);
    let long = "*".repeat(2_000_000);
    assert_bad(&call(&relay, "channels", &json!({ "pattern": long })).await, "pattern");
    relay.stop().await;
}

#[tokio::test]
async fn an_idempotency_key_is_bounded() {
    let relay = relay().await;
    let publish = |len: usize| {
        let key = "k".repeat(len);
        json!({ "channel": "news:x", "data": 1, "idempotency_key": key })
    };
    for _ in 0..2 {
        assert_eq!(call(&relay, "publish", &publish(1_024)).await["result"]["offset"], 1);
    }
    assert_bad(&call(&relay, "publish", &publish(1_025)).await, "idempotency_key");
    relay.stop().await;
}

/// A connection, and its id.
async fn connected(relay: &Relay) -> (Listener, String) {
    let mut client = Listener::open(relay, &[]).await;
    let connected = client.ask(json!({ "id": 1, "connect": {} })).await;
    let id = connected["connect"]["client"].as_str().expect("an id").to_owned();
    (client, id)
}

/// Seconds since 1970, so many from now.
fn in_seconds(seconds: u64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    now.as_secs() + seconds
}

#[tokio::test]
async fn a_subscription_by_the_backend_ends_when_it_says() {
    let relay = relay().await;
    let (mut client, id) = connected(&relay).await;
    let asked = |channel: &str, expire_at: u64| json!({ "channel": channel, "client": id, "expire_at": expire_at });
    for (channel, ends) in [("news:long", 600), ("news:short", 1), ("news:cut", 600)] {
        call(&relay, "subscribe", &asked(channel, in_seconds(ends))).await;
        assert_eq!(client.message().await["push"]["channel"], channel);
    }
    // Who is subscribed already gets the new end, and no other without one.
    call(&relay, "subscribe", &asked("news:cut", in_seconds(1))).await;
    call(&relay, "subscribe", &json!({ "channel": "news:short", "client": id })).await;
    let mut ended = Vec::new();
    while ended.len() < 2 {
        let push = client.message().await["push"].clone();
        assert_eq!(push["unsubscribe"]["code"], 2501, "{push}");
        ended.push(push["channel"].as_str().expect("a name").to_owned());
    }
    ended.sort();
    assert_eq!(ended, ["news:cut", "news:short"]);
    call(&relay, "publish", &json!({ "channel": "news:long", "data": 1 })).await;
    assert_eq!(client.publication().await.0, "news:long");
    for over in [json!(1), json!(-1)] {
        let asked = json!({ "channel": "news:over", "client": id, "expire_at": over });
        assert_bad(&call(&relay, "subscribe", &asked).await, "expire_at");
    }
    relay.stop().await;
}

#[tokio::test]
async fn a_subscription_by_the_backend_has_the_options_that_it_overrides() {
    let relay = relay().await;
    let (mut client, id) = connected(&relay).await;
    let switch = |value: bool| json!({ "value": value });
    for (channel, options, recoverable, present) in [
        ("news:as_set", json!({}), Value::Null, 1),
        ("news:more", json!({ "force_recovery": switch(true) }), json!(true), 1),
        ("news:less", json!({ "presence": switch(false) }), Value::Null, 0),
    ] {
        let asked = json!({ "channel": channel, "client": id, "override": options });
        call(&relay, "subscribe", &asked).await;
        let push = client.message().await["push"]["subscribe"].clone();
        assert_eq!((&push["recoverable"], &push["positioned"]), (&recoverable, &json!(true)));
        let stats = call(&relay, "presence_stats", &json!({ "channel": channel })).await;
        assert_eq!(stats["result"]["num_clients"].as_u64().unwrap_or(0), present, "{channel}");
    }
    let told = json!({ "join_leave": switch(true), "force_push_join_leave": switch(true) });
    let asked = json!({ "channel": "news:told", "client": id, "override": told });
    call(&relay, "subscribe", &asked).await;
    client.message().await;
    assert_eq!(client.message().await["push"]["join"]["info"]["client"], json!(id));
    let (_other, other_id) = connected(&relay).await;
    let asked = json!({ "channel": "news:told", "client": other_id, "override": told });
    call(&relay, "subscribe", &asked).await;
    assert_eq!(client.message().await["push"]["join"]["info"]["client"], json!(other_id));
    for (channel, options, word) in [
        ("plain:x", json!({ "force_recovery": switch(true) }), "override"),
        ("news:x", json!({ "history_size": switch(true) }), "history_size"),
    ] {
        let asked = json!({ "channel": channel, "client": id, "override": options });
        assert_bad(&call(&relay, "subscribe", &asked).await, word);
    }
    relay.stop().await;
}

#[tokio::test]
async fn a_field_that_is_not_offered_and_would_narrow_a_call_is_refused() {
    let relay = relay().await;
    let (mut client, id) = connected(&relay).await;
    for method in ["subscribe", "unsubscribe", "disconnect", "refresh"] {
        for (field, value) in [("label_filter", json!({ "key": "a" })), ("all_users", json!(true))]
        {
            let mut asked = json!({ "channel": "news:x", "client": id });
            asked[field] = value;
            assert_bad(&call(&relay, method, &asked).await, field);
        }
        assert_bad(&call(&relay, method, &json!({ "channel": "news:x" })).await, "user");
    }
    client.ask(json!({ "id": 2, "ping": {} })).await;
    relay.stop().await;
}

#[tokio::test]
async fn an_end_before_all_others_is_refused_and_does_not_pass_for_none() {
    let relay = relay().await;
    let (mut client, id) = connected(&relay).await;
    let asked = json!({ "channel": "news:x", "client": id, "expire_at": -1 });
    for method in ["subscribe", "refresh"] {
        assert_bad(&call(&relay, method, &asked).await, "expire_at");
    }
    client.ask(json!({ "id": 2, "ping": {} })).await;
    relay.stop().await;
}

#[tokio::test]
async fn no_call_of_the_backends_has_a_name_here() {
    let relay = relay().await;
    let named = call(&relay, "rpc", &json!({ "method": "x", "params": {} })).await;
    assert_eq!(named["error"]["code"], 104, "{named}");
    assert_bad(&call(&relay, "rpc", &json!({})).await, "method");
    let batch = json!({ "commands": [{ "rpc": { "method": "x" } }] });
    assert_eq!(call(&relay, "batch", &batch).await["replies"][0]["error"]["code"], 104);
    relay.stop().await;
}

#[tokio::test]
async fn a_version_that_is_no_newer_than_the_channels_is_not_published() {
    let relay = relay().await;
    let publish = async |version: u64, epoch: &str| {
        let asked = json!({
            "channel": "news:x", "data": version, "version": version, "version_epoch": epoch,
        });
        call(&relay, "publish", &asked).await["result"]["offset"].as_u64()
    };
    for (version, epoch, offset) in
        [(3, "a", 1), (3, "a", 1), (2, "", 1), (4, "", 2), (1, "b", 3), (1, "b", 3), (2, "b", 4)]
    {
        assert_eq!(publish(version, epoch).await, Some(offset), "{version} of {epoch:?}");
    }
    let asked = json!({ "channel": "news:x", "limit": 10 });
    let history = call(&relay, "history", &asked).await;
    let kept = history["result"]["publications"].as_array().expect("publications");
    let kept: Vec<_> = kept.iter().filter_map(|one| one["data"].as_u64()).collect();
    assert_eq!(kept, [3, 4, 1, 2]);
    let forgotten = json!({ "channel": "plain:x", "data": 1, "version": 3 });
    assert_bad(
        &call(&relay, "publish", &forgotten).await,
        "version needs a channel with a history",
    );
    let nothing = json!({ "channel": "news:x", "data": 1, "version_epoch": "a" });
    assert_bad(&call(&relay, "publish", &nothing).await, "version_epoch needs a version");
    let both = json!({ "channels": ["news:x", "plain:x", "news:y"], "data": 9, "version": 9 });
    let answer = call(&relay, "broadcast", &both).await;
    let responses = answer["result"]["responses"].as_array().expect("responses");
    assert_eq!(responses[0]["result"]["offset"], json!(5));
    assert_bad(&responses[1], "version needs");
    assert_eq!(responses[2]["result"]["offset"], json!(1));
    relay.stop().await;
}

/// Calls a method with further headers; the status and the body of its answer.
async fn told(relay: &Relay, method: &str, params: &Value, headers: &str) -> (u16, Value) {
    let answer = crate::support::post_with(relay, "key", method, params, headers).await;
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.expect("a status"), serde_json::from_str(body).expect("JSON"))
}

#[tokio::test]
async fn an_error_is_a_status_where_the_operator_or_the_request_wants_that() {
    let asking = "X-Centrifugo-Error-Mode: transport\r\n";
    let by_request = relay().await;
    let mut settings = settings();
    settings["http_api"]["error_mode"] = json!("transport");
    let by_setting = relay_with(&settings).await;
    let message = json!({ "channel": "news:x", "data": 1 });
    call(&by_request, "publish", &message).await;
    for (method, params, status, code) in [
        ("publish", json!({ "channel": "nowhere:x", "data": 1 }), 404, 102),
        ("publish", json!({}), 400, 107),
        ("nothing", json!({}), 404, 104),
        ("history", json!({ "channel": "plain:x" }), 400, 108),
        (
            "history",
            json!({ "channel": "news:x", "since": { "offset": 1, "epoch": "x" } }),
            416,
            112,
        ),
    ] {
        for (relay, headers) in [(&by_request, asking), (&by_setting, "")] {
            let (told_status, error) = told(relay, method, &params, headers).await;
            assert_eq!((told_status, &error["code"]), (status, &json!(code)), "{method} {params}");
            assert!(error["message"].is_string() && error["error"].is_null(), "{error}");
        }
        let (told_status, error) = told(&by_request, method, &params, "").await;
        assert_eq!((told_status, &error["error"]["code"]), (200, &json!(code)));
    }
    // Calls of many parts tell of each in the answer.
    let both = json!({ "channels": ["nowhere:x"], "data": 1 });
    let (status, answer) = told(&by_setting, "broadcast", &both, "").await;
    assert_eq!((status, &answer["result"]["responses"][0]["error"]["code"]), (200, &json!(102)));
    by_request.stop().await;
    by_setting.stop().await;
}

/// Publishes into a durable history until the relay is gone; returns what was acknowledged.
async fn publish_until_the_end(relay: SocketAddr, writer: u32) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for number in 0.. {
        let data = format!("{writer}/{number}");
        let body = json!({ "channel": "kept:x", "data": data }).to_string();
        let head = format!(
            "POST /api/publish HTTP/1.1\r\nHost: here\r\nX-API-Key: key\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        let Ok(mut socket) = TcpStream::connect(relay).await else { break };
        let mut answer = String::new();
        let sent = socket.write_all((head + &body).as_bytes()).await;
        if sent.is_err() || socket.read_to_string(&mut answer).await.is_err() {
            break;
        }
        if answer.contains("\"offset\"") {
            acknowledged.push(data);
        }
    }
    acknowledged
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_stop_in_the_middle_of_much() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut settings = settings();
    settings["channel"]["history_directory"] = json!(directory.path());
    settings["channel"]["history_max_publication_limit"] = json!(1_000_000);
    settings["channel"]["namespaces"].as_array_mut().expect("some").push(json!({
        "name": "kept", "durable_history": true, "history_size": 1_000_000, "history_ttl": "1h",
    }));
    let first = relay_with(&settings).await;
    let at = first.address();
    let writers: Vec<_> =
        (0..8).map(|writer| tokio::spawn(publish_until_the_end(at, writer))).collect();
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    first.stop().await;
    let second = relay_with(&settings).await;
    let asked = json!({ "channel": "kept:x", "limit": -1 });
    let page = call(&second, "history", &asked).await["result"]["publications"].clone();
    let kept = page.as_array().expect("publications").iter();
    let kept: Vec<&str> = kept.map(|one| one["data"].as_str().expect("a text")).collect();
    for writer in writers {
        let acknowledged = writer.await.expect("it ends");
        assert!(!acknowledged.is_empty());
        for one in acknowledged {
            assert_eq!(kept.iter().filter(|kept| **kept == one).count(), 1, "{one}");
        }
    }
    second.stop().await;
}

#[tokio::test]
async fn a_subscription_by_the_backend_brings_what_was_published_since_it_says() {
    let relay = relay().await;
    let (mut client, id) = connected(&relay).await;
    let publish = async |number: u64| {
        let message = json!({ "channel": "news:x", "data": number });
        call(&relay, "publish", &message).await["result"].clone()
    };
    let first = publish(1).await;
    for number in 2..=3 {
        publish(number).await;
    }
    let asked = json!({
        "channel": "news:x", "client": id, "recover_since": first,
        "override": { "force_recovery": { "value": true } },
    });
    call(&relay, "subscribe", &asked).await;
    publish(4).await;
    assert_eq!(client.message().await["push"]["subscribe"]["offset"], 3);
    for number in 2..=4 {
        let publication = client.message().await["push"]["pub"].clone();
        assert_eq!(
            (&publication["data"], &publication["offset"]),
            (&json!(number), &json!(number))
        );
    }
    relay.stop().await;
}
