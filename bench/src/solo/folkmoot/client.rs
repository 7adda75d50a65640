//! One chat client: a WebSocket in the JSON format that browsers use, one command at a time.

use anyhow::{Context, Result, bail};
use folkmoot_protocol::chat::{MessageEvent, RoomEvent};
use folkmoot_protocol::frame::{
    Command, ConnectRequest, Outcome, PushKind, Reply, Request, RpcRequest, SubscribeRequest,
    SubscribeResult, UnsubscribeRequest,
};
use folkmoot_protocol::rpc::{Method, encode_payload};
use folkmoot_protocol::{Channel, Format};
use futures_util::{SinkExt, StreamExt};
use std::collections::VecDeque;
use std::net::SocketAddr;
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

const FORMAT: Format = Format::Json;
/// Holds a message or two: thousands of clients share this process.
const READ_BUFFER_BYTES: usize = 4 * 1024;
/// One address has ports for some 28,000 connections to one server, closed ones among them.
const ADDRESSES: usize = 200;

/// A connected, authenticated client.
pub(in crate::solo) struct Client {
    socket: WebSocketStream<TcpStream>,
    last_id: u32,
    /// Replies and pushes of the last frame that nobody has taken yet.
    waiting: VecDeque<Reply>,
}

impl Client {
    /// Connects and says who one is. `number` chooses the local address to come from.
    pub(in crate::solo) async fn connect(
        address: SocketAddr,
        number: usize,
        token: String,
    ) -> Result<Self> {
        let socket = TcpSocket::new_v4().context("a socket")?;
        let last = u8::try_from(2 + number % ADDRESSES)?;
        socket.bind(SocketAddr::from(([127, 0, 0, last], 0))).context("a local address")?;
        let stream = socket.connect(address).await.context("connect to the server")?;
        stream.set_nodelay(true)?;
        let config = WebSocketConfig::default().read_buffer_size(READ_BUFFER_BYTES);
        let url = format!("ws://{address}/connection/websocket");
        let (socket, _) =
            tokio_tungstenite::client_async_with_config(url, stream, Some(config)).await?;
        let mut client = Self { socket, last_id: 0, waiting: VecDeque::new() };
        let connect = Request::Connect(ConnectRequest { token, ..ConnectRequest::default() });
        client.call(connect).await.context("connect")?;
        Ok(client)
    }

    pub(in crate::solo) async fn subscribe(&mut self, channel: Channel) -> Result<SubscribeResult> {
        let channel = channel.to_string();
        self.subscribe_with(SubscribeRequest { channel, ..SubscribeRequest::default() }).await
    }

    /// Subscribes from a position, or however the request says.
    pub(in crate::solo) async fn subscribe_with(
        &mut self,
        request: SubscribeRequest,
    ) -> Result<SubscribeResult> {
        match self.call(Request::Subscribe(request)).await.context("subscribe")? {
            Outcome::Subscribe(result) => Ok(result),
            other => bail!("a subscription was answered by {other:?}"),
        }
    }

    pub(in crate::solo) async fn unsubscribe(&mut self, channel: Channel) -> Result<()> {
        let channel = channel.to_string();
        let request = UnsubscribeRequest { channel };
        self.call(Request::Unsubscribe(request)).await.context("unsubscribe")?;
        Ok(())
    }

    /// Calls a method and waits for its reply.
    pub(in crate::solo) async fn rpc<M: Method>(&mut self, request: &M) -> Result<M::Reply> {
        let rpc = RpcRequest { method: M::NAME.to_owned(), data: encode_payload(request) };
        match self.call(Request::Rpc(rpc)).await.context(M::NAME)? {
            Outcome::Rpc(result) => Ok(serde_json::from_slice(&result.data)?),
            other => bail!("{} was answered by {other:?}", M::NAME),
        }
    }

    /// Waits for the next message of a subscribed room; anything else is an error.
    pub(in crate::solo) async fn next_message(&mut self) -> Result<MessageEvent> {
        match self.next_event().await? {
            RoomEvent::Message(message) => Ok(*message),
            other => bail!("unexpected event {other:?}"),
        }
    }

    /// Waits for the next event of a subscribed room.
    pub(in crate::solo) async fn next_event(&mut self) -> Result<RoomEvent> {
        loop {
            let reply = self.next_reply().await?;
            let Some(Outcome::Push(push)) = reply.outcome else { continue };
            let Some(PushKind::Pub(publication)) = push.kind else { continue };
            if push.channel.starts_with("room:") {
                return Ok(serde_json::from_slice(&publication.data)?);
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
