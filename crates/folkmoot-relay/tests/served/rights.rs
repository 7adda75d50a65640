//! What tokens open and names allow, for clients over real sockets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::support::Listener;
use folkmoot_relay::{Relay, Settings, start};
use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::{Value, json};

async fn relay() -> Relay {
    let settings = json!({
        "client": { "token": { "hmac_secret_key": "secret" } },
        "http_api": { "key": "key" },
        "channel": { "namespaces": [
            { "name": "news", "allow_subscribe_for_client": true },
            { "name": "letters", "allow_publish_for_client": true, "presence": true,
              "allow_presence_for_client": true, "history_size": 10, "history_ttl": "60s",
              "allow_history_for_client": true, "channel_regex": "^[a-z]+$" },
        ] },
    });
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    let free: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    start(settings, free).await.expect("it starts")
}

fn token(claims: &Value) -> String {
    encode(&Header::default(), claims, &EncodingKey::from_secret(b"secret")).expect("a token")
}

/// Seconds since 1970, so many from now.
fn in_seconds(seconds: i64) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    i64::try_from(now).expect("a number") + seconds
}

fn connect(claims: &Value) -> Value {
    json!({ "id": 1, "connect": { "token": token(claims) } })
}

async fn connected(relay: &Relay, claims: &Value) -> Listener {
    let mut client = Listener::open(relay, &[]).await;
    client.ask(connect(claims)).await;
    client
}

#[tokio::test]
async fn a_token_sets_options_of_its_subscriptions_otherwise() {
    let relay = relay().await;
    let off = json!({ "presence": { "value": false }, "force_recovery": { "value": true } });
    for (user, options, (is_present, recoverable)) in
        [("ann", json!({}), (true, Value::Null)), ("bob", off, (false, json!(true)))]
    {
        let by_server = json!({ "letters:x": { "override": options } });
        let mut client = Listener::open(&relay, &[]).await;
        let told = client.ask(connect(&json!({ "sub": user, "subs": by_server }))).await;
        let named = json!({ "sub": user, "channel": "letters:y", "override": options });
        let by_itself = json!({ "channel": "letters:y", "token": token(&named) });
        let reply = client.ask(json!({ "id": 2, "subscribe": by_itself })).await;
        let results = [&told["connect"]["subs"]["letters:x"], &reply["subscribe"]];
        for (channel, result) in ["letters:x", "letters:y"].into_iter().zip(results) {
            assert_eq!(result["recoverable"], recoverable, "{result}");
            let seen = json!({ "channel": channel });
            let answer = crate::support::post(&relay, "presence_stats", &seen).await;
            assert_eq!(answer.contains("\"num_clients\":1"), is_present, "{answer}");
        }
        let mut forged = Listener::open(&relay, &[]).await;
        let unknown = json!({ "letters:x": { "override": { "history_size": { "value": true } } } });
        forged.send(connect(&json!({ "sub": user, "subs": unknown }))).await;
        assert_eq!(forged.end().await.0, 3500);
        for channel in ["letters:x", "letters:y"] {
            client.send(json!({ "id": 9, "unsubscribe": { "channel": channel } })).await;
        }
        client.ask(json!({ "id": 10, "presence_stats": { "channel": "letters:z" } })).await;
    }
    relay.stop().await;
}

#[tokio::test]
async fn a_token_whose_expire_at_is_over_or_no_date_opens_nothing() {
    let relay = relay().await;
    let exp = in_seconds(600);
    let mut late = Listener::open(&relay, &[]).await;
    let over = json!({ "sub": "ann", "exp": exp, "expire_at": in_seconds(-2) });
    assert_eq!(late.reply(connect(&over)).await["error"]["code"], 109);
    let mut forged = Listener::open(&relay, &[]).await;
    forged.send(connect(&json!({ "sub": "ann", "exp": exp, "expire_at": -1 }))).await;
    assert_eq!(forged.end().await.0, 3500);
    // 0 says that it never ends, and so does one that has no end at all.
    let mut ann = connected(&relay, &json!({ "sub": "ann", "exp": exp, "expire_at": 0 })).await;
    for (expire_at, code) in [(in_seconds(-2), 109), (-1, 103)] {
        let claims = json!({ "sub": "ann", "channel": "$news:x", "expire_at": expire_at });
        let asked = json!({ "channel": "$news:x", "token": token(&claims) });
        let refused = ann.reply(json!({ "id": 2, "subscribe": asked })).await;
        assert_eq!(refused["error"]["code"], code, "{refused}");
    }
    relay.stop().await;
}

#[tokio::test]
async fn who_renews_a_connection_with_a_token_that_is_over_is_told_to_come_again() {
    let relay = relay().await;
    let (exp, over) = (in_seconds(600), in_seconds(-2));
    for claims in [
        json!({ "sub": "ann", "exp": over }),
        json!({ "sub": "ann", "exp": exp, "expire_at": over }),
    ] {
        let mut ann = connected(&relay, &json!({ "sub": "ann", "exp": exp })).await;
        ann.send(json!({ "id": 2, "refresh": { "token": token(&claims) } })).await;
        assert_eq!(ann.end().await.0, 3005);
    }
    relay.stop().await;
}

