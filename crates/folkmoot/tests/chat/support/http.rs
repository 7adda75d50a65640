//! One HTTP request by hand, so that a test sees exactly what was sent and answered.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }
}

/// Sends a request with an optional token and JSON body.
pub(crate) async fn request(
    server: SocketAddr,
    line: &str,
    token: Option<&str>,
    body: &str,
) -> Answer {
    let authorization =
        token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let text = format!(
        "{line} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n{authorization}\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut socket = TcpStream::connect(server).await.expect("the server listens");
    // A server that refuses a long body may close before all of it is written.
    let _ = socket.write_all(text.as_bytes()).await;
    let mut answer = String::new();
    let _ = socket.read_to_string(&mut answer).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no status in {answer:?}"));
    Answer { status, head: head.to_lowercase(), body: body.to_owned() }
}
