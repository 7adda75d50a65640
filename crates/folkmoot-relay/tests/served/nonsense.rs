//! Backends and providers of keys that answer with what is no answer: each is a temporary error for
//! who waits for it, within its time, and holds nobody else up.

use std::net::SocketAddr;
use std::time::Instant;

use crate::support::Listener;
use folkmoot_relay::{Relay, Settings, start};
use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Duration, sleep};

/// The relay waits for a second; the rest is for slow machines.
const PATIENCE: Duration = Duration::from_secs(10);

/// What comes in place of an answer.
#[derive(Debug, Clone, Copy)]
enum Nonsense {
    /// These bytes, and the end of the connection.
    Bytes(&'static str),
    /// A head of lines without an end.
    EndlessHead,
    /// A body in pieces without an end.
    EndlessBody,
    /// A body that says to be longer than any that is read.
    Huge,
    /// One byte after the other.
    Slow,
    /// The end of the connection before anything is read.
    Nothing,
}

const ALL: [Nonsense; 16] = [
    Nonsense::Bytes("nonsense\r\n\r\n"),
    Nonsense::Bytes("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nnonsense"),
    Nonsense::Bytes("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    Nonsense::Bytes("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnull"),
    Nonsense::Bytes("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}"),
    Nonsense::Bytes("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} "),
    Nonsense::Bytes(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\n{}",
    ),
    Nonsense::Bytes(
        "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
    ),
    Nonsense::Bytes("HTTP/1.1 204 No Content\r\n\r\n"),
    Nonsense::Bytes(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    ),
    Nonsense::Bytes(
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x08\x00\x01",
    ),
    Nonsense::EndlessHead,
    Nonsense::EndlessBody,
    Nonsense::Huge,
    Nonsense::Slow,
    Nonsense::Nothing,
];

impl Nonsense {
    async fn say(self, socket: &mut TcpStream) -> std::io::Result<()> {
        if let Self::Nothing = self {
            return Ok(());
        }
        let _ = socket.read(&mut [0; 4_096]).await?;
        let head = b"HTTP/1.1 200 OK\r\n";
        match self {
            Self::Bytes(bytes) => socket.write_all(bytes.as_bytes()).await?,
            Self::EndlessHead => {
                socket.write_all(head).await?;
                loop {
                    socket.write_all(b"X-Line: nonsense\r\n").await?;
                }
            }
            Self::EndlessBody => {
                socket.write_all(head).await?;
                socket.write_all(b"Transfer-Encoding: chunked\r\n\r\n").await?;
                loop {
                    socket.write_all(b"10\r\n                \r\n").await?;
                }
            }
            Self::Huge => {
                socket.write_all(head).await?;
                socket.write_all(b"Content-Length: 1000000000\r\n\r\n").await?;
                loop {
                    socket.write_all(&[b' '; 1 << 16]).await?;
                }
            }
            Self::Slow => {
                socket.write_all(head).await?;
                socket.write_all(b"Content-Length: 100\r\n\r\n").await?;
                loop {
                    socket.write_all(b" ").await?;
                    sleep(Duration::from_millis(100)).await;
                }
            }
            Self::Nothing => {}
        }
        Ok(())
    }
}

/// Somebody who says that to everybody.
async fn speaker(nonsense: Nonsense) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("it listens");
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                // Whoever hears it may hang up.
                let _ = nonsense.say(&mut socket).await;
            });
        }
    });
    address
}

async fn relay(token: Value, rpc: Option<SocketAddr>) -> Relay {
    let mut settings = json!({
        "client": { "token": token },
        "channel": { "namespaces": [{ "name": "news", "allow_subscribe_for_client": true }] },
    });
    if let Some(address) = rpc {
        settings["rpc"] = json!({
            "proxy": { "endpoint": format!("http://{address}/rpc"), "timeout": "1s" },
            "without_namespace": { "proxy_enabled": true },
        });
    }
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    start(settings, "127.0.0.1:0".parse().expect("an address")).await.expect("it starts")
}

fn connect(kid: Option<&str>) -> Value {
    let header = Header { kid: kid.map(str::to_owned), ..Header::default() };
    let claims = json!({ "sub": "ada" });
    let token = encode(&header, &claims, &EncodingKey::from_secret(b"secret")).expect("a token");
    json!({ "id": 1, "connect": { "token": token } })
}

#[tokio::test]
async fn a_backend_that_answers_nonsense_is_a_temporary_error_in_its_time() {
    for nonsense in ALL {
        let relay =
            relay(json!({ "hmac_secret_key": "secret" }), Some(speaker(nonsense).await)).await;
        let mut client = Listener::open(&relay, &[]).await;
        client.ask(connect(None)).await;
        for id in 2..5 {
            let began = Instant::now();
            let reply = client.reply(json!({ "id": id, "rpc": { "method": "x" } })).await;
            let error = &reply["error"];
            assert_eq!(
                (&error["code"], &error["temporary"]),
                (&json!(100), &json!(true)),
                "{nonsense:?}"
            );
            assert!(began.elapsed() < PATIENCE, "{nonsense:?} took {:?}", began.elapsed());
        }
        client.ask(json!({ "id": 9, "subscribe": { "channel": "news:x" } })).await;
        relay.stop().await;
    }
}

#[tokio::test]
async fn a_provider_of_keys_that_answers_nonsense_is_a_temporary_error_in_its_time() {
    for nonsense in ALL {
        let url = format!("http://{}/keys", speaker(nonsense).await);
        let token = json!({ "hmac_secret_key": "secret", "jwks_public_endpoint": url });
        let relay = relay(token, None).await;
        for _ in 0..2 {
            let began = Instant::now();
            let mut client = Listener::open(&relay, &[]).await;
            let reply = client.reply(connect(Some("one"))).await;
            let error = &reply["error"];
            assert_eq!(
                (&error["code"], &error["temporary"]),
                (&json!(100), &json!(true)),
                "{nonsense:?}"
            );
            assert!(began.elapsed() < PATIENCE, "{nonsense:?} took {:?}", began.elapsed());
        }
        let mut other = Listener::open(&relay, &[]).await;
        other.ask(connect(None)).await;
        relay.stop().await;
    }
}
