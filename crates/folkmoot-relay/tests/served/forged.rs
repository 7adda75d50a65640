//! What strangers send over real sockets: forged tokens, keys that nobody can look up, commands that
//! are none or too large. Each ends or refuses the one who sent it, and nobody else.

use std::time::Duration;

use crate::support::Listener;
use base64ct::{Base64UrlUnpadded, Encoding};
use folkmoot_relay::{Relay, Settings, start};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::timeout;

/// Only turns a promise that is never kept into a failure.
const PATIENCE: Duration = Duration::from_secs(60);
/// An Ed25519 key that everybody may know.
const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\n\
    MCowBQYDK2VwAyEA2+Jj2UvNCvQiUPNYRgSi0cJSPiJI6Rs6D0UTeEpQVj8=\n\
    -----END PUBLIC KEY-----\n";

async fn relay(token: Value) -> Relay {
    let settings = json!({
        "client": { "token": token },
        "http_api": { "key": "key" },
        "channel": { "namespaces": [{ "name": "news", "allow_subscribe_for_client": true }] },
    });
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    start(settings, "127.0.0.1:0".parse().expect("an address")).await.expect("it starts")
}

fn signed(header: &Header, secret: &str, claims: &Value) -> String {
    encode(header, claims, &EncodingKey::from_secret(secret.as_bytes())).expect("a token")
}

fn good(claims: &Value) -> String {
    signed(&Header::default(), "secret", claims)
}

/// Tokens that say `claims` and that no key of the operator's has signed.
fn forged(claims: &Value) -> Vec<String> {
    let part = |value: &Value| Base64UrlUnpadded::encode_string(value.to_string().as_bytes());
    let unsigned =
        |algorithm: &str| format!("{}.{}.", part(&json!({ "alg": algorithm })), part(claims));
    let others = good(&json!({ "sub": "another", "channel": "news:another" }));
    let signature = others.rsplit('.').next().expect("a signature");
    vec![
        unsigned("none"),
        unsigned("None"),
        unsigned("HS256"),
        format!("{}{signature}", unsigned("HS256")),
        signed(&Header::default(), "guess", claims),
        signed(&Header::default(), "", claims),
        signed(&Header::new(Algorithm::HS256), PUBLIC, claims),
        signed(&Header::new(Algorithm::HS512), PUBLIC.trim(), claims),
        "nonsense".to_owned(),
        "..".to_owned(),
    ]
}

#[tokio::test]
async fn a_forged_token_opens_no_connection_and_no_channel() {
    let relay = relay(json!({ "hmac_secret_key": "secret", "eddsa_public_key": PUBLIC })).await;
    for token in forged(&json!({ "sub": "ada" })) {
        let mut client = Listener::open(&relay, &[]).await;
        client.send(json!({ "id": 1, "connect": { "token": token } })).await;
        assert_eq!(client.end().await.0, 3500, "{token}");
    }
    let mut client = Listener::open(&relay, &[]).await;
    client.ask(json!({ "id": 1, "connect": { "token": good(&json!({ "sub": "ada" })) } })).await;
    for (id, token) in (2..).zip(forged(&json!({ "sub": "ada", "channel": "news:private" }))) {
        let asked = json!({ "channel": "news:private", "token": token });
        let reply = client.reply(json!({ "id": id, "subscribe": asked })).await;
        assert_eq!(reply["error"]["code"], 103, "{token} {reply}");
    }
    client.ask(json!({ "id": 99, "subscribe": { "channel": "news:x" } })).await;
    relay.stop().await;
}

#[tokio::test]
async fn a_provider_of_keys_that_hangs_holds_up_only_whose_key_it_has() {
    let provider = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/keys", provider.local_addr().expect("it listens"));
    let token = json!({ "hmac_secret_key": "secret", "jwks_public_endpoint": url });
    let relay = relay(token).await;
    let named = Header { kid: Some("one".to_owned()), ..Header::default() };
    let token = signed(&named, "secret", &json!({ "sub": "eve" }));
    let mut waiting = Listener::open(&relay, &[]).await;
    waiting.send(json!({ "id": 1, "connect": { "token": token } })).await;
    // It is asked, and says nothing.
    let (_asked, _) =
        timeout(PATIENCE, provider.accept()).await.expect("nobody asks").expect("one");
    let mut other = Listener::open(&relay, &[]).await;
    other.ask(json!({ "id": 1, "connect": { "token": good(&json!({ "sub": "ada" })) } })).await;
    let reply = waiting.message().await;
    assert_eq!(
        (&reply["error"]["code"], &reply["error"]["temporary"]),
        (&json!(100), &json!(true))
    );
    // Nor is the secret taken because nobody knows the key.
    let mut again = Listener::open(&relay, &[]).await;
    let reply = again.reply(json!({ "id": 1, "connect": { "token": token } })).await;
    assert_eq!(reply["error"]["code"], 100, "{reply}");
    relay.stop().await;
}

#[tokio::test]
async fn a_command_that_is_none_or_too_large_ends_who_sent_it_and_nobody_else() {
    let relay = relay(json!({ "hmac_secret_key": "secret" })).await;
    let connect = json!({ "id": 1, "connect": { "token": good(&json!({ "sub": "ada" })) } });
    let mut other = Listener::open(&relay, &[]).await;
    other.ask(connect.clone()).await;
    other.ask(json!({ "id": 2, "subscribe": { "channel": "news:x" } })).await;
    let large = "x".repeat(1 << 20);
    for (command, code) in [
        (json!("nonsense"), 3501),
        (json!({ "id": "one", "ping": {} }), 3501),
        (json!({ "id": 2, "connect": {} }), 3501),
        (json!({ "id": 2, "subscribe": { "channel": "" } }), 3501),
        (json!({ "id": 2, "subscribe": { "channel": large } }), 1009),
    ] {
        let mut client = Listener::open(&relay, &[]).await;
        client.ask(connect.clone()).await;
        client.send(command.clone()).await;
        let (ended, _) = client.end().await;
        let command: String = command.to_string().chars().take(80).collect();
        assert_eq!(ended, code, "{command}");
    }
    let news = json!({ "channel": "news:x", "data": 1 });
    crate::support::post(&relay, "publish", &news).await;
    assert_eq!(other.publication().await.1, 1);
    relay.stop().await;
}
