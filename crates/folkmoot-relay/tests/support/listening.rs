//! A client that only listens, by each of the transports for it.

use std::time::Duration;

use folkmoot_relay::Relay;
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

/// Only turns a promise that is never kept into a failure.
const PATIENCE: Duration = Duration::from_secs(60);
/// What the system keeps for a socket that nobody reads: the server has to notice soon.
const RECEIVED_BYTES_MAX: u32 = 16 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Events,
    HttpStream,
    WebSocket,
}

pub(crate) const TRANSPORTS: [Transport; 3] =
    [Transport::Events, Transport::HttpStream, Transport::WebSocket];

/// A connection, and what was read of it.
pub(crate) enum Silent {
    Http(Response),
    Socket(Box<WebSocketStream<TcpStream>>),
}

/// A response that goes on.
pub(crate) struct Response {
    pub(crate) socket: TcpStream,
    pub(crate) status: u16,
    pub(crate) head: String,
    /// As it came, behind the head.
    raw: Vec<u8>,
    /// Without the lengths of chunks.
    body: Vec<u8>,
    is_over: bool,
}

impl Silent {
    /// Connects with a connect request.
    pub(crate) async fn open(relay: &Relay, transport: Transport, connect: &Value) -> Self {
        let socket = TcpStream::connect(relay.address()).await.expect("it listens");
        Self::open_by(socket, transport, connect).await
    }

    /// Connects by a socket that takes little before it is full.
    pub(crate) async fn narrow(relay: &Relay, transport: Transport, connect: &Value) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(RECEIVED_BYTES_MAX).expect("a size");
        let socket = socket.connect(relay.address()).await.expect("it listens");
        Self::open_by(socket, transport, connect).await
    }

    async fn open_by(socket: TcpStream, transport: Transport, connect: &Value) -> Self {
        let connect = connect.to_string();
        match transport {
            Transport::Events => {
                let query: String = connect.bytes().map(|byte| format!("%{byte:02x}")).collect();
                let head = format!("GET /connection/uni_sse?cf_connect={query} HTTP/1.1");
                Self::Http(Response::by(socket, &head, "").await)
            }
            Transport::HttpStream => {
                let head = "POST /connection/uni_http_stream HTTP/1.1";
                Self::Http(Response::by(socket, head, &connect).await)
            }
            Transport::WebSocket => {
                let url = "ws://here/connection/uni_websocket";
                let opened = client_async(url, socket).await;
                let (mut socket, _) = opened.expect("it takes connections");
                socket.send(Message::text(connect)).await.expect("it is open");
                Self::Socket(Box::new(socket))
            }
        }
    }

    /// The next push that is no ping; `None`: the connection is over.
    pub(crate) async fn hear(&mut self) -> Option<Value> {
        loop {
            let text = self.text().await?;
            if text != "{}" {
                return Some(serde_json::from_str(&text).expect("one value of JSON"));
            }
        }
    }

    /// The text of the next push or ping.
    pub(crate) async fn text(&mut self) -> Option<String> {
        match self {
            Self::Http(response) => loop {
                let line = response.line().await?;
                // Of events, a line is `data: …` and an empty one follows.
                if !line.is_empty() {
                    return Some(line.strip_prefix("data: ").unwrap_or(&line).to_owned());
                }
            },
            Self::Socket(socket) => loop {
                match timeout(PATIENCE, socket.next()).await.expect("nothing came")?.ok()? {
                    Message::Text(text) => return Some(text.to_string()),
                    Message::Close(_) => return None,
                    _ => {}
                }
            },
        }
    }

    /// Hears until the end; returns the disconnect that came last.
    pub(crate) async fn end(&mut self) -> Value {
        let mut last = Value::Null;
        while let Some(push) = self.hear().await {
            last = push;
        }
        last["disconnect"].clone()
    }
}

impl Response {
    /// Asks, and reads the head of the answer.
    pub(crate) async fn to(relay: &Relay, head: &str, body: &str) -> Self {
        let socket = TcpStream::connect(relay.address()).await.expect("it listens");
        Self::by(socket, head, body).await
    }

    async fn by(mut socket: TcpStream, head: &str, body: &str) -> Self {
        let len = body.len();
        let text = format!("{head}\r\nHost: here\r\nContent-Length: {len}\r\n\r\n{body}");
        socket.write_all(text.as_bytes()).await.expect("it is open");
        let (head, body) = (String::new(), Vec::new());
        let mut response = Self { socket, status: 0, head, raw: Vec::new(), body, is_over: false };
        let end = loop {
            if let Some(end) = find(&response.raw, b"\r\n\r\n") {
                break end;
            }
            assert!(response.more().await, "it ended without a head");
        };
        let rest = response.raw.split_off(end + 4);
        response.head =
            String::from_utf8(std::mem::replace(&mut response.raw, rest)).expect("text");
        let status = response.head.split(' ').nth(1).and_then(|status| status.parse().ok());
        response.status = status.expect("a status");
        response
    }

    /// Reads what has come; `false`: the connection has ended.
    async fn more(&mut self) -> bool {
        let read = timeout(PATIENCE, self.socket.read_buf(&mut self.raw)).await;
        read.expect("nothing came").is_ok_and(|read| read > 0)
    }

    /// The next line of the body, without its end.
    pub(crate) async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = find(&self.body, b"\n") {
                let rest = self.body.split_off(end + 1);
                let line = std::mem::replace(&mut self.body, rest);
                return Some(String::from_utf8(line[..end].to_vec()).expect("text"));
            }
            while self.take_chunk() {}
            let has_line = self.body.contains(&b'\n');
            if !has_line && (self.is_over || !self.more().await) {
                return None;
            }
        }
    }

    /// All bytes behind the head, until the connection ends.
    pub(crate) async fn rest(mut self) -> Vec<u8> {
        while self.more().await {}
        self.raw
    }

    /// Moves a whole chunk into the body, if there is one.
    fn take_chunk(&mut self) -> bool {
        let Some(end) = find(&self.raw, b"\r\n") else { return false };
        let len = std::str::from_utf8(&self.raw[..end]).expect("a length");
        let len = usize::from_str_radix(len, 16).expect("a length");
        let whole = end + 2 + len + 2;
        if self.raw.len() < whole {
            return false;
        }
        self.is_over |= len == 0;
        self.body.extend_from_slice(&self.raw[end + 2..end + 2 + len]);
        self.raw.drain(..whole);
        true
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
