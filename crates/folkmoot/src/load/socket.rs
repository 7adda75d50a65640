//! One client connection, as light as it can be: ten thousand of them share a machine with the
//! server that they are to measure.

use std::collections::VecDeque;
use std::net::SocketAddr;

use folkmoot_protocol::Format;
use folkmoot_protocol::frame::{Command, ConnectRequest, Outcome, Reply, Request, RpcRequest};
use folkmoot_protocol::rpc::{Method, encode_payload};
use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

/// What browsers speak.
const FORMAT: Format = Format::Json;
/// Holds a message or two; the default of 128 KiB would be more than a gigabyte for all.
const READ_BUFFER_BYTES: usize = 4 * 1024;
/// One address has ports for some 28,000 connections to one server.
const ADDRESSES: usize = 200;

/// Why a connection is of no use, or what it asked for was not done.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Nobody listens there, or there are no descriptors.
    #[error("cannot connect: {0}")]
    Connect(#[from] std::io::Error),
    /// It ended without a word, or in the middle of one.
    #[error("the connection broke: {0}")]
    Broken(Box<tokio_tungstenite::tungstenite::Error>),
    /// With a code and a reason.
    #[error("the server closed the connection: {0}")]
    Closed(String),
    /// The server does not speak the protocol.
    #[error("not understood: {0}")]
    NotUnderstood(String),
    /// The connection goes on.
    #[error("{what} was refused with {code}: {message}")]
    Refused {
        /// What was asked for.
        what: &'static str,
        /// The code of the error.
        code: u32,
        /// Its text.
        message: String,
    },
}

impl From<tokio_tungstenite::tungstenite::Error> for SocketError {
    fn from(error: tokio_tungstenite::tungstenite::Error) -> Self {
        Self::Broken(Box::new(error))
    }
}

#[derive(Debug)]
pub(super) struct Socket {
    stream: WebSocketStream<TcpStream>,
    last_id: u32,
    /// What the last frame held and nobody has taken yet.
    replies: VecDeque<Reply>,
}

impl Socket {
    /// Connects and says who one is. `number` chooses the address to come from.
    pub(super) async fn open(
        server: SocketAddr,
        number: usize,
        token: &str,
    ) -> Result<Self, SocketError> {
        let stream = dial(server, number).await?;
        stream.set_nodelay(true)?;
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(0)
            .max_write_buffer_size(usize::MAX);
        let url = format!("ws://{server}/connection/websocket");
        let (stream, _) =
            tokio_tungstenite::client_async_with_config(url, stream, Some(config)).await?;
        let mut socket = Self { stream, last_id: 0, replies: VecDeque::new() };
        let token = token.to_owned();
        let connect = Request::Connect(ConnectRequest { token, ..ConnectRequest::default() });
        socket.ask("connect", connect).await?;
        Ok(socket)
    }

    /// Calls a method and waits for what it answers.
    pub(super) async fn call<M: Method>(&mut self, request: &M) -> Result<M::Reply, SocketError> {
        match self.ask(M::NAME, rpc(request)).await? {
            Outcome::Rpc(result) => serde_json::from_slice(&result.data)
                .map_err(|error| SocketError::NotUnderstood(error.to_string())),
            other => Err(SocketError::NotUnderstood(format!("{other:?}"))),
        }
    }

    async fn ask(&mut self, what: &'static str, request: Request) -> Result<Outcome, SocketError> {
        let id = self.send(vec![request]).await?;
        loop {
            let reply = self.next().await?;
            if reply.id == id {
                return outcome(what, reply);
            }
        }
    }

    /// Sends requests in one frame; gives the number of the first, the others follow it.
    pub(super) async fn send(&mut self, requests: Vec<Request>) -> Result<u32, SocketError> {
        let first = self.last_id + 1;
        let mut frame = Vec::new();
        for request in requests {
            self.last_id += 1;
            let command = Command { id: self.last_id, request: Some(request) };
            FORMAT.encode_command(&command, &mut frame).expect("our payloads are JSON");
        }
        self.write(frame).await?;
        Ok(first)
    }

    /// The next reply or push; answers pings by itself.
    ///
    /// # Cancel safety
    /// Nothing is lost when dropped.
    pub(super) async fn next(&mut self) -> Result<Reply, SocketError> {
        loop {
            match self.replies.front() {
                Some(reply) if reply.is_ping() => {
                    let mut pong = Vec::new();
                    let command = Command::default();
                    FORMAT.encode_command(&command, &mut pong).expect("it has no payload");
                    self.write(pong).await?;
                    self.replies.pop_front();
                }
                Some(_) => return Ok(self.replies.pop_front().expect("it is there")),
                None => self.read().await?,
            }
        }
    }

    async fn read(&mut self) -> Result<(), SocketError> {
        match self.stream.next().await {
            Some(Ok(Message::Text(text))) => {
                let replies = FORMAT.decode_replies(text.as_bytes());
                let replies =
                    replies.map_err(|error| SocketError::NotUnderstood(error.to_string()))?;
                self.replies.extend(replies);
                Ok(())
            }
            Some(Ok(Message::Close(frame))) => {
                let why = frame.map(|frame| format!("{} {}", u16::from(frame.code), frame.reason));
                Err(SocketError::Closed(why.unwrap_or_default()))
            }
            Some(Ok(_)) => Ok(()),
            Some(Err(error)) => Err(error.into()),
            None => Err(SocketError::Closed("without a word".to_owned())),
        }
    }

    async fn write(&mut self, frame: Vec<u8>) -> Result<(), SocketError> {
        let text = String::from_utf8(frame).expect("JSON is UTF-8");
        Ok(self.stream.send(Message::text(text)).await?)
    }
}

pub(super) fn rpc<M: Method>(request: &M) -> Request {
    Request::Rpc(RpcRequest { method: M::NAME.to_owned(), data: encode_payload(request) })
}

/// What came of a request, unless it was refused.
pub(super) fn outcome(what: &'static str, reply: Reply) -> Result<Outcome, SocketError> {
    if let Some(error) = reply.error {
        return Err(SocketError::Refused { what, code: error.code, message: error.message });
    }
    reply.outcome.ok_or_else(|| SocketError::NotUnderstood(format!("{what}: no outcome")))
}

/// To a server on this machine one comes from many of its addresses.
async fn dial(server: SocketAddr, number: usize) -> Result<TcpStream, SocketError> {
    if !matches!(server, SocketAddr::V4(server) if server.ip().is_loopback()) {
        return Ok(TcpStream::connect(server).await?);
    }
    let socket = TcpSocket::new_v4()?;
    let last = u8::try_from(2 + number % ADDRESSES).expect("fewer than 250");
    socket.bind(SocketAddr::from(([127, 0, 0, last], 0)))?;
    Ok(socket.connect(server).await?)
}
