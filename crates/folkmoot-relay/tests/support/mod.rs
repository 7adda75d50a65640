//! A client of the relay over a real socket, in JSON, and a database that a backend writes to.

#![allow(dead_code)] // Not every test uses all of it.

pub(crate) mod asked;
pub(crate) mod grpc;
pub(crate) mod listening;

use std::time::Duration;

use althing_testkit::servers::PostgresServer;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_postgres::{Client, NoTls};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Only turns a promise that is never kept into a failure.
const PATIENCE: Duration = Duration::from_secs(60);
/// The same where pings come meanwhile, as they do for as long as the relay runs.
const PATIENCE_AMID_PINGS: Duration = Duration::from_secs(180);

pub(crate) struct Listener {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    waiting: Vec<Value>,
}

impl Listener {
    /// Connects without a token and subscribes.
    pub(crate) async fn subscribe(relay: &folkmoot_relay::Relay, channels: &[&str]) -> Self {
        let mut listener = Self::open(relay, &[]).await;
        listener.ask(json!({"id": 1, "connect": {}})).await;
        for (id, channel) in (2..).zip(channels) {
            listener.ask(json!({"id": id, "subscribe": {"channel": channel}})).await;
        }
        listener
    }

    /// Connects and subscribes with all that the channel keeps.
    pub(crate) async fn recover(relay: &folkmoot_relay::Relay, channel: &str) -> Self {
        let mut listener = Self::subscribe(relay, &[channel]).await;
        let history = json!({"id": 9, "history": {"channel": channel, "limit": -1}});
        let kept = listener.ask(history).await;
        let kept = kept["history"]["publications"].as_array().cloned().unwrap_or_default();
        let pushes = std::mem::take(&mut listener.waiting);
        let push = |kept| json!({ "push": { "channel": channel, "pub": kept } });
        listener.waiting = kept.into_iter().map(push).collect();
        let last = listener.waiting.last().map_or(0, offset);
        listener.waiting.extend(pushes.into_iter().filter(|push| offset(push) > last));
        listener
    }

    /// Opens a socket with these headers, and says nothing.
    pub(crate) async fn open(
        relay: &folkmoot_relay::Relay,
        headers: &[(&'static str, &str)],
    ) -> Self {
        let url = format!("ws://{}/connection/websocket", relay.address());
        let mut request = url.into_client_request().expect("a URL");
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().expect("a header"));
        }
        let (socket, _) = connect_async(request).await.expect("the relay takes connections");
        Self { socket, waiting: Vec::new() }
    }

    /// Sends a command and waits for its reply, which is no error.
    pub(crate) async fn ask(&mut self, command: Value) -> Value {
        let reply = self.reply(command).await;
        assert!(reply["error"].is_null(), "{reply}");
        reply
    }

    /// Sends a command.
    pub(crate) async fn send(&mut self, command: Value) {
        self.socket.send(Message::text(command.to_string())).await.expect("the socket is open");
    }

    /// Sends a command and waits for its reply.
    pub(crate) async fn reply(&mut self, command: Value) -> Value {
        let id = command["id"].clone();
        self.send(command).await;
        let mut before = Vec::new();
        loop {
            let message = self.message().await;
            if message["id"] == id {
                // What was pushed meanwhile comes first.
                before.append(&mut self.waiting);
                self.waiting = before;
                return message;
            }
            before.push(message);
        }
    }

    /// The next publication: its channel and its data.
    pub(crate) async fn publication(&mut self) -> (String, Value) {
        loop {
            let message = self.message().await;
            let push = &message["push"];
            if let (Some(channel), Some(data)) = (push["channel"].as_str(), push["pub"].get("data"))
            {
                return (channel.to_owned(), data.clone());
            }
        }
    }

    /// Listens beside the test, which need not read to answer pings; ends with the connection.
    pub(crate) fn beside(mut self) -> mpsc::UnboundedReceiver<(String, Value)> {
        let (hearing, heard) = mpsc::unbounded_channel();
        let publication = |message: &Value| {
            let push = &message["push"];
            Some((push["channel"].as_str()?.to_owned(), push["pub"].get("data")?.clone()))
        };
        for one in self.waiting.iter().filter_map(publication) {
            let _ = hearing.send(one);
        }
        tokio::spawn(async move {
            while let Some(Ok(frame)) = self.socket.next().await {
                let Message::Text(text) = frame else { continue };
                for line in text.lines() {
                    if line == "{}" {
                        let _ = self.socket.send(Message::text("{}")).await;
                        continue;
                    }
                    let message = serde_json::from_str(line).expect("JSON");
                    if let Some(one) = publication(&message) {
                        let _ = hearing.send(one);
                    }
                }
            }
        });
        heard
    }

