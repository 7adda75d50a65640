//! A client of the relay over a real socket, in JSON, and a database that a backend writes to.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_postgres::{Client, NoTls};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Only turns a promise that is never kept into a failure.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Listener {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    waiting: Vec<Value>,
}

impl Listener {
    /// Connects without a token and subscribes.
    pub(crate) async fn subscribe(relay: &folkmoot_relay::Relay, channels: &[&str]) -> Self {
        let url = format!("ws://{}/connection/websocket", relay.address());
        let (socket, _) = connect_async(url).await.expect("the relay takes connections");
        let mut listener = Self { socket, waiting: Vec::new() };
        listener.ask(json!({"id": 1, "connect": {}})).await;
        for (id, channel) in (2..).zip(channels) {
            listener.ask(json!({"id": id, "subscribe": {"channel": channel}})).await;
        }
        listener
    }

    /// Sends a command and waits for its reply.
    async fn ask(&mut self, command: Value) {
        let id = command["id"].clone();
        self.socket.send(Message::text(command.to_string())).await.expect("the socket is open");
        loop {
            let message = self.message().await;
            if message["id"] == id {
                assert!(message["error"].is_null(), "{command}: {message}");
                return;
            }
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

    async fn message(&mut self) -> Value {
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

/// A connection of the backend.
pub(crate) async fn database(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}
