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
    let answer = exchange(server, line, token, &[], body.as_bytes()).await;
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    Answer { status: answer.status, head: answer.head, body }
}

/// An answer whose body may be anything.
#[derive(Debug)]
pub(crate) struct Bytes {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Bytes {
    /// The detail of a problem document.
    pub(crate) fn detail(&self) -> String {
        self.json()["detail"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }
}

/// Sends a request whose body may be anything, with further header lines. One of
/// `Transfer-Encoding` replaces the length, one of `Host` the server's address.
pub(crate) async fn exchange(
    server: SocketAddr,
    line: &str,
    token: Option<&str>,
    headers: &[&str],
    body: &[u8],
) -> Bytes {
    let mut text = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|header| header.starts_with("Host")) {
        text.push_str(&format!("Host: {server}\r\n"));
    }
    if let Some(token) = token {
        text.push_str(&format!("Authorization: Bearer {token}\r\n"));
    }
    if !headers.iter().any(|header| header.starts_with("Transfer-Encoding")) {
        text.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    headers.iter().for_each(|header| text.push_str(&format!("{header}\r\n")));
    text.push_str("\r\n");
    let mut socket = TcpStream::connect(server).await.expect("the server listens");
    // A server that refuses a long body may close before all of it is written.
    let _ = socket.write_all(text.as_bytes()).await;
    let _ = socket.write_all(body).await;
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer).await;
    let split = answer.windows(4).position(|window| window == b"\r\n\r\n");
    let split = split.unwrap_or_else(|| panic!("no head in {answer:?}"));
    let head = String::from_utf8_lossy(&answer[..split]).into_owned();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no status in {head:?}"));
    Bytes { status, head: head.to_lowercase(), body: unchunked(&head, &answer[split + 4..]) }
}

/// Puts a body together that came in chunks.
fn unchunked(head: &str, body: &[u8]) -> Vec<u8> {
    if !head.to_lowercase().contains("transfer-encoding: chunked") {
        return body.to_vec();
    }
    let (mut whole, mut rest) = (Vec::new(), body);
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).ok();
        let Some(size) = size.and_then(|text| usize::from_str_radix(text, 16).ok()) else { break };
        whole.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 4 + size..];
    }
    whole
}