#[tokio::test]
async fn a_token_for_a_subscription_opens_no_connection() {
    let relay = relay().await;
    let claims = json!({ "sub": "ann", "channel": "$news:x" });
    let mut client = Listener::open(&relay, &[]).await;
    client.send(connect(&claims)).await;
    assert_eq!(client.end().await.0, 3500);
    let mut ann = connected(&relay, &json!({ "sub": "ann" })).await;
    let asked = json!({ "channel": "$news:x", "token": token(&claims) });
    ann.ask(json!({ "id": 2, "subscribe": asked })).await;
    ann.send(json!({ "id": 3, "refresh": { "token": token(&claims) } })).await;
    assert_eq!(ann.end().await.0, 3500);
    relay.stop().await;
}

#[tokio::test]
async fn a_name_that_its_namespace_does_not_allow_is_refused_whatever_is_asked_of_it() {
    let relay = relay().await;
    let mut ann = connected(&relay, &json!({ "sub": "ann" })).await;
    for (channel, code) in [("letters:a1", 107), ("letters:ab", 0)] {
        for asked in [
            json!({ "publish": { "channel": channel, "data": 1 } }),
            json!({ "history": { "channel": channel } }),
            json!({ "presence": { "channel": channel } }),
            json!({ "presence_stats": { "channel": channel } }),
        ] {
            let mut asked = asked;
            asked["id"] = json!(2);
            let reply = ann.reply(asked.clone()).await;
            assert_eq!(reply["error"]["code"].as_u64().unwrap_or(0), code, "{asked} {reply}");
        }
    }
    relay.stop().await;
}

#[tokio::test]
async fn who_connects_while_the_backend_subscribes_it_to_the_same_channel_is_connected() {
    let relay = Arc::new(relay().await);
    // The last one is asked for by both.
    let channels: Vec<_> = (100..200).map(|number| format!("news:{number}")).collect();
    let is_over = Arc::new(AtomicBool::new(false));
    let backend = tokio::spawn({
        let (relay, is_over) = (relay.clone(), is_over.clone());
        async move {
            while !is_over.load(Ordering::Relaxed) {
                let asked = json!({ "user": "ann", "channel": "news:199" });
                crate::support::post(&relay, "subscribe", &asked).await;
            }
        }
    });
    for _ in 0..50 {
        let claims = json!({ "sub": "ann", "channels": channels });
        let mut client = Listener::open(&relay, &[]).await;
        let reply = client.ask(connect(&claims)).await;
        assert_eq!(reply["connect"]["subs"].as_object().map(serde_json::Map::len), Some(100));
    }
    is_over.store(true, Ordering::Relaxed);
    backend.await.expect("it ends");
    Arc::into_inner(relay).expect("nobody else has it").stop().await;
}

