//! One chat client: a WebSocket in the JSON format that browsers use, one command at a time.

use anyhow::{Context, Result, bail};
use folkmoot_protocol::chat::{MessageEvent, RoomEvent};
use folkmoot_protocol::frame::{
    Command, ConnectRequest, Outcome, PushKind, Reply, Request, RpcRequest, SubscribeRequest,
};
use folkmoot_protocol::rpc::{Method, encode_payload};
use folkmoot_protocol::{Channel, Format};
use futures_util::{SinkExt, StreamExt};
use std::collections::VecDeque;
use std::net::SocketAddr;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

const FORMAT: Format = Format::Json;

/// A connected, authenticated client.
pub(super) struct Client {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    last_id: u32,
    /// Replies and pushes of the last frame that nobody has taken yet.
    waiting: VecDeque<Reply>,
}

impl Client {
    pub(super) async fn connect(address: SocketAddr, token: String) -> Result<Self> {
        let url = format!("ws://{address}/connection/websocket");
        let (socket, _) = tokio_tungstenite::connect_async(url).await?;
        let mut client = Self { socket, last_id: 0, waiting: VecDeque::new() };
        let connect = Request::Connect(ConnectRequest { token, ..ConnectRequest::default() });
        client.call(connect).await.context("connect")?;
        Ok(client)
    }

    pub(super) async fn subscribe(&mut self, channel: Channel) -> Result<()> {
        let channel = channel.to_string();
        let request = SubscribeRequest { channel, ..SubscribeRequest::default() };
        self.call(Request::Subscribe(request)).await.context("subscribe")?;
        Ok(())
    }

    /// Calls a method and waits for its reply.
    pub(super) async fn rpc<M: Method>(&mut self, request: &M) -> Result<M::Reply> {
        let rpc = RpcRequest { method: M::NAME.to_owned(), data: encode_payload(request) };
        match self.call(Request::Rpc(rpc)).await.context(M::NAME)? {
            Outcome::Rpc(result) => Ok(serde_json::from_slice(&result.data)?),
            other => bail!("{} was answered by {other:?}", M::NAME),
        }
    }

    /// Waits for the next message of a subscribed room.
    pub(super) async fn next_message(&mut self) -> Result<MessageEvent> {
        loop {
            let reply = self.next_reply().await?;
            let Some(Outcome::Push(push)) = reply.outcome else { continue };
            let Some(PushKind::Pub(publication)) = push.kind else { continue };
            if !push.channel.starts_with("room:") {
                continue;
            }
            match serde_json::from_slice(&publication.data)? {
                RoomEvent::Message(message) => return Ok(*message),
                other => bail!("unexpected event {other:?}"),
            }
        }
    }

    async fn call(&mut self, request: Request) -> Result<Outcome> {
        self.last_id += 1;
        let id = self.last_id;
        self.write(&Command { id, request: Some(request) }).await?;
        loop {
            let reply = self.next_reply().await?;
            if reply.id != id {
                continue;
            }
            if let Some(error) = reply.error {
                bail!("error {}: {}", error.code, error.message);
            }
            return reply.outcome.context("a reply without an outcome");
        }
    }

    /// The next reply or push; answers pings on the way.
    async fn next_reply(&mut self) -> Result<Reply> {
        loop {
            match self.waiting.pop_front() {
                Some(reply) if reply.is_ping() => self.write(&Command::default()).await?,
                Some(reply) => return Ok(reply),
                None => self.read().await?,
            }
        }
    }

    async fn read(&mut self) -> Result<()> {
        match self.socket.next().await.context("the server closed the connection")?? {
            Message::Text(text) => self.waiting.extend(FORMAT.decode_replies(text.as_bytes())?),
            Message::Close(frame) => bail!("the server closed the connection: {frame:?}"),
            _ => {}
        }
        Ok(())
    }

    async fn write(&mut self, command: &Command) -> Result<()> {
        let mut frame = Vec::new();
        FORMAT.encode_command(command, &mut frame)?;
        self.socket.send(Message::Text(String::from_utf8(frame)?.into())).await?;
        Ok(())
    }
}
