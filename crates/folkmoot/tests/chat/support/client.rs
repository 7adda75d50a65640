//! A small client of the protocol: numbers commands, matches replies, keeps pushes in order.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Long enough for a busy machine; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(20);

/// An error reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: u64,
    pub(crate) message: String,
}

pub(crate) struct Client {
    pub(crate) socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    next_id: u64,
    /// What came and was not asked for yet.
    replies: VecDeque<Value>,
    pushes: VecDeque<Value>,
    pub(crate) closed: Option<(u16, String)>,
    /// The connect reply.
    pub(crate) hello: Value,
}

impl Client {
    pub(crate) async fn open(server: SocketAddr) -> Self {
        let address = format!("ws://{server}/connection/websocket");
        let (socket, _) = connect_async(address).await.expect("the server accepts sockets");
        Self {
            socket,
            next_id: 1,
            replies: VecDeque::new(),
            pushes: VecDeque::new(),
            closed: None,
            hello: Value::Null,
        }
    }

    pub(crate) async fn connect(&mut self, token: &str) -> Result<Value, Failure> {
        self.connect_with(json!({"token": token})).await
    }

    pub(crate) async fn connect_with(&mut self, request: Value) -> Result<Value, Failure> {
        let reply = self.command("connect", request).await?;
        self.hello = reply.clone();
        Ok(reply)
    }

    /// Sends a command and waits for its reply.
    pub(crate) async fn command(&mut self, kind: &str, request: Value) -> Result<Value, Failure> {
        let id = self.post(kind, request).await;
        self.reply(id, kind).await
    }

    /// Sends a command without waiting; returns its number.
    pub(crate) async fn post(&mut self, kind: &str, request: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.raw(json!({"id": id, kind: request}).to_string()).await;
        id
    }

    pub(crate) async fn raw(&mut self, text: String) {
        // A refused frame may close the socket while it is being written.
        let _ = self.socket.send(Message::text(text)).await;
    }

    /// Waits for the reply to a command.
    pub(crate) async fn reply(&mut self, id: u64, kind: &str) -> Result<Value, Failure> {
        loop {
            let found = self.replies.iter().position(|reply| reply["id"] == id);
            if let Some(mut reply) = found.and_then(|at| self.replies.remove(at)) {
                if let Some(error) = reply.get("error") {
                    let code = error["code"].as_u64().expect("a code");
                    let message = error["message"].as_str().unwrap_or_default().to_owned();
                    return Err(Failure { code, message });
                }
                return Ok(reply[kind].take());
            }
            assert!(self.closed.is_none(), "closed while waiting for {kind}: {:?}", self.closed);
            self.receive().await;
        }
    }

    /// Calls a chat method.
    pub(crate) async fn rpc(&mut self, method: &str, data: Value) -> Result<Value, Failure> {
        let mut result = self.command("rpc", json!({"method": method, "data": data})).await?;
        Ok(result["data"].take())
    }

    /// Calls a chat method that must succeed.
    pub(crate) async fn call(&mut self, method: &str, data: Value) -> Value {
        let answer = self.rpc(method, data).await;
        answer.unwrap_or_else(|failure| panic!("{method}: {failure:?}"))
    }

    /// Calls a chat method that must fail.
    pub(crate) async fn fail(&mut self, method: &str, data: Value) -> Failure {
        match self.rpc(method, data).await {
            Ok(answer) => panic!("{method} succeeded: {answer}"),
            Err(failure) => failure,
        }
    }

    pub(crate) async fn subscribe(&mut self, room: &str) -> Value {
        let request = json!({"channel": format!("room:{room}")});
        self.command("subscribe", request).await.expect("a member may subscribe")
    }

    /// Subscribes and says what was missed after a position.
    pub(crate) async fn recover(&mut self, room: &str, offset: u64, epoch: &str) -> Value {
        let channel = format!("room:{room}");
        let request =
            json!({"channel": channel, "recover": true, "offset": offset, "epoch": epoch});
        self.command("subscribe", request).await.expect("a member may subscribe")
    }

