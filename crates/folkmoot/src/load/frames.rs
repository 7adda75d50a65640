//! WebSocket as a client of one server needs it: whole frames in, one at a time, and masked ones
//! out. Bytes are read into one buffer for all clients of a thread; a client keeps only what is
//! missing its end.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;

use super::socket::SocketError;

/// What is read at a time.
const READ_BYTES: usize = 64 * 1024;
/// The longest answer to the request for a socket.
const HEAD_BYTES_MAX: usize = 4 * 1024;
/// Of RFC 6455, where it is the example: nobody here has to be told apart from others.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

const TEXT: u8 = 0x81;
const CLOSE: u8 = 0x88;

thread_local! {
    static ROOM: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

#[derive(Debug)]
pub(super) struct Frames {
    stream: TcpStream,
    /// A frame that has not come whole.
    begun: Vec<u8>,
}

/// What a frame says.
#[derive(Debug, PartialEq, Eq)]
enum Frame<'a> {
    Text(&'a str),
    Close(&'a [u8]),
}

impl Frames {
    /// Asks for a socket.
    pub(super) async fn open(mut stream: TcpStream, host: &str) -> Result<Self, SocketError> {
        let request = format!(
            "GET /connection/websocket HTTP/1.1\r\nhost: {host}\r\nconnection: upgrade\r\n\
             upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: {KEY}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut head = Vec::with_capacity(512);
        while !head.ends_with(b"\r\n\r\n") {
            // Nothing follows the answer: the server says nothing before it is asked.
            let read = stream.read_buf(&mut head).await?;
            if read == 0 || head.len() > HEAD_BYTES_MAX {
                return Err(SocketError::Closed("before the connection was a socket".to_owned()));
            }
        }
        if !head.starts_with(b"HTTP/1.1 101 ") {
            let text = String::from_utf8_lossy(&head);
            let line = text.lines().next().unwrap_or_default().to_owned();
            return Err(SocketError::NotUnderstood(line));
        }
        Ok(Self { stream, begun: Vec::new() })
    }

    /// Sends text in one frame.
    pub(super) async fn send(&mut self, text: &[u8]) -> Result<(), SocketError> {
        Ok(self.stream.write_all(&masked(text)).await?)
    }

    /// Reads what has come, at least something, and hands over the text of each whole frame.
    ///
    /// # Cancel safety
    /// Nothing is lost when dropped.
    pub(super) async fn read(
        &mut self,
        mut hear: impl FnMut(&str) -> Result<(), SocketError>,
    ) -> Result<(), SocketError> {
        poll_fn(|cx| {
            ROOM.with_borrow_mut(|room| {
                let mut room = ReadBuf::new(room);
                ready!(Pin::new(&mut self.stream).poll_read(cx, &mut room))?;
                Poll::Ready(self.take(room.filled(), &mut hear))
            })
        })
        .await
    }

    fn take(
        &mut self,
        came: &[u8],
        hear: &mut impl FnMut(&str) -> Result<(), SocketError>,
    ) -> Result<(), SocketError> {
        if came.is_empty() {
            return Err(SocketError::Closed("without a word".to_owned()));
        }
        if self.begun.is_empty() {
            let rest = each_frame(came, hear)?;
            self.begun.extend_from_slice(rest);
            return Ok(());
        }
        self.begun.extend_from_slice(came);
        let begun = std::mem::take(&mut self.begun);
        let rest = each_frame(&begun, hear)?;
        self.begun = match rest.len() == begun.len() {
            true => begun,
            false => rest.to_vec(),
        };
        Ok(())
    }
}

/// Hands over the text of whole frames; returns what is left.
fn each_frame<'a>(
    mut bytes: &'a [u8],
    hear: &mut impl FnMut(&str) -> Result<(), SocketError>,
) -> Result<&'a [u8], SocketError> {
    while let Some((frame, rest)) = first_frame(bytes)? {
        match frame {
            Frame::Text(text) => hear(text)?,
            Frame::Close(why) => return Err(closed(why)),
        }
        bytes = rest;
    }
    Ok(bytes)
}

/// The first frame and what follows it; `None` if it has not come whole.
fn first_frame(bytes: &[u8]) -> Result<Option<(Frame<'_>, &[u8])>, SocketError> {
    let [first, second, rest @ ..] = bytes else { return Ok(None) };
    let (len, rest) = match (second, rest) {
        (126, [a, b, rest @ ..]) => (usize::from(u16::from_be_bytes([*a, *b])), rest),
        (127, [a, b, c, d, e, f, g, h, rest @ ..]) => {
            (u64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h]) as usize, rest)
        }
        (126 | 127, _) => return Ok(None),
        (len, rest) => (usize::from(*len), rest),
    };
    let Some((payload, rest)) = rest.split_at_checked(len) else { return Ok(None) };
    let frame = match *first {
        TEXT => Frame::Text(std::str::from_utf8(payload).map_err(not_understood)?),
        CLOSE => Frame::Close(payload),
        other => return Err(SocketError::NotUnderstood(format!("a frame that begins {other:#x}"))),
    };
    Ok(Some((frame, rest)))
}

