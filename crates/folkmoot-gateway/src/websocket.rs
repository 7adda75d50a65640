//! A connection by WebSocket: both ways over one socket.

use std::sync::Arc;

use axum::extract::ws::{Message, WebSocket};
use bytes::Bytes;
use folkmoot_protocol::{DisconnectCode, Format};
use futures_util::stream::SplitStream;
use futures_util::{Stream, StreamExt, future};
use tokio_tungstenite::tungstenite::Error as WebSocketError;
use tokio_tungstenite::tungstenite::error::ProtocolError;

use crate::accept::Visit;
use crate::connection::{Application, Note, Reader};
use crate::outbox::Outbox;
use crate::upgrade::Settings;
use crate::writer;

/// Serves one socket until it ends.
pub(crate) async fn serve<A: Application>(
    socket: WebSocket,
    application: A,
    format: Format,
    visit: Arc<Visit>,
    settings: Settings,
) {
    let outbox = Arc::new(Outbox::new(settings.outgoing_queue_bytes_max));
    let (sink, stream) = socket.split();
    let guard = application.opened();
    let reader = Reader::new(application.clone(), outbox.clone(), format, visit, &settings);
    let reading = reader.run(frames(stream, format));
    let ((), code) = tokio::join!(reading, writer::write(sink, &outbox, format));
    application.note(Note::Closed(code));
    drop(guard);
}

/// The frames of commands in a socket.
fn frames(
    stream: SplitStream<WebSocket>,
    format: Format,
) -> impl Stream<Item = Result<Bytes, DisconnectCode>> + Unpin {
    stream.filter_map(move |message| {
        let frame = match message {
            Ok(Message::Close(_)) => Err(DisconnectCode::ConnectionClosed),
            Err(error) => Err(code_of(&error)),
            // The WebSocket layer answers pings by itself.
            Ok(Message::Ping(_) | Message::Pong(_)) => return future::ready(None),
            Ok(Message::Text(text)) if format == Format::Json => Ok(text.into()),
            Ok(Message::Binary(bytes)) if format == Format::Protobuf => Ok(bytes),
            Ok(Message::Text(_) | Message::Binary(_)) => Err(DisconnectCode::InappropriateProtocol),
        };
        future::ready(Some(frame))
    })
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
