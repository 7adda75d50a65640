//! A connection by WebSocket: both ways over one socket. What is to be answered without a command,
//! pings and the end, goes through the one who writes.

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use folkmoot_protocol::limits::FRAME_BYTES_MAX;
use folkmoot_protocol::{DisconnectCode, Format};
use futures_util::{Stream, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::accept::Visit;
use crate::connection::{Application, Note, Reader};
use crate::frame::{closing_frame, pong_frame};
use crate::messages::{Heard, Messages, Violation};
use crate::outbox::{Close, Outbox};
use crate::upgrade::Settings;
use crate::{standby, writer};

/// Longer messages are refused before they have come. Above the protocol's limit, which is the
/// concern of whoever reads commands.
const MESSAGE_BYTES_MAX: usize = 4 * FRAME_BYTES_MAX;
/// How long a client that is told that the server stops may take to say that it has heard so.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(1);
/// What is read from a socket at a time.
const READ_BYTES: usize = 64 * 1024;

thread_local! {
    /// One for all sockets that a thread reads: a quiet connection keeps no buffer.
    static ROOM: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

/// The half of a socket that is read.
pub(crate) struct Incoming<R> {
    pub(crate) read: R,
    /// What has come already.
    pub(crate) begun: Vec<u8>,
    pub(crate) format: Format,
}

/// Serves one socket in the clear until it ends.
///
/// Plain functions make these futures, of what they need: one that is given something and moves it
/// on keeps room for it twice, for as long as the connection lasts.
pub(crate) fn serve<A: Application>(
    incoming: Incoming<OwnedReadHalf>,
    write: OwnedWriteHalf,
    application: A,
    visit: Arc<Visit>,
    settings: &Settings,
) -> impl Future<Output = ()> + Send + use<A> {
    let (write, format) = (Arc::new(write), incoming.format);
    let carrier = visit.carrier();
    let bytes_max = settings.outgoing_queue_bytes_max;
    let outbox = Outbox::over(write.clone(), format, bytes_max, carrier);
    let guard = application.opened();
    let mut reader = Reader::new(application.clone(), outbox.clone(), format, visit, settings);
    let mut frames = Frames::new(incoming, outbox.clone());
    async move {
        let ((), code) = tokio::join!(reader.run(&mut frames), standby::write(&write, &outbox));
        // With this the client sees the end of what it is sent.
        drop(write);
        if is_farewell(code) {
            Box::pin(frames.farewell()).await;
        }
        application.note(Note::Closed(code));
        drop(guard);
    }
}

/// Serves one encrypted socket until it ends.
pub(crate) fn serve_encrypted<A, R, W>(
    incoming: Incoming<R>,
    write: W,
    application: A,
    visit: Arc<Visit>,
    settings: &Settings,
) -> impl Future<Output = ()> + Send + use<A, R, W>
where
    A: Application,
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    let (outbox, format) = (Outbox::new(settings.outgoing_queue_bytes_max), incoming.format);
    let (outbox, guard) = (Arc::new(outbox), application.opened());
    let mut reader = Reader::new(application.clone(), outbox.clone(), format, visit, settings);
    let mut frames = Frames::new(incoming, outbox.clone());
    async move {
        let writing = writer::write(write, &outbox, format);
        let ((), code) = tokio::join!(reader.run(&mut frames), writing);
        if is_farewell(code) {
            Box::pin(frames.farewell()).await;
        }
        application.note(Note::Closed(code));
        drop(guard);
    }
}

/// Whether the client is in good order and only has to go elsewhere.
fn is_farewell(code: u16) -> bool {
    code == Close::from(DisconnectCode::Shutdown).code
}

/// The frames of commands in a socket.
struct Frames<R> {
    read: R,
    messages: Messages,
    /// Where answers without a command wait.
    outbox: Arc<Outbox>,
    format: Format,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    fn new(incoming: Incoming<R>, outbox: Arc<Outbox>) -> Self {
        let Incoming { read, begun, format } = incoming;
        Self { read, messages: Messages::new(MESSAGE_BYTES_MAX, begun), outbox, format }
    }

    /// Drops what the client still says until it closes, too. A socket that is closed with something
    /// unread in it takes the answers with it that are on their way to the client.
    async fn farewell(&mut self) {
        let closed = async { while let Some(Ok(_)) = self.next().await {} };
        let _ = tokio::time::timeout(FAREWELL_TIMEOUT, closed).await;
    }

    /// Reads what has come, at least something, and takes what it says first.
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Heard>, DisconnectCode>> {
        ROOM.with_borrow_mut(|room| {
            let mut room = ReadBuf::new(room);
            let read = ready!(Pin::new(&mut self.read).poll_read(context, &mut room));
            read.map_err(|_| DisconnectCode::ConnectionClosed)?;
            Poll::Ready(match room.filled() {
                // A client that vanished.
                [] => Err(DisconnectCode::ConnectionClosed),
                came => self.messages.take(came).map_err(code_of),
            })
        })
    }

    /// The frame of commands in what a client says, if it is one.
    fn frame_of(&self, heard: Heard) -> Option<Result<Bytes, DisconnectCode>> {
        match (heard, self.format) {
            (Heard::Text(bytes), Format::Json) | (Heard::Binary(bytes), Format::Protobuf) => {
                Some(Ok(bytes))
            }
            (Heard::Text(_) | Heard::Binary(_), _) => {
                Some(Err(DisconnectCode::InappropriateProtocol))
            }
            (Heard::Ping(payload), _) => {
                self.outbox.give(pong_frame(&payload));
                None
            }
            (Heard::Pong, _) => None,
            (Heard::Close(code), _) => {
                self.outbox.give(closing_frame(code));
                Some(Err(DisconnectCode::ConnectionClosed))
            }
        }
    }
}

impl<R: AsyncRead + Unpin> Stream for Frames<R> {
    type Item = Result<Bytes, DisconnectCode>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let heard = match self.messages.next() {
                Ok(None) => ready!(self.poll_read(context)),
                heard => heard.map_err(code_of),
            };
            let frame = match heard {
                Ok(None) => continue,
                Ok(Some(heard)) => self.frame_of(heard),
                Err(code) => Some(Err(code)),
            };
            if frame.is_some() {
                return Poll::Ready(frame);
            }
        }
    }
}

/// What a failed read means to the client.
fn code_of(violation: Violation) -> DisconnectCode {
    match violation {
        Violation::TooLong => DisconnectCode::FrameTooLarge,
        Violation::Malformed => DisconnectCode::BadRequest,
    }
}

#[cfg(test)]
mod tests;
