//! One WebSocket: reads messages, writes the outbox, and says goodbye properly. One task per
//! client.
//!
//! It reads into scratch memory on the stack and keeps bytes only of an unfinished frame, so that
//! an idle client costs a task and no buffer. Each wake-up ends in at most one write of everything
//! that is there.

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::outbox::{Ended, Next, Outbox};
use crate::limits::{FRAME_LEN_MAX, MALFORMED_MAX};
use crate::websocket::{Decoder, FrameError, From, Kind, Message, Written};
use crate::wire::{Malformed, Notice};
use crate::world::Counters;

/// Bytes read at once; larger messages take several reads.
const READ_LEN: usize = 4 * 1_024;
/// How long a goodbye may take.
const GOODBYE: Duration = Duration::from_secs(2);

/// Whom the messages of a socket are for.
pub(crate) trait Conversation: Send + 'static {
    /// Does what a message says.
    fn read(&self, message: &[u8]) -> Result<(), Malformed>;
    /// What is to be sent.
    fn outbox(&self) -> &Outbox;
    /// Where it is counted what a client does wrong.
    fn counters(&self) -> &Counters;
    /// The socket has ended.
    fn close(&self);
}

/// A client's socket.
pub(super) struct Socket<C> {
    stream: TcpStream,
    connection: C,
    decoder: Decoder,
    /// The beginning of a frame whose end is still to come.
    partial: Vec<u8>,
    writing: Option<Written>,
    /// Payload of the last ping, to be sent back.
    pong: Option<Vec<u8>>,
    malformed: u32,
}

/// Why a connection ends, as its close frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
enum End {
    /// The client said so, or nothing will come any more.
    Normal = 1000,
    /// It breaks the protocol.
    Broken = 1002,
    /// It sends nothing that can be read, or reads too slowly.
    Policy = 1008,
    /// It sends too much at once.
    TooLong = 1009,
}

impl<C: Conversation> Socket<C> {
    /// With a connection of its own for that socket.
    pub(super) fn open(stream: TcpStream, connection: C) -> Box<Self> {
        // Boxed, because a future has room for what moves through it more than once.
        Box::new(Self {
            stream,
            connection,
            decoder: Decoder::new(From::Client, FRAME_LEN_MAX),
            partial: Vec::new(),
            writing: None,
            pong: None,
            malformed: 0,
        })
    }

    /// Serves until either side ends; `begun` came before this began.
    pub(super) async fn serve(mut self: Box<Self>, mut begun: Vec<u8>) {
        let first = self.take(&mut begun);
        drop(begun);
        let ended = match first {
            Some(end) => Ok(end),
            None => poll_fn(|cx| self.poll(cx)).await,
        };
        self.connection.close();
        if let Ok(end) = ended {
            // A client that takes no more has gone, or will not miss it. Boxed, or every client
            // would have room for it all along.
            timeout(GOODBYE, Box::pin(self.say_goodbye(end))).await.ok();
        }
    }

    /// Reads and writes what there is; ready when the connection ends.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<End>> {
        if let Poll::Ready(end) = self.poll_read(cx) {
            return Poll::Ready(end);
        }
        let ended = ready!(self.poll_write(cx))?;
        if ended == Ended::Overflow {
            self.connection.counters().slow.count();
            return Poll::Ready(Ok(End::Policy));
        }
        Poll::Ready(Ok(End::Normal))
    }

    /// Reads until nothing is left or the connection ends.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<End>> {
        let mut scratch = [MaybeUninit::uninit(); READ_LEN];
        loop {
            let mut read = ReadBuf::uninit(&mut scratch);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read))?;
            let bytes = read.filled_mut();
            if bytes.is_empty() {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            let end = if self.partial.is_empty() {
                self.take(bytes)
            } else {
                let mut whole = std::mem::take(&mut self.partial);
                whole.extend_from_slice(bytes);
                self.take(&mut whole)
            };
            if let Some(end) = end {
                return Poll::Ready(Ok(end));
            }
        }
    }

    /// Takes all messages off `bytes` and keeps what is left of them, unless one ends the
    /// connection.
    fn take(&mut self, mut bytes: &mut [u8]) -> Option<End> {
        loop {
            let fault = match self.decoder.take(bytes) {
                Ok(None) => {
                    self.partial = bytes.to_vec();
                    return None;
                }
                Ok(Some((message, len))) => {
                    let fault = match message {
                        Message::Binary(message) => {
                            self.connection.read(&message).err().map(|why| why.to_string())
                        }
                        Message::Text => Some("frames are binary".to_owned()),
                        Message::Close => return Some(End::Normal),
                        Message::Ping(payload) => {
                            self.pong = Some(payload.to_vec());
                            None
                        }
                        Message::Pong | Message::Part => None,
                    };
                    bytes = &mut bytes[len..];
                    fault
                }
                Err(why) => return Some(self.broken(why)),
            };
            let Some(fault) = fault else { continue };
            self.connection.counters().malformed.count();
            self.fault(fault);
            self.malformed += 1;
            if self.malformed == MALFORMED_MAX {
                return Some(End::Policy);
            }
        }
    }

    fn broken(&self, why: FrameError) -> End {
        let (counter, end) = match why {
            FrameError::TooLong(_) => (&self.connection.counters().oversized, End::TooLong),
            FrameError::Broken(_) => (&self.connection.counters().malformed, End::Broken),
        };
        counter.count();
        self.fault(why.to_string());
        end
    }

    fn fault(&self, why: String) {
        self.connection.outbox().answer(&Notice::Fault(why.into()));
    }

    /// Writes what there is; ready when nothing will come any more.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Ended>> {
        loop {
            ready!(self.poll_flush(cx))?;
            if let Some(payload) = self.pong.take() {
                self.writing = Some(Written::whole(Kind::Pong, From::Server, &payload));
                continue;
            }
            self.writing = Some(match ready!(self.connection.outbox().poll_next(cx)) {
                Ok(Next::Frames(bytes)) => Written::finish(bytes, Kind::Binary, From::Server),
                Ok(Next::Ping) => Written::whole(Kind::Ping, From::Server, &[]),
                Err(ended) => return Poll::Ready(Ok(ended)),
            });
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(writing) = &mut self.writing {
            let len = ready!(Pin::new(&mut self.stream).poll_write(cx, writing.rest()))?;
            if writing.sent(len) {
                self.writing = None;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Sends what is left, and says why this is the end.
    async fn say_goodbye(mut self: Box<Self>, end: End) -> io::Result<()> {
        poll_fn(|cx| self.poll_flush(cx)).await?;
        // What overflowed is dropped; anything else is sent, because the outbox is closed.
        poll_fn(|cx| self.poll_write(cx)).await?;
        let code = (end as u16).to_be_bytes();
        self.writing = Some(Written::whole(Kind::Close, From::Server, &code));
        poll_fn(|cx| self.poll_flush(cx)).await
    }
}
