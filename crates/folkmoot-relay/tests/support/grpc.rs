//! A client of the server API over gRPC: what goes over the wire is put together here from field
//! numbers, by nothing that the server reads it with.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Request};
use folkmoot_relay::Relay;
use hyper::body::Body as _;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Only turns a promise that is never kept into a failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// A field of bytes, a text or a message.
pub(crate) fn field(number: u8, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    [varint(u64::from(number) << 3 | 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
}

pub(crate) fn number(number: u8, value: i64) -> Vec<u8> {
    [varint(u64::from(number) << 3), varint(value.cast_unsigned())].concat()
}

pub(crate) fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("a text")
}

/// What a message has.
#[derive(Debug, Default)]
pub(crate) struct Fields(Vec<(u64, Vec<u8>)>);

impl Fields {
    pub(crate) fn read(mut bytes: &[u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = take(&mut bytes);
            let value = match key & 7 {
                0 => take(&mut bytes).to_le_bytes().to_vec(),
                2 => {
                    let len = usize::try_from(take(&mut bytes)).expect("a length");
                    let (value, rest) = bytes.split_at(len);
                    bytes = rest;
                    value.to_vec()
                }
                kind => panic!("a field of kind {kind}"),
            };
            fields.push((key >> 3, value));
        }
        Self(fields)
    }

    pub(crate) fn all(&self, number: u64) -> Vec<&[u8]> {
        let fields = self.0.iter().filter(|(one, _)| *one == number);
        fields.map(|(_, value)| value.as_slice()).collect()
    }

    pub(crate) fn bytes(&self, number: u64) -> &[u8] {
        self.all(number).first().copied().unwrap_or_default()
    }

    pub(crate) fn text(&self, number: u64) -> String {
        text(self.bytes(number))
    }

    pub(crate) fn number(&self, number: u64) -> u64 {
        let bytes = self.bytes(number);
        if bytes.is_empty() { 0 } else { u64::from_le_bytes(bytes.try_into().expect("a number")) }
    }

    pub(crate) fn inner(&self, number: u64) -> Self {
        Self::read(self.bytes(number))
    }
}

fn take(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a number");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    value
}

/// What came of a call.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) http_status: u16,
    /// Of gRPC; `None`: there is none.
    pub(crate) status: Option<u16>,
    /// Why.
    pub(crate) reason: String,
    pub(crate) body: Vec<u8>,
}

/// A backend's connection.
pub(crate) struct Backend {
    pub(crate) calls: SendRequest<Body>,
    /// Whether its calls ask for errors as their status.
    pub(crate) wants_status: bool,
}

impl Backend {
    pub(crate) async fn connect(relay: &Relay) -> Self {
        let address = relay.grpc_address().expect("it listens");
        Self::over(TcpStream::connect(address).await.expect("it listens")).await
    }

    /// On a connection that is there.
    pub(crate) async fn over<S>(socket: S) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let handshake = handshake(TokioExecutor::new(), TokioIo::new(socket)).await;
        let (sender, connection) = handshake.expect("it speaks HTTP/2");
        tokio::spawn(async move { drop(connection.await) });
        Self { calls: sender, wants_status: false }
    }

    /// Calls a method with the right key; returns the result or the error in its answer.
    pub(crate) async fn call(
        &mut self,
        method: &str,
        message: Vec<u8>,
    ) -> Result<Fields, (u64, String)> {
        let answer = self.answer(method, &message).await;
        match answer.all(1).first() {
            Some(error) => {
                let error = Fields::read(error);
                Err((error.number(1), error.text(2)))
            }
            None => Ok(answer.inner(2)),
        }
    }

    /// Calls a method with the right key; returns the message of its answer.
    pub(crate) async fn answer(&mut self, method: &str, message: &[u8]) -> Fields {
        self.answer_to("secret", method, message).await
    }

    pub(crate) async fn answer_to(&mut self, key: &str, method: &str, message: &[u8]) -> Fields {
        let path = format!("/centrifugal.centrifugo.api.CentrifugoApi/{method}");
        let called = self.ask(&path, Some(&format!("apikey {key}")), framed(message)).await;
        assert_eq!((called.http_status, called.status), (200, Some(0)), "{called:?}");
        let message = &called.body[5..];
        assert_eq!(called.body, framed(message));
        Fields::read(message)
    }

    pub(crate) async fn ask(&mut self, path: &str, key: Option<&str>, body: Vec<u8>) -> Called {
        self.ask_as("application/grpc+proto", path, key, body).await
    }

    pub(crate) async fn ask_as(
        &mut self,
        kind: &str,
        path: &str,
        key: Option<&str>,
        body: Vec<u8>,
    ) -> Called {
        let request = Request::post(format!("http://here{path}"))
            .header("content-type", kind)
            .header("te", "trailers");
        let request = key.into_iter().fold(request, |it, key| it.header("authorization", key));
        let mode = self.wants_status.then_some("transport");
        let request =
            mode.into_iter().fold(request, |it, mode| it.header("x-centrifugo-error-mode", mode));
        let request = request.body(Body::from(body)).expect("a request");
        let response =
            timeout(PATIENCE, self.calls.send_request(request)).await.expect("nothing came");
        let (head, mut body) = response.expect("a response").into_parts();
        let mut called = Called {
            http_status: head.status.as_u16(),
            status: None,
            reason: String::new(),
            body: Vec::new(),
        };
        called.note(&head.headers);
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            match frame.expect("a frame").into_data() {
                Ok(data) => called.body.extend_from_slice(&data),
                Err(frame) => called.note(&frame.into_trailers().expect("trailers")),
            }
        }
        called
    }
}

impl Called {
    fn note(&mut self, headers: &HeaderMap) {
        let value = |name| headers.get(name).map(|value| value.to_str().expect("a text"));
        if let Some(status) = value("grpc-status") {
            self.status = Some(status.parse().expect("a number"));
            self.reason = value("grpc-message").unwrap_or_default().to_owned();
        }
    }
}

/// A message behind the flag of compression and its length.
pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let len = u32::try_from(message.len()).expect("a length").to_be_bytes();
    [&[0], len.as_slice(), message].concat()
}
