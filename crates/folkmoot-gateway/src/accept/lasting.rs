//! Responses that last as long as their connection, and are silent for most of it: they are written
//! here and not by the HTTP library, whose buffers for requests that will not come were half of what
//! such a connection took.

use std::io::{self, Write};
use std::time::SystemTime;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, Version, header};
use axum::response::Response;
use futures_util::StreamExt;
use hyper::{Method, Request};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Said among a response's extensions: its body goes on until the client goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lasting;

/// What is said by a client after its request is dropped: nothing is expected.
const DROPPED_BYTES: usize = 64;

/// Whether a response to this request may be written in chunks, which HTTP/1.0 does not know.
pub(super) fn may_last<B>(request: &Request<B>) -> bool {
    request.version() == Version::HTTP_11 && request.method() != Method::HEAD
}

/// A response with its head as it is written.
pub(super) struct Written {
    head: Vec<u8>,
    body: Body,
}

impl Written {
    pub(super) fn new(response: Response) -> Self {
        let (parts, body) = response.into_parts();
        Self { head: head(parts.status, &parts.headers), body }
    }

    /// Writes all of it, unless the client goes before. The connection ends with it.
    ///
    /// A plain function makes the future: what one is given and moves on has its room twice.
    pub(super) fn write<S>(self, socket: S) -> impl Future<Output = io::Result<()>> + Send
    where
        S: AsyncRead + AsyncWrite + Send + Unpin,
    {
        let (mut reading, mut writing) = tokio::io::split(socket);
        let (mut head, mut parts) = (Some(self.head), self.body.into_data_stream());
        async move {
            if let Some(head) = head.take() {
                writing.write_all(&head).await?;
            }
            loop {
                let part = tokio::select! {
                    part = parts.next() => part,
                    () = gone(&mut reading) => return Ok(()),
                };
                let Some(part) = part else { break };
                let part = part.map_err(io::Error::other)?;
                if !part.is_empty() {
                    writing.write_all(&chunk(&part)).await?;
                }
            }
            writing.write_all(b"0\r\n\r\n").await?;
            writing.shutdown().await
        }
    }
}

/// Waits until the client has gone.
async fn gone(reading: &mut (impl AsyncRead + Unpin)) {
    let mut dropped = [0; DROPPED_BYTES];
    while reading.read(&mut dropped).await.is_ok_and(|len| len > 0) {}
}

fn head(status: StatusCode, headers: &HeaderMap) -> Vec<u8> {
    let reason = status.canonical_reason().unwrap_or_default();
    let mut head = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes();
    for (name, value) in headers {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            head.extend_from_slice(part);
        }
    }
    if !headers.contains_key(header::DATE) {
        let date = httpdate::fmt_http_date(SystemTime::now());
        head.extend_from_slice(format!("date: {date}\r\n").as_bytes());
    }
    head.extend_from_slice(b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n");
    head
}

/// One part of a body as it is written: a client reads it as soon as it is there.
fn chunk(part: &[u8]) -> Vec<u8> {
    let mut chunk = Vec::with_capacity(part.len() + 20);
    write!(chunk, "{:x}\r\n", part.len()).expect("memory takes it");
    chunk.extend_from_slice(part);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;
    use bytes::Bytes;
    use futures_util::stream;
    use tokio::io::duplex;

    use super::*;

    #[tokio::test]
    async fn a_response_is_written_in_chunks_and_ends_with_its_body() {
        let parts =
            ["one\n", "", "and another one\n"].map(|part| Ok::<_, io::Error>(Bytes::from(part)));
        let response = ([("x-kind", "long")], Body::from_stream(stream::iter(parts)));
        let (mut client, server) = duplex(1_024);
        Written::new(response.into_response()).write(server).await.unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).await.unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\nx-kind: long\r\ndate: "), "{head}");
        assert!(
            head.ends_with(" GMT\r\ntransfer-encoding: chunked\r\nconnection: close"),
            "{head}"
        );
        assert_eq!(body, "4\r\none\n\r\n10\r\nand another one\n\r\n0\r\n\r\n");
    }

    #[tokio::test]
    async fn a_client_that_goes_ends_a_response_that_is_silent() {
        let response = Body::from_stream(stream::pending::<io::Result<Bytes>>()).into_response();
        let (mut client, server) = duplex(1_024);
        let written = tokio::spawn(Written::new(response).write(server));
        let mut head = [0; 15];
        client.read_exact(&mut head).await.unwrap();
        assert_eq!(head, *b"HTTP/1.1 200 OK");
        client.write_all(&[7; 3 * DROPPED_BYTES]).await.unwrap();
        drop(client);
        written.await.unwrap().unwrap();
    }

    #[test]
    fn only_chunks_that_the_client_can_read_are_written() {
        let asked = |method, version| {
            let request = Request::builder().method(method).version(version).body(()).unwrap();
            may_last(&request)
        };
        assert!(asked(Method::GET, Version::HTTP_11));
        assert!(asked(Method::POST, Version::HTTP_11));
        assert!(!asked(Method::GET, Version::HTTP_10));
        assert!(!asked(Method::HEAD, Version::HTTP_11));
    }
}