#[tokio::test]
async fn a_token_that_renews_a_subscription_gives_it_another_end_and_says_something_else_of_its_user()
 {
    let relay = relay().await;
    let mut ann = connected(&relay, &json!({ "sub": "ann" })).await;
    let of = |channel: &str, more: Value| {
        let mut claims = json!({ "sub": "ann", "channel": channel });
        claims.as_object_mut().expect("claims").extend(more.as_object().cloned().expect("claims"));
        json!({ "channel": channel, "token": token(&claims) })
    };
    let first = of("letters:x", json!({ "exp": in_seconds(600), "info": { "role": "guest" } }));
    let reply = ann.ask(json!({ "id": 2, "subscribe": first })).await;
    assert!(reply["subscribe"]["ttl"].as_u64().is_some_and(|ttl| ttl > 590), "{reply}");
    let seen = async |client: &mut Listener| {
        let presence = json!({ "id": 3, "presence": { "channel": "letters:x" } });
        let presence = client.ask(presence).await["presence"]["presence"].clone();
        let all = presence.as_object().expect("who is present").values().cloned();
        all.map(|one| one["chan_info"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(seen(&mut ann).await, [json!({ "role": "guest" })]);
    let mut id = 10;
    let mut renew = async |client: &mut Listener, request: Value| {
        id += 1;
        client.reply(json!({ "id": id, "sub_refresh": request })).await
    };
    let longer = json!({ "exp": in_seconds(6_000), "info": { "role": "host" } });
    let reply = renew(&mut ann, of("letters:x", longer)).await;
    assert_eq!(reply["sub_refresh"]["expires"], true, "{reply}");
    assert!(reply["sub_refresh"]["ttl"].as_u64().is_some_and(|ttl| ttl > 5_900), "{reply}");
    assert_eq!(seen(&mut ann).await, [json!({ "role": "host" })]);
    // One that says nothing of its user leaves what was said, and one without an end has none.
    let reply = renew(&mut ann, of("letters:x", json!({}))).await;
    assert!(reply["sub_refresh"]["expires"].is_null() && reply["error"].is_null(), "{reply}");
    assert_eq!(seen(&mut ann).await, [json!({ "role": "host" })]);
    let bytes = json!({ "b64info": "eyJyb2xlIjoiYWRtaW4ifQ==" });
    assert!(renew(&mut ann, of("letters:x", bytes)).await["error"].is_null());
    assert_eq!(seen(&mut ann).await, [json!({ "role": "admin" })]);
    let other = json!({ "channel": "letters:x", "token": of("letters:y", json!({}))["token"] });
    let others = json!({ "sub": "bob", "channel": "letters:x", "info": 1 });
    for (refused, code) in [
        (other, 103),
        (json!({ "channel": "letters:x", "token": token(&others) }), 103),
        (of("letters:x", json!({ "exp": in_seconds(-2), "info": 1 })), 109),
        (of("letters:x", json!({ "b64info": "no base64!" })), 103),
        // Nobody is subscribed there.
        (of("letters:y", json!({ "info": 1 })), 103),
        (json!({ "channel": "letters:x", "token": "" }), 103),
    ] {
        let reply = renew(&mut ann, refused).await;
        assert_eq!(reply["error"]["code"], code, "{reply}");
        // Another token may come in time.
        assert_eq!(reply["error"]["temporary"] == true, code == 109, "{reply}");
    }
    assert_eq!(seen(&mut ann).await, [json!({ "role": "admin" })]);
    // An end that comes before the former one counts, and is told.
    let soon = json!({ "exp": in_seconds(2), "expire_at": in_seconds(1) });
    assert_eq!(renew(&mut ann, of("letters:x", soon)).await["sub_refresh"]["expires"], true);
    relay.stop().await;
}

#[tokio::test]
async fn a_token_that_renews_a_connection_says_something_else_of_its_user() {
    let relay = relay().await;
    let of = |info: &str| json!({ "sub": "ann", "info": info, "channels": ["letters:x"] });
    let mut ann = connected(&relay, &of("before")).await;
    ann.ask(json!({ "id": 2, "refresh": { "token": token(&of("after")) } })).await;
    let seen = crate::support::post(&relay, "presence", &json!({ "channel": "letters:x" })).await;
    assert!(seen.contains(r#""conn_info":"after""#), "{seen}");
    let says_nothing = json!({ "sub": "ann", "channels": ["letters:x"] });
    ann.ask(json!({ "id": 3, "refresh": { "token": token(&says_nothing) } })).await;
    let seen = crate::support::post(&relay, "presence", &json!({ "channel": "letters:x" })).await;
    assert!(seen.contains(r#""conn_info":"after""#), "{seen}");
    relay.stop().await;
}

#[tokio::test]
async fn a_token_that_names_other_channels_has_its_client_connect_again() {
    let relay = relay().await;
    let of = |channels: &[&str]| json!({ "sub": "ann", "channels": channels });
    let by_subs = json!({ "sub": "ann", "subs": { "letters:y": {} }, "channels": ["letters:x"] });
    for (before, others) in [
        (of(&["letters:x", "letters:y"]), of(&["letters:x"])),
        (of(&["letters:x", "letters:y"]), json!({ "sub": "ann" })),
        (of(&["letters:x"]), by_subs.clone()),
        (of(&[]), of(&["letters:x"])),
    ] {
        let mut ann = connected(&relay, &before).await;
        // What it has subscribed to by itself is no channel of its token.
        ann.ask(json!({ "id": 2, "subscribe": { "channel": "news:own" } })).await;
        ann.ask(json!({ "id": 3, "refresh": { "token": token(&before) } })).await;
        ann.send(json!({ "id": 4, "refresh": { "token": token(&others) } })).await;
        assert_eq!(ann.end().await.0, 3010, "{before} {others}");
    }
    let mut ann = connected(&relay, &of(&["letters:y", "letters:x"])).await;
    ann.ask(json!({ "id": 2, "refresh": { "token": token(&by_subs) } })).await;
    relay.stop().await;
}

#[tokio::test]
async fn a_token_for_a_subscription_of_one_connection_opens_it_there_only() {
    let relay = relay().await;
    let mut ann = Listener::open(&relay, &[]).await;
    let told = ann.ask(connect(&json!({ "sub": "ann" }))).await;
    let client = told["connect"]["client"].as_str().expect("an id");
    let claims = json!({ "sub": "ann", "channel": "letters:x", "client": client });
    let asked = json!({ "channel": "letters:x", "token": token(&claims) });
    let mut another = connected(&relay, &json!({ "sub": "ann" })).await;
    let reply = another.reply(json!({ "id": 2, "subscribe": asked })).await;
    assert_eq!(reply["error"]["code"], 103, "{reply}");
    ann.ask(json!({ "id": 2, "subscribe": asked })).await;
    relay.stop().await;
}