    /// A room with this client as its owner.
    pub(crate) async fn create_room(&mut self, name: &str) -> String {
        let room = self.call("room.create", json!({"name": name})).await;
        room["id"].as_str().expect("an id").to_owned()
    }

    /// Sends a message; returns its number.
    pub(crate) async fn say(&mut self, room: &str, key: &str, body: &str) -> u64 {
        let sent = self.call("message.send", json!({"room": room, "key": key, "body": body})).await;
        sent["seq"].as_u64().expect("a number")
    }

    /// Invites another client into a room.
    pub(crate) async fn invite(&mut self, room: &str, other: &mut Self) {
        let invite = self.call("invite.create", json!({"room": room})).await;
        other.call("invite.accept", json!({"code": invite["code"]})).await;
    }

    /// The next push on a channel, with its offset in `offset` of the publication.
    pub(crate) async fn push(&mut self, channel: &str) -> Value {
        loop {
            let found = self.pushes.iter().position(|push| push["channel"] == channel);
            if let Some(push) = found.and_then(|at| self.pushes.remove(at)) {
                return push;
            }
            assert!(self.closed.is_none(), "closed while waiting for {channel}: {:?}", self.closed);
            self.receive().await;
        }
    }

    /// The next push on whatever channel.
    pub(crate) async fn any_push(&mut self) -> Value {
        loop {
            if let Some(push) = self.pushes.pop_front() {
                return push;
            }
            assert!(self.closed.is_none(), "closed while waiting: {:?}", self.closed);
            self.receive().await;
        }
    }

    /// The data of the next publication of a type on a channel; others are passed over.
    pub(crate) async fn event(&mut self, channel: &str, kind: &str) -> Value {
        loop {
            let mut push = self.push(channel).await;
            if push["pub"]["data"]["type"] == kind {
                return push["pub"]["data"].take();
            }
        }
    }

    /// The next message in a room.
    pub(crate) async fn message(&mut self, room: &str) -> Value {
        self.event(&format!("room:{room}"), "message").await
    }

    /// Waits until the server closes; returns the code.
    pub(crate) async fn closed(&mut self) -> u16 {
        while self.closed.is_none() {
            self.receive().await;
        }
        self.closed.as_ref().map_or(0, |(code, _)| *code)
    }

    /// Whether a command got a reply without an error.
    pub(crate) fn answered(&self, id: u64) -> bool {
        self.replies.iter().any(|reply| reply["id"] == id && reply.get("error").is_none())
    }

    /// Reads one WebSocket message.
    pub(crate) async fn receive(&mut self) {
        let received = tokio::time::timeout(PATIENCE, self.socket.next()).await;
        match received.expect("the server answers in time") {
            Some(Ok(Message::Text(text))) => self.take(text.as_str()).await,
            Some(Ok(Message::Close(frame))) => {
                let frame = frame.expect("a close frame with a code");
                self.closed = Some((frame.code.into(), frame.reason.to_string()));
            }
            Some(Ok(_)) => {}
            Some(Err(_)) | None => {
                self.closed.get_or_insert((1006, "gone".to_owned()));
            }
        }
    }

    async fn take(&mut self, text: &str) {
        for line in text.lines() {
            let reply: Value = serde_json::from_str(line).expect("every line is JSON");
            if reply == json!({}) {
                self.raw("{}".to_owned()).await;
            } else if let Some(push) = reply.get("push") {
                self.pushes.push_back(push.clone());
            } else {
                self.replies.push_back(reply);
            }
        }
    }

    /// How many pushes on a channel came and were not asked for yet.
    pub(crate) fn waiting_pushes(&self, channel: &str) -> usize {
        self.pushes.iter().filter(|push| push["channel"] == channel).count()
    }

    /// Drops the connection without a word.
    pub(crate) fn vanish(self) {
        drop(self.socket);
    }
}
