//! A connection by WebSocket on which only the server speaks: each push is a text message of its
//! own, so that a page can read it without knowing more. The first message of the client is its
//! connect request, unless that is in the URL; later ones are dropped unread.
//!
//! The server's ping is a message for the page, and beside it one of WebSocket's own, which every
//! client answers by itself: without it, nobody would notice a client that has vanished.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use folkmoot_protocol::limits::FRAME_BYTES_MAX;
use folkmoot_protocol::{DisconnectCode, Format};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, Stream, StreamExt, future, stream};
use tokio_tungstenite::tungstenite::Error as WebSocketError;

use crate::accept::Visit;
use crate::connection::{Application, Note, Reader};
use crate::direction::Direction;
use crate::outbox::{Close, Next, Outbox};
use crate::streaming::goodbye;
use crate::unidirectional::{UniQuery, command};
use crate::upgrade::Settings;

/// A ping of the server, and what a pong of the client's WebSocket stands for.
const EMPTY: &[u8] = b"{}";
/// What the WebSocket layer takes before it closes with its own code 1009: twice the limit, so
/// that what is only somewhat too large is answered with the protocol's reason.
const MESSAGE_BYTES_MAX: usize = 2 * FRAME_BYTES_MAX;
/// Read and write buffers of one socket; the library's are 128 KiB each.
const SOCKET_BUFFER_BYTES: usize = 4 * 1024;
/// How long a client that cannot keep up may take to read what is under way.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Answers `/connection/uni_websocket`, and serves the socket until it ends.
pub fn uni_upgrade<A: Application>(
    upgrade: WebSocketUpgrade,
    query: UniQuery,
    visit: Arc<Visit>,
    settings: Settings,
    application: A,
) -> Response {
    let connect = match query.into_connect().map(|connect| command(&connect)).transpose() {
        Ok(connect) => connect,
        Err(why) => return why.into_response(),
    };
    upgrade
        .max_message_size(MESSAGE_BYTES_MAX)
        .max_frame_size(MESSAGE_BYTES_MAX)
        .read_buffer_size(SOCKET_BUFFER_BYTES)
        .write_buffer_size(SOCKET_BUFFER_BYTES)
        .on_upgrade(move |socket| serve(socket, connect, visit, settings, application))
}

async fn serve<A: Application>(
    socket: WebSocket,
    connect: Option<Bytes>,
    visit: Arc<Visit>,
    settings: Settings,
    application: A,
) {
    let outbox = Arc::new(Outbox::new(settings.outgoing_queue_bytes_max));
    let (sink, stream) = socket.split();
    let guard = application.opened();
    let reader = Reader::new(application.clone(), outbox.clone(), Format::Json, visit, &settings);
    let (mut reader, mut frames) = (reader.towards(Direction::ToClient), frames(stream, connect));
    let ((), code) = tokio::join!(reader.run(&mut frames), write(sink, &outbox));
    application.note(Note::Closed(code));
    drop(guard);
}

/// The connect command, and a frame for each sign of life after it.
fn frames(
    stream: SplitStream<WebSocket>,
    connect: Option<Bytes>,
) -> impl Stream<Item = Result<Bytes, DisconnectCode>> + Unpin {
    let mut is_connected = connect.is_some();
    let heard = stream.filter_map(move |message| {
        let frame = match message {
            Ok(Message::Close(_)) => Some(Err(DisconnectCode::ConnectionClosed)),
            Err(error) => Some(Err(code_of(&error))),
            Ok(Message::Text(text)) if !is_connected => {
                is_connected = true;
                Some(command(text.as_bytes()).map_err(DisconnectCode::from))
            }
            Ok(Message::Binary(_)) if !is_connected => {
                Some(Err(DisconnectCode::InappropriateProtocol))
            }
            Ok(Message::Pong(_)) if is_connected => Some(Ok(Bytes::from_static(EMPTY))),
            Ok(_) => None,
        };
        future::ready(frame)
    });
    stream::iter(connect.map(Ok)).chain(heard)
}

/// What a failed read means to the client.
fn code_of(error: &axum::Error) -> DisconnectCode {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref());
    match cause {
        Some(WebSocketError::Capacity(_)) => DisconnectCode::FrameTooLarge,
        _ => DisconnectCode::ConnectionClosed,
    }
}

/// Writes until the outbox closes or the socket fails; returns the reason.
async fn write(mut sink: SplitSink<WebSocket, Message>, outbox: &Outbox) -> u16 {
    let why = loop {
        match outbox.next().await {
            Next::Messages(messages) => {
                tokio::select! {
                    biased;
                    written = send_all(&mut sink, messages) => {
                        if written.is_err() {
                            outbox.close(DisconnectCode::WriteError);
                            return Close::from(DisconnectCode::WriteError).code;
                        }
                    }
                    // The write above is stuck in a full socket; what it has begun ends first.
                    why = outbox.overflowed() => break why,
                }
            }
            Next::Close(why) => break why,
        }
    };
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, close(&mut sink, &why)).await;
    why.code
}

async fn send_all(
    sink: &mut SplitSink<WebSocket, Message>,
    messages: Vec<Bytes>,
) -> Result<(), axum::Error> {
    for message in messages {
        if message == EMPTY {
            sink.feed(Message::Ping(Bytes::new())).await?;
        }
        sink.feed(text(message)).await?;
    }
    sink.flush().await
}

/// Says why, as the other transports do, and then as WebSockets do.
async fn close(sink: &mut SplitSink<WebSocket, Message>, why: &Close) -> Result<(), axum::Error> {
    let reason = Utf8Bytes::from(why.reason.as_ref());
    let sent = async {
        // Who closed first reads no message any more.
        if why.code != Close::from(DisconnectCode::ConnectionClosed).code {
            sink.feed(text(goodbye(why, Format::Json))).await?;
        }
        sink.send(Message::Close(Some(CloseFrame { code: why.code, reason }))).await
    };
    if sent.await.is_err() {
        // Its close frame is owed the answer that the library has ready.
        return sink.flush().await;
    }
    Ok(())
}

fn text(message: Bytes) -> Message {
    let bare = Direction::ToClient.unwrapped(message);
    Message::Text(Utf8Bytes::try_from(bare).expect("JSON we encoded is UTF-8"))
}
