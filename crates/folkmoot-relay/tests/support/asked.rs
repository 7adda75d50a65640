//! A request of HTTP whose response goes on.

use std::time::Duration;

use folkmoot_relay::Relay;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Only turns a promise that is never kept into a failure.
const PATIENCE: Duration = Duration::from_secs(30);

/// A request whose response has begun, with what was read of it.
pub(crate) struct Asked {
    pub(crate) socket: TcpStream,
    pub(crate) read: Vec<u8>,
}

impl Asked {
    pub(crate) async fn request(relay: &Relay, head: &str, body: &str) -> Self {
        let mut socket = TcpStream::connect(relay.address()).await.expect("it listens");
        let len = body.len();
        let text = format!("{head}\r\nHost: here\r\nContent-Length: {len}\r\n\r\n{body}");
        socket.write_all(text.as_bytes()).await.expect("it is open");
        let mut asked = Self { socket, read: Vec::new() };
        asked.until("\r\n\r\n").await;
        asked
    }

    /// Reads until a text has come; returns all that has.
    pub(crate) async fn until(&mut self, text: &str) -> String {
        loop {
            let read = String::from_utf8_lossy(&self.read).into_owned();
            if read.contains(text) {
                return read;
            }
            let more = timeout(PATIENCE, self.socket.read_buf(&mut self.read)).await;
            let more = more.expect("nothing came").expect("it reads");
            assert!(more > 0, "ended before {text:?}: {read}");
        }
    }

    pub(crate) fn status(&self) -> u16 {
        let text = String::from_utf8_lossy(&self.read);
        text.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
    }
}
