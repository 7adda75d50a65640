//! The read half of one connection: frames in, commands to the session, replies to the outbox.
//!
//! Commands run concurrently, so that one slow answer does not hold up the next question; they
//! start in the order in which they came. Too many at once stop the reading, never the memory.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};
use bytes::Bytes;
use folkmoot_protocol::frame::{Command, Reply, Request};
use folkmoot_protocol::{DecodeError, DisconnectCode, Format};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, SplitStream};
use tokio::time::{Instant, sleep_until};
use tokio_tungstenite::tungstenite::Error as WebSocketError;
use tokio_tungstenite::tungstenite::error::ProtocolError;

use super::liveness::{Due, Liveness};
use super::outbox::Outbox;
use super::writer;
use crate::server::Server;
use crate::session::{self, Caller};

/// Commands of one connection under way at once; four full frames.
const IN_FLIGHT_MAX: usize = 256;

/// Serves one socket until it ends.
pub(crate) async fn serve(socket: WebSocket, server: Arc<Server>, format: Format) {
    let outbox = Arc::new(Outbox::new(server.config.gateway.outgoing_queue_bytes_max));
    let (sink, stream) = socket.split();
    server.metrics.connection_opened();
    let reader = Reader {
        liveness: Liveness::new(&server.config.gateway),
        opened: Instant::now(),
        in_flight: FuturesUnordered::new(),
        caller: None,
        outbox: outbox.clone(),
        server: server.clone(),
        format,
    };
    let ((), code) = tokio::join!(reader.run(stream), writer::write(sink, &outbox, format));
    server.metrics.connection_closed(code);
}

struct Reader {
    server: Arc<Server>,
    outbox: Arc<Outbox>,
    format: Format,
    liveness: Liveness,
    opened: Instant,
    /// Who is speaking, once known.
    caller: Option<Arc<Caller>>,
    in_flight: FuturesUnordered<BoxFuture<'static, Option<Reply>>>,
}

impl Reader {
    async fn run(mut self, mut stream: SplitStream<WebSocket>) {
        let mut stopping = self.server.stopping();
        if *stopping.borrow() {
            self.outbox.close(DisconnectCode::Shutdown);
        }
        while !self.outbox.is_closing() {
            tokio::select! {
                frame = stream.next(), if self.in_flight.len() < IN_FLIGHT_MAX => {
                    if let Err(code) = self.receive(frame).await {
                        self.outbox.close(code);
                    }
                }
                Some(reply) = self.in_flight.next(), if !self.in_flight.is_empty() => {
                    reply.iter().for_each(|reply| self.reply(reply));
                }
                () = sleep_until(self.opened + self.liveness.deadline()) => self.tick(),
                () = self.outbox.closed() => {}
                _ = stopping.changed() => self.outbox.close(DisconnectCode::Shutdown),
            }
        }
        if let Some(caller) = &self.caller {
            caller.end().await;
        }
    }

    async fn receive(
        &mut self,
        frame: Option<Result<Message, axum::Error>>,
    ) -> Result<(), DisconnectCode> {
        let frame: Bytes = match frame {
            None | Some(Ok(Message::Close(_))) => return Err(DisconnectCode::ConnectionClosed),
            Some(Err(error)) => return Err(code_of(&error)),
            // The WebSocket layer answers pings by itself.
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => return Ok(()),
            Some(Ok(Message::Text(text))) if self.format == Format::Json => text.into(),
            Some(Ok(Message::Binary(bytes))) if self.format == Format::Protobuf => bytes,
            Some(Ok(Message::Text(_) | Message::Binary(_))) => {
                return Err(DisconnectCode::InappropriateProtocol);
            }
        };
        self.liveness.heard(self.elapsed());
        let commands = self.format.decode_commands(&frame).map_err(|error| {
            tracing::debug!(%error, "a client sent a frame that cannot be read");
            DecodeError::disconnect_code(&error)
        })?;
        self.server.metrics.commands(commands.len());
        for command in commands {
            self.command(command).await?;
        }
        Ok(())
    }

    async fn command(&mut self, command: Command) -> Result<(), DisconnectCode> {
        let Command { id, request } = command;
        match (request, &self.caller) {
            (None, Some(_)) if id == 0 => Ok(()),
            (Some(Request::Connect(request)), None) if id != 0 => {
                let opening = session::Opening {
                    server: self.server.clone(),
                    outbox: self.outbox.clone(),
                    format: self.format,
                    request,
                };
                let (caller, reply) = opening.connect(id).await?;
                self.liveness.connected(self.elapsed());
                self.reply(&reply);
                caller.go_live().await;
                self.caller = Some(caller);
                Ok(())
            }
            (Some(Request::Send(_)), Some(_)) => Ok(()),
            (Some(request), Some(caller)) if id != 0 => {
                let caller = caller.clone();
                self.in_flight.push(Box::pin(async move {
                    session::command::run(&caller, id, request).await
                }));
                Ok(())
            }
            _ => Err(DisconnectCode::BadRequest),
        }
    }

    fn tick(&mut self) {
        match self.liveness.due(self.elapsed()) {
            Due::Nothing => {}
            Due::Ping => self.reply(&Reply::ping()),
            Due::Close(code) => self.outbox.close(code),
        }
    }

    fn reply(&self, reply: &Reply) {
        self.outbox.push(session::encode(self.format, reply));
    }

    fn elapsed(&self) -> Duration {
        self.opened.elapsed()
    }
}

/// What a failed read means to the client.
fn code_of(error: &axum::Error) -> DisconnectCode {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref());
    match cause {
        Some(WebSocketError::Capacity(_)) => DisconnectCode::FrameTooLarge,
        // A client that vanished; anything else is a violation.
        Some(WebSocketError::Protocol(ProtocolError::ResetWithoutClosingHandshake)) => {
            DisconnectCode::ConnectionClosed
        }
        Some(WebSocketError::Utf8(_) | WebSocketError::Protocol(_)) => DisconnectCode::BadRequest,
        _ => DisconnectCode::ConnectionClosed,
    }
}