    /// Waits for the end of the connection; returns its code and reason.
    pub(crate) async fn end(&mut self) -> (u16, String) {
        loop {
            let frame = timeout(PATIENCE, self.socket.next()).await.expect("it goes on");
            if let Some(Ok(Message::Close(Some(close)))) = frame {
                return (close.code.into(), close.reason.to_string());
            }
        }
    }

    /// The next push.
    pub(crate) async fn message(&mut self) -> Value {
        timeout(PATIENCE_AMID_PINGS, self.next_message()).await.expect("nothing but pings came")
    }

    async fn next_message(&mut self) -> Value {
        loop {
            if !self.waiting.is_empty() {
                return self.waiting.remove(0);
            }
            let frame = timeout(PATIENCE, self.socket.next()).await.expect("nothing came");
            let Message::Text(text) = frame.expect("the socket is open").expect("it reads") else {
                continue;
            };
            if text == "{}" {
                self.socket.send(Message::text("{}")).await.expect("the socket is open");
                continue;
            }
            let lines = text.lines().filter(|line| *line != "{}");
            self.waiting = lines.map(|line| serde_json::from_str(line).expect("JSON")).collect();
        }
    }
}

fn offset(push: &Value) -> u64 {
    push["push"]["pub"]["offset"].as_u64().unwrap_or(0)
}

/// Calls the server API, whose key is `key`; returns its answer with its head.
pub(crate) async fn post(relay: &folkmoot_relay::Relay, method: &str, params: &Value) -> String {
    post_as(relay, "key", method, params).await
}

/// Calls a method with that key; returns the answer with its head.
pub(crate) async fn post_as(
    relay: &folkmoot_relay::Relay,
    key: &str,
    method: &str,
    params: &Value,
) -> String {
    post_with(relay, key, method, params, "").await
}

/// Calls a method with that key and further headers; returns the answer with its head.
pub(crate) async fn post_with(
    relay: &folkmoot_relay::Relay,
    key: &str,
    method: &str,
    params: &Value,
    headers: &str,
) -> String {
    let body = params.to_string();
    let head = format!(
        "POST /api/{method} HTTP/1.1\r\nHost: here\r\nX-API-Key: {key}\r\nConnection: close\r\n\
         {headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    exchange(relay, &(head + &body)).await
}

/// Reads a page, with further headers; returns it with its head.
pub(crate) async fn get(relay: &folkmoot_relay::Relay, path: &str, headers: &str) -> String {
    get_from(relay, "localhost", path, headers).await
}

/// The same of a relay that is called by this name.
pub(crate) async fn get_from(
    relay: &folkmoot_relay::Relay,
    host: &str,
    path: &str,
    headers: &str,
) -> String {
    let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n");
    exchange(relay, &head).await
}

async fn exchange(relay: &folkmoot_relay::Relay, request: &str) -> String {
    let mut socket = TcpStream::connect(relay.address()).await.expect("it listens");
    socket.write_all(request.as_bytes()).await.expect("it is open");
    let mut answer = String::new();
    let read = timeout(PATIENCE, socket.read_to_string(&mut answer)).await;
    read.expect("nothing came").expect("it reads");
    answer
}

/// A connection of the backend.
pub(crate) async fn database(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// A server that keeps enough in its log for logical replication.
pub(crate) async fn logical_server() -> PostgresServer {
    let mut server = PostgresServer::start();
    let client = database(&server.url()).await.expect("it connects");
    let level = "ALTER SYSTEM SET wal_level = 'logical'";
    client.batch_execute(level).await.expect("it is set");
    server = tokio::task::spawn_blocking(move || {
        server.start_again();
        server
    })
    .await
    .expect("it starts again");
    server
}

/// Kills the database so many times while others use it; returns it running.
pub(crate) async fn killed(mut server: PostgresServer, times: usize) -> PostgresServer {
    for _ in 0..times {
        // Work that the kill interrupts.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let restart = tokio::task::spawn_blocking(move || {
            server.kill();
            server.start_again();
            server
        });
        server = restart.await.expect("it starts again");
    }
    server
}
