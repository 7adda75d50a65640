//! A client of the server: one WebSocket and plain HTTP requests.

use std::collections::VecDeque;
use std::net::SocketAddr;

use anyhow::{Context, Result, anyhow, bail};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::wire::{Command, Notice};

/// Bytes of a socket's buffers; there may be thousands.
const BUFFER_LEN: usize = 4 * 1_024;

/// A connection to the server.
#[derive(Debug)]
pub struct Client {
    socket: WebSocketStream<TcpStream>,
    notices: VecDeque<Notice>,
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// The server cannot be reached or refuses.
    pub async fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await.context("connecting")?;
        stream.set_nodelay(true)?;
        let config = WebSocketConfig::default().read_buffer_size(BUFFER_LEN).write_buffer_size(0);
        let url = format!("ws://{address}/socket");
        let (socket, _) = client_async_with_config(url, stream, Some(config)).await?;
        Ok(Self { socket, notices: VecDeque::new() })
    }

    /// Sends commands as one message.
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn send(&mut self, commands: &[Command]) -> Result<()> {
        let mut message = Vec::new();
        commands.iter().for_each(|command| command.write(&mut message));
        self.send_bytes(message).await
    }

    /// Sends bytes as one message, whatever they are.
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn send_bytes(&mut self, message: Vec<u8>) -> Result<()> {
        Ok(self.socket.send(Message::Binary(message.into())).await?)
    }

    /// Sends text, which the server does not speak.
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn send_text(&mut self, text: &str) -> Result<()> {
        Ok(self.socket.send(Message::text(text)).await?)
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
            let message =
                self.socket.next().await.ok_or_else(|| anyhow!("connection closed"))??;
            match message {
                Message::Binary(bytes) => {
                    let mut rest = &bytes[..];
                    while let Some(notice) = Notice::take(&mut rest)? {
                        self.notices.push_back(notice);
                    }
                }
                Message::Close(frame) => bail!("the server closed the connection: {frame:?}"),
                _ => {}
            }
        }
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
