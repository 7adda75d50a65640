//! A client of the server: one WebSocket and plain HTTP requests.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context as Poller, Poll, ready};

use anyhow::{Context, Result, anyhow, bail};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;

use crate::websocket::{Decoder, From, Kind, Message, Written};
use crate::wire::{Command, Notice};

/// Bytes read at once.
const READ_LEN: usize = 8 * 1_024;
/// A snapshot of every region is smaller.
const MESSAGE_LEN_MAX: usize = 4 * 1_024 * 1_024;
/// Bytes of the longest answer to a handshake.
const HANDSHAKE_LEN_MAX: usize = 4 * 1_024;
/// The server checks its form only; a proxy that replays answers, which it is against, does not lie
/// between.
const KEY: &str = "dHJlYXN1cmUgaHVudCBib3Q=";

/// A connection to the server.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    decoder: Decoder,
    partial: Vec<u8>,
    notices: VecDeque<Notice>,
    is_closed: bool,
    /// Views and snapshots received, whether or not anybody looked at them.
    pub views: u64,
    /// Whether views are handed out; who only counts them is spared reading them.
    pub reads_views: bool,
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// The server cannot be reached or refuses.
    pub async fn connect(address: SocketAddr) -> Result<Self> {
        let mut stream = TcpStream::connect(address).await.context("connecting")?;
        stream.set_nodelay(true)?;
        let mut begun = shake_hands(&mut stream, address).await?;
        let mut client = Self {
            stream,
            decoder: Decoder::new(From::Server, MESSAGE_LEN_MAX),
            partial: Vec::new(),
            notices: VecDeque::new(),
            is_closed: false,
            views: 0,
            reads_views: true,
        };
        client.take(&mut begun)?;
        Ok(client)
    }

    /// Sends commands as one message.
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn send(&mut self, commands: &[Command]) -> Result<()> {
        let mut message = Vec::with_capacity(64);
        Written::reserve(&mut message);
        commands.iter().for_each(|command| command.write(&mut message));
        self.write(&Written::finish(message, Kind::Binary, From::Client)).await
    }

    /// Sends bytes as one message, whatever they are.
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn send_bytes(&mut self, message: &[u8]) -> Result<()> {
        self.write(&Written::whole(Kind::Binary, From::Client, message)).await
    }

    /// Sends text, which the server does not speak.
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn send_text(&mut self, text: &str) -> Result<()> {
        self.write(&Written::whole(Kind::Text, From::Client, text.as_bytes())).await
    }

    async fn write(&mut self, written: &Written) -> Result<()> {
        Ok(self.stream.write_all(written.rest()).await?)
    }

    /// The next notice.
    ///
    /// # Errors
    /// The connection is gone, or the server sends what it should not.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Result<Notice> {
        loop {
            if let Some(notice) = self.notices.pop_front() {
                return Ok(notice);
            }
            poll_fn(|cx| self.poll_read(cx)).await?;
        }
    }

    /// Reads what has come; ready when there is something new to take, be it only views.
    ///
    /// # Errors
    /// As `next`.
    pub fn poll_read(&mut self, cx: &mut Poller<'_>) -> Poll<Result<()>> {
        if self.is_closed {
            return Poll::Ready(Err(anyhow!("the server closed the connection")));
        }
        let mut scratch = [MaybeUninit::uninit(); READ_LEN];
        let mut read = ReadBuf::uninit(&mut scratch);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read))?;
        let bytes = read.filled_mut();
        if bytes.is_empty() {
            return Poll::Ready(Err(anyhow!("connection closed")));
        }
        if self.partial.is_empty() {
            return Poll::Ready(self.take(bytes));
        }
        let mut whole = std::mem::take(&mut self.partial);
        whole.extend_from_slice(bytes);
        Poll::Ready(self.take(&mut whole))
    }

    fn take(&mut self, mut bytes: &mut [u8]) -> Result<()> {
        while let Some((message, len)) = self.decoder.take(bytes)? {
            match message {
                Message::Binary(message) => {
                    let mut rest = &message[..];
                    while !rest.is_empty() {
                        if !self.reads_views && Notice::pass_view(&mut rest)? {
                            self.views += 1;
                        } else if let Some(notice) = Notice::take(&mut rest)? {
                            self.notices.push_back(notice);
                        }
                    }
                }
                // What came before it is still taken.
                Message::Close => self.is_closed = true,
                _ => {}
            }
            bytes = &mut bytes[len..];
        }
        self.partial = bytes.to_vec();
        Ok(())
    }

    /// A notice that is here already.
    pub fn take_ready(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// The next answer; views are passed over.
    ///
    /// # Errors
    /// As `next`.
    pub async fn answer(&mut self) -> Result<Notice> {
        loop {
            match self.next().await? {
                Notice::View(..) | Notice::Snapshot { .. } => {}
                answer => return Ok(answer),
            }
        }
    }
}

/// Asks for a WebSocket; returns what came after the answer.
async fn shake_hands(stream: &mut TcpStream, address: SocketAddr) -> Result<Vec<u8>> {
    let request = format!(
        "GET /socket HTTP/1.1\r\nhost: {address}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: {KEY}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    loop {
        let mut scratch = [0; 1_024];
        let len = stream.read(&mut scratch).await?;
        answer.extend_from_slice(&scratch[..len]);
        if let Some(end) = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            if !answer.starts_with(b"HTTP/1.1 101") {
                bail!("the server answers {}", String::from_utf8_lossy(&answer[..end]));
            }
            return Ok(answer.split_off(end + 4));
        }
        if len == 0 || answer.len() > HANDSHAKE_LEN_MAX {
            bail!("the server does not answer as a WebSocket");
        }
    }
}

/// Gets a document.
///
/// # Errors
/// The server cannot be reached, or answers with something else.
pub async fn get(address: SocketAddr, path: &str) -> Result<(u16, String, Vec<u8>)> {
    let mut stream = TcpStream::connect(address).await.context("connecting")?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut response = Vec::new();
    stream.read_to_end(&mut response).await?;
    let end = response.windows(4).position(|bytes| bytes == b"\r\n\r\n").context("no header")?;
    let head = String::from_utf8_lossy(&response[..end]).into_owned();
    let code = head.split_whitespace().nth(1).and_then(|code| code.parse().ok());
    Ok((code.context("no status")?, head, response.split_off(end + 4)))
}

/// Gets a JSON document.
///
/// # Errors
/// As `get`; also if it is not what was expected.
pub async fn get_json<T: serde::de::DeserializeOwned>(
    address: SocketAddr,
    path: &str,
) -> Result<T> {
    let (code, _, body) = get(address, path).await?;
    if code != 200 {
        bail!("{path} answers {code}: {}", String::from_utf8_lossy(&body));
    }
    serde_json::from_slice(&body).with_context(|| format!("{path} is not what it should be"))
}