fn closed(why: &[u8]) -> SocketError {
    let [a, b, reason @ ..] = why else { return SocketError::Closed(String::new()) };
    let code = u16::from_be_bytes([*a, *b]);
    SocketError::Closed(format!("{code} {}", String::from_utf8_lossy(reason)))
}

fn not_understood(error: impl std::fmt::Display) -> SocketError {
    SocketError::NotUnderstood(error.to_string())
}

/// A frame of text, masked as clients have to, with a mask that changes nothing.
fn masked(text: &[u8]) -> Vec<u8> {
    const MASKED: u8 = 0x80;
    let mut frame = Vec::with_capacity(text.len() + 14);
    frame.push(TEXT);
    match (u8::try_from(text.len()), u16::try_from(text.len())) {
        (Ok(short @ ..=125), _) => frame.push(MASKED | short),
        (_, Ok(middle)) => {
            frame.push(MASKED | 126);
            frame.extend_from_slice(&middle.to_be_bytes());
        }
        _ => {
            frame.push(MASKED | 127);
            frame.extend_from_slice(&(text.len() as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(text);
    frame
}

#[cfg(test)]
mod tests {
    use futures_util::{SinkExt, StreamExt};
    use tokio::net::TcpListener;
    use tokio_tungstenite::accept_async;
    use tokio_tungstenite::tungstenite::Message;

    use super::*;

    /// With a server that is somebody else's.
    #[tokio::test]
    async fn frames_of_every_length_are_sent_and_heard_whole() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let lengths = [0, 1, 125, 126, 4_000, 65_535, 65_536, 300_000];
        let serving = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut socket = accept_async(stream).await.unwrap();
            for len in lengths {
                let heard = socket.next().await.unwrap().unwrap();
                assert_eq!(heard, Message::text("7".repeat(len)));
                socket.feed(heard).await.unwrap();
                socket.send(Message::text("and")).await.unwrap();
            }
            // The end is not to come with what was said before.
            socket.next().await.unwrap().unwrap();
            socket.close(None).await.unwrap();
        });
        let stream = TcpStream::connect(address).await.unwrap();
        let mut frames = Frames::open(stream, &address.to_string()).await.unwrap();
        for len in lengths {
            frames.send("7".repeat(len).as_bytes()).await.unwrap();
            let mut heard = Vec::new();
            while heard.len() < 2 {
                let mut hear = |text: &str| {
                    heard.push(text.to_owned());
                    Ok(())
                };
                frames.read(&mut hear).await.unwrap();
            }
            assert_eq!(heard, ["7".repeat(len), "and".to_owned()]);
        }
        frames.send(b"that was all").await.unwrap();
        let end = frames.read(|_| Ok(())).await;
        assert!(matches!(end, Err(SocketError::Closed(_))), "{end:?}");
        serving.await.unwrap();
    }
}
