//! A connection by WebSocket: both ways over one socket. A library reads it; what it has to answer by
//! itself, pongs and the end, goes through the one who writes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use folkmoot_protocol::limits::FRAME_BYTES_MAX;
use folkmoot_protocol::{DisconnectCode, Format};
use futures_util::Stream;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::accept::Visit;
use crate::connection::{Application, Note, Reader};
use crate::outbox::Outbox;
use crate::upgrade::Settings;
use crate::{standby, writer};

/// What the WebSocket layer takes before it closes with its own code 1009. Above the protocol's
/// limit, so that a frame that is only somewhat too large is answered with the protocol's code.
const MESSAGE_BYTES_MAX: usize = 4 * FRAME_BYTES_MAX;
/// Kept for each socket: most commands fit, and larger ones get room of their own.
const READ_BUFFER_BYTES: usize = 512;

/// The half of a socket that is read.
pub(crate) struct Incoming<R> {
    pub(crate) read: R,
    /// What has come already.
    pub(crate) begun: Vec<u8>,
    pub(crate) format: Format,
}

/// Serves one socket in the clear until it ends.
pub(crate) async fn serve<A: Application>(
    incoming: Incoming<OwnedReadHalf>,
    write: OwnedWriteHalf,
    application: A,
    visit: Arc<Visit>,
    settings: Settings,
) {
    let (write, format) = (Arc::new(write), incoming.format);
    let carrier = visit.carrier();
    let bytes_max = settings.outgoing_queue_bytes_max;
    let outbox = Outbox::over(write.clone(), format, bytes_max, carrier);
    let answers = Arc::new(Answers::default());
    let guard = application.opened();
    let mut reader = Reader::new(application.clone(), outbox.clone(), format, visit, &settings);
    let mut frames = Frames::new(incoming, answers.clone()).await;
    let writing = standby::write(&write, &outbox, &answers);
    let ((), code) = tokio::join!(reader.run(&mut frames), writing);
    application.note(Note::Closed(code));
    drop(guard);
}

/// Serves one encrypted socket until it ends.
pub(crate) async fn serve_encrypted<A, R, W>(
    incoming: Incoming<R>,
    write: W,
    application: A,
    visit: Arc<Visit>,
    settings: Settings,
) where
    A: Application,
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let outbox = Arc::new(Outbox::new(settings.outgoing_queue_bytes_max));
    let (answers, format) = (Arc::new(Answers::default()), incoming.format);
    let guard = application.opened();
    let mut reader = Reader::new(application.clone(), outbox.clone(), format, visit, &settings);
    let mut frames = Frames::new(incoming, answers.clone()).await;
    let writing = writer::write(write, &outbox, &answers, format);
    let ((), code) = tokio::join!(reader.run(&mut frames), writing);
    application.note(Note::Closed(code));
    drop(guard);
}

/// A frame that the WebSocket layer sends by itself: a pong, or the answer to a close frame.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// Only one: of several pings the last may be answered alone, and nothing follows a close.
    newest: Mutex<Option<Bytes>>,
    given: Notify,
}

impl Answers {
    pub(crate) fn give(&self, frame: Bytes) {
        *self.newest.lock() = Some(frame);
        self.given.notify_one();
    }

    /// What is to be sent, if anything is.
    pub(crate) fn take(&self) -> Option<Bytes> {
        self.newest.lock().take()
    }

    /// Waits until there may be something.
    pub(crate) async fn given(&self) {
        self.given.notified().await;
    }

    /// # Cancel safety
    /// Nothing is lost when dropped.
    pub(crate) async fn next(&self) -> Bytes {
        loop {
            match self.take() {
                Some(frame) => return frame,
                None => self.given().await,
            }
        }
    }
}

/// What the library reads from, and writes its answers to.
struct Wire<R> {
    read: R,
    answers: Arc<Answers>,
}

impl<R: AsyncRead + Unpin> AsyncRead for Wire<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.read).poll_read(context, buffer)
    }
}

impl<R: Unpin> AsyncWrite for Wire<R> {
    /// The library is told not to gather, so this is one frame.
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        frame: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.answers.give(Bytes::copy_from_slice(frame));
        Poll::Ready(Ok(frame.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// The frames of commands in a socket.
struct Frames<R> {
    socket: WebSocketStream<Wire<R>>,
    format: Format,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    async fn new(incoming: Incoming<R>, answers: Arc<Answers>) -> Self {
        let Incoming { read, begun, format } = incoming;
        let config = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_BYTES_MAX))
            .max_frame_size(Some(MESSAGE_BYTES_MAX))
            .read_buffer_size(READ_BUFFER_BYTES)
            .write_buffer_size(0);
        let (wire, role) = (Wire { read, answers }, Role::Server);
        let socket = WebSocketStream::from_partially_read(wire, begun, role, Some(config)).await;
        Self { socket, format }
    }
}

impl<R: AsyncRead + Unpin> Stream for Frames<R> {
    type Item = Result<Bytes, DisconnectCode>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let Some(message) = ready!(Pin::new(&mut self.socket).poll_next(context)) else {
                return Poll::Ready(None);
            };
            let frame = match message {
                // Answered by the library with its next read.
                Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => continue,
                Ok(Message::Close(_)) => {
                    // There is none.
                    let _ = futures_util::Sink::poll_flush(Pin::new(&mut self.socket), context);
                    Err(DisconnectCode::ConnectionClosed)
                }
                Ok(Message::Text(text)) if self.format == Format::Json => Ok(text.into()),
                Ok(Message::Binary(bytes)) if self.format == Format::Protobuf => Ok(bytes),
                Ok(Message::Text(_) | Message::Binary(_)) => {
                    Err(DisconnectCode::InappropriateProtocol)
                }
                Err(error) => Err(code_of(&error)),
            };
            return Poll::Ready(Some(frame));
        }
    }
}

/// What a failed read means to the client.
fn code_of(error: &Error) -> DisconnectCode {
    match error {
        Error::Capacity(_) => DisconnectCode::FrameTooLarge,
        // A client that vanished; anything else is a violation.
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
            DisconnectCode::ConnectionClosed
        }
        Error::Utf8(_) | Error::Protocol(_) => DisconnectCode::BadRequest,
        _ => DisconnectCode::ConnectionClosed,
    }
}
