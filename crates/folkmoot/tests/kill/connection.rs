//! One WebSocket with commands going out and replies coming in. Any failure means that the
//! connection is lost; only `call`, for the calm before and after the storm, waits for its own
//! answer.

use std::collections::VecDeque;

use bytes::Bytes;
use folkmoot_protocol::frame::{Command, ConnectRequest, Outcome, Reply, Request, RpcRequest};
use folkmoot_protocol::rpc::{Method, encode_payload};
use folkmoot_protocol::{Format, PROTOBUF_SUBPROTOCOL};
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;

/// The connection is gone; what was under way may or may not have happened.
#[derive(Debug)]
pub(crate) struct Lost;

pub(crate) struct Connection {
    socket: WebSocketStream<TcpStream>,
    format: Format,
    last_id: u32,
    replies: VecDeque<Reply>,
}

impl Connection {
    /// Connects without saying who one is.
    pub(crate) async fn dial(port: u16, format: Format) -> Result<Self, Lost> {
        let url = format!("ws://127.0.0.1:{port}/connection/websocket");
        let mut request = url.into_client_request().expect("the address is one");
        if format == Format::Protobuf {
            let name = HeaderValue::from_static(PROTOBUF_SUBPROTOCOL);
            request.headers_mut().insert("sec-websocket-protocol", name);
        }
        let stream = TcpStream::connect(("127.0.0.1", port)).await.map_err(|_| Lost)?;
        let (socket, _) =
            tokio_tungstenite::client_async(request, stream).await.map_err(|_| Lost)?;
        Ok(Self { socket, format, last_id: 0, replies: VecDeque::new() })
    }

    /// Connects and opens the session.
    pub(crate) async fn open(port: u16, token: &str, format: Format) -> Result<Self, Lost> {
        let mut connection = Self::dial(port, format).await?;
        let id = connection.send(vec![Self::connect(token)]).await?;
        let reply = connection.answer(id).await?;
        assert!(reply.error.is_none(), "the token is ours: {reply:?}");
        Ok(connection)
    }

    pub(crate) fn connect(token: &str) -> Request {
        Request::Connect(ConnectRequest { token: token.to_owned(), ..ConnectRequest::default() })
    }

    pub(crate) fn rpc<M: Method>(request: &M) -> Request {
        Request::Rpc(RpcRequest { data: encode_payload(request), method: M::NAME.to_owned() })
    }

    /// Sends requests in one frame; returns the number of the first, the others follow it.
    pub(crate) async fn send(&mut self, requests: Vec<Request>) -> Result<u32, Lost> {
        let first = self.last_id + 1;
        let mut frame = Vec::new();
        for request in requests {
            self.last_id += 1;
            let command = Command { id: self.last_id, request: Some(request) };
            self.format.encode_command(&command, &mut frame).expect("our payloads are JSON");
        }
        self.write(frame).await?;
        Ok(first)
    }

    async fn write(&mut self, frame: Vec<u8>) -> Result<(), Lost> {
        let message = match self.format {
            Format::Json => Message::text(String::from_utf8(frame).expect("JSON is UTF-8")),
            Format::Protobuf => Message::binary(frame),
        };
        self.socket.send(message).await.map_err(|_| Lost)
    }

    /// The next reply or push; answers pings by itself.
    ///
    /// # Cancel safety
    /// Nothing is lost when dropped, except that a ping may stay unanswered.
    pub(crate) async fn next(&mut self) -> Result<Reply, Lost> {
        loop {
            match self.replies.pop_front() {
                Some(reply) if reply.is_ping() => {
                    let mut pong = Vec::new();
                    self.format
                        .encode_command(&Command::default(), &mut pong)
                        .expect("it has no payload");
                    self.write(pong).await?;
                }
                Some(reply) => return Ok(reply),
                None => {
                    let frame = self.frame().await?;
                    let replies = self.format.decode_replies(&frame);
                    self.replies
                        .extend(replies.expect("the server writes frames that can be read"));
                }
            }
        }
    }

    async fn frame(&mut self) -> Result<Bytes, Lost> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => return Ok(text.into()),
                Some(Ok(Message::Binary(bytes))) => return Ok(bytes),
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Ok(Message::Close(why))) => {
                    eprintln!("the server closed the connection: {why:?}");
                    return Err(Lost);
                }
                Some(Err(_)) | None => return Err(Lost),
            }
        }
    }

    async fn answer(&mut self, id: u32) -> Result<Reply, Lost> {
        loop {
            let reply = self.next().await?;
            if reply.id == id {
                return Ok(reply);
            }
        }
    }

    /// Calls a method that must succeed on a connection that must last.
    pub(crate) async fn call<M: Method>(&mut self, request: &M) -> M::Reply {
        let id = self.send(vec![Self::rpc(request)]).await.expect("nobody kills the server now");
        let reply = self.answer(id).await.expect("nobody kills the server now");
        match reply.outcome {
            Some(Outcome::Rpc(result)) => {
                serde_json::from_slice(&result.data).expect("the answer is as documented")
            }
            outcome => panic!("{}: {:?} {outcome:?}", M::NAME, reply.error),
        }
    }
}
