//! gRPC's framing of unary calls over HTTP/2: one message behind a flag and its length, and the
//! status of the call in the trailers. See `PROTOCOL-HTTP2.md` of gRPC.

use std::convert::Infallible;
use std::fmt::Write;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response};
use bytes::{BufMut, Bytes, BytesMut};
use hyper::body::{Body, Frame, Incoming};

/// The flag of compression, and the length.
const PREFIX_BYTES: usize = 5;
const CONTENT: HeaderValue = HeaderValue::from_static("application/grpc");
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// Why a call has no answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Status {
    code: u8,
    text: String,
}

impl Status {
    pub(super) const RESOURCE_EXHAUSTED: u8 = 8;
    pub(super) const UNIMPLEMENTED: u8 = 12;
    pub(super) const INTERNAL: u8 = 13;
    pub(super) const UNAUTHENTICATED: u8 = 16;

    pub(super) fn new(code: u8, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

/// A message and the trailers behind it.
#[derive(Debug, Default)]
pub(super) struct Answer {
    message: Option<Bytes>,
    trailers: Option<HeaderMap>,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let message = self.message.take().map(Frame::data);
        let frame = message.or_else(|| self.trailers.take().map(Frame::trailers));
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.message.is_none() && self.trailers.is_none()
    }
}

/// The answer to a call.
pub(super) fn response(message: &[u8]) -> Response<Answer> {
    let mut framed = BytesMut::with_capacity(PREFIX_BYTES + message.len());
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).expect("answers are far below 4 GiB"));
    framed.put_slice(message);
    let trailers = HeaderMap::from_iter([(STATUS, HeaderValue::from_static("0"))]);
    let answer = Answer { message: Some(framed.freeze()), trailers: Some(trailers) };
    let mut response = Response::new(answer);
    response.headers_mut().insert(CONTENT_TYPE, CONTENT);
    response
}

/// The answer to what is no call: all of it is in the head.
pub(super) fn failed(status: &Status) -> Response<Answer> {
    let mut response = Response::new(Answer::default());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, CONTENT);
    headers.insert(STATUS, u16::from(status.code).into());
    let text = HeaderValue::from_str(&escaped(&status.text));
    headers.insert(MESSAGE, text.expect("what is escaped is visible ASCII"));
    response
}

/// Visible ASCII as it stands, and all else in hexadecimal behind `%`.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => escaped.push(char::from(byte)),
            _ => write!(escaped, "%{byte:02X}").expect("a string takes all"),
        }
    }
    escaped
}

/// Reads the one message of a unary call.
pub(super) async fn read(mut body: Incoming, bytes_max: usize) -> Result<Bytes, Status> {
    let mut read = BytesMut::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let frame = frame.map_err(|error| {
            Status::new(Status::INTERNAL, format!("the call cannot be read: {error}"))
        })?;
        let Ok(data) = frame.into_data() else { continue };
        read.extend_from_slice(&data);
        // Told by its prefix already, so that no more of it is read.
        if length(&read)?.is_some_and(|len| len > bytes_max) {
            let text = format!("the message is over the limit of {bytes_max} bytes");
            return Err(Status::new(Status::RESOURCE_EXHAUSTED, text));
        }
        if length(&read)?.is_some_and(|len| read.len() > PREFIX_BYTES + len) {
            return Err(Status::new(Status::INTERNAL, "more than one message"));
        }
    }
    match length(&read)? {
        Some(len) if read.len() == PREFIX_BYTES + len => Ok(read.freeze().slice(PREFIX_BYTES..)),
        _ => Err(Status::new(Status::INTERNAL, "the message is cut off")),
    }
}

/// How long the message is, once that is read.
fn length(read: &[u8]) -> Result<Option<usize>, Status> {
    match read.first_chunk::<PREFIX_BYTES>() {
        None => Ok(None),
        Some([0, length @ ..]) => Ok(Some(u32::from_be_bytes(*length) as usize)),
        Some(_) => Err(Status::new(Status::UNIMPLEMENTED, "compression is not offered")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_told_in_visible_ascii() {
        assert_eq!(escaped("a b~"), "a b~");
        assert_eq!(escaped("100%\n\u{e4}"), "100%25%0A%C3%A4");
    }

    #[test]
    fn a_length_is_known_once_it_is_whole_and_compression_is_refused() {
        assert_eq!(length(&[0, 0, 0, 1]), Ok(None));
        assert_eq!(length(&[0, 0, 0, 1, 2, 9]), Ok(Some(258)));
        let status = length(&[1, 0, 0, 0, 0]).expect_err("it is compressed");
        assert_eq!(status.code, Status::UNIMPLEMENTED);
    }
}
