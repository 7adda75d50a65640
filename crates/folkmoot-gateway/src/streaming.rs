//! Connections whose events come as one long HTTP response: lines or length-prefixed frames (HTTP
//! streaming), or server-sent events. For networks in which WebSockets do not get through.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName};
use axum::response::{IntoResponse, Response};
use bytes::{BufMut, Bytes, BytesMut};
use folkmoot_protocol::frame::{Disconnect, Push, PushKind};
use folkmoot_protocol::{DisconnectCode, Format};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt, stream};
use serde::Deserialize;

use crate::accept::Visit;
use crate::accept::lasting::Lasting;
use crate::connection::{Application, Note, Reader, Session};
use crate::direction::Direction;
use crate::emulation::{self, Emulation, Kept};
use crate::outbox::{Close, Next, Outbox};
use crate::upgrade::Settings;

/// How long a client that cannot keep up may take to read what is under way.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The connect command in the URL of server-sent events, which have no body.
#[derive(Debug, Default, Deserialize)]
pub struct EventQuery {
    #[serde(default)]
    cf_connect: String,
}

/// How messages are put into a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrapping {
    /// A line each, or a length and a frame each.
    Stream(Format),
    /// An event each, of JSON.
    Events,
}

/// Answers `POST /connection/http_stream`, whose body is the connect command.
pub fn http_stream<A: Application>(
    headers: &HeaderMap,
    connect: Bytes,
    visit: Arc<Visit>,
    settings: Settings,
    application: A,
    emulation: &Arc<Emulation>,
) -> Response {
    let wrapping = Wrapping::Stream(emulation::format(headers));
    serve(wrapping, emulated(connect, emulation), visit, settings, application)
}

/// Answers `GET /connection/sse`.
pub fn event_stream<A: Application>(
    query: EventQuery,
    visit: Arc<Visit>,
    settings: Settings,
    application: A,
    emulation: &Arc<Emulation>,
) -> Response {
    let commands = emulated(Bytes::from(query.cf_connect), emulation);
    serve(Wrapping::Events, commands, visit, settings, application)
}

/// What a client says, whose messages come as a response.
pub(crate) struct Commands {
    pub(crate) frames: BoxStream<'static, Result<Bytes, DisconnectCode>>,
    /// By what requests with further commands find it, if there are any.
    pub(crate) session: Option<(Session, Kept)>,
    pub(crate) direction: Direction,
}

/// The connect command, and those that come by requests of their own.
fn emulated(connect: Bytes, emulation: &Arc<Emulation>) -> Commands {
    let (session, kept, commands) = emulation.open();
    let frames = stream::once(async move { connect }).chain(commands).map(Ok);
    let session = Some((session, kept));
    Commands { frames: Box::pin(frames), session, direction: Direction::Both }
}

pub(crate) fn serve<A: Application>(
    wrapping: Wrapping,
    commands: Commands,
    visit: Arc<Visit>,
    settings: Settings,
    application: A,
) -> Response {
    let Commands { mut frames, session, direction } = commands;
    let outbox = Arc::new(Outbox::new(settings.outgoing_queue_bytes_max));
    let format = wrapping.format();
    let guard = application.opened();
    let reader = Reader::new(application.clone(), outbox.clone(), format, visit.clone(), &settings);
    let reader = match direction {
        Direction::Both => reader,
        Direction::ToClient => reader.towards(direction).unanswered(),
    };
    let (session, kept) = session.unzip();
    let (mut reader, closing) = (reader.known_as(session), outbox.clone());
    let (written, reading) = tokio::sync::oneshot::channel::<()>();
    tokio::spawn(async move {
        reader.run(&mut frames).await;
        drop(kept);
        // The response ends once its client has read it; who does not is cut off.
        if tokio::time::timeout(CLOSE_TIMEOUT, reading).await.is_err() {
            visit.end();
        }
        application.note(Note::Closed(closing.ending().map_or(0, |close| close.code)));
        drop(guard);
    });
    let body = Written { outbox, direction, _written: written };
    let headers = [
        (CONTENT_TYPE, wrapping.content_type()),
        (CACHE_CONTROL, "no-cache, no-store, no-transform"),
        // Proxies that gather a response would hold events back.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Extension(Lasting), Body::from_stream(body.messages(wrapping))).into_response()
}

/// The write half. It is dropped with the response, when the client is gone too.
struct Written {
    outbox: Arc<Outbox>,
    direction: Direction,
    /// Dropped with it.
    _written: tokio::sync::oneshot::Sender<()>,
}

impl Drop for Written {
    fn drop(&mut self) {
        self.outbox.close(DisconnectCode::ConnectionClosed);
    }
}

impl Written {
    fn messages(
        self,
        wrapping: Wrapping,
    ) -> impl Stream<Item = Result<Bytes, std::convert::Infallible>> {
        stream::unfold(Some(self), move |written| async move {
            let written = written?;
            let (chunk, rest) = match written.outbox.next().await {
                Next::Messages(messages) => {
                    (wrapping.all(messages, written.direction), Some(written))
                }
                Next::Close(close) => {
                    let goodbye = vec![goodbye(&close, wrapping.format())];
                    (wrapping.all(goodbye, written.direction), None)
                }
            };
            Some((Ok(chunk), rest))
        })
    }
}

/// Why the connection ends, where there is no close frame.
pub(crate) fn goodbye(close: &Close, format: Format) -> Bytes {
    let code = u32::from(close.code);
    let known = DisconnectCode::from_code(code);
    let is_final = (3500..4000).contains(&code) || (4500..5000).contains(&code);
    let reconnect = known.map_or(!is_final, DisconnectCode::allows_reconnect);
    let disconnect = Disconnect { code, reason: close.reason.to_string(), reconnect };
    let push = Push { channel: String::new(), kind: Some(PushKind::Disconnect(disconnect)) };
    format.encode_push(push).expect("the push has no payload")
}

impl Wrapping {
    fn format(self) -> Format {
        match self {
            Self::Stream(format) => format,
            Self::Events => Format::Json,
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Stream(Format::Json) => "application/json",
            Self::Stream(Format::Protobuf) => "application/octet-stream",
            Self::Events => "text/event-stream",
        }
    }

    /// Messages as they stand in the response.
    fn all(self, messages: Vec<Bytes>, direction: Direction) -> Bytes {
        let len: usize = messages.iter().map(|message| message.len() + 8).sum();
        let mut chunk = BytesMut::with_capacity(len);
        for message in messages {
            let message = direction.unwrapped(message);
            match self {
                Self::Stream(Format::Protobuf) => chunk.put_slice(&message),
                Self::Stream(Format::Json) => {
                    chunk.put_slice(&message);
                    chunk.put_u8(b'\n');
                }
                // JSON of ours has no line breaks.
                Self::Events => {
                    chunk.put_slice(b"data: ");
                    chunk.put_slice(&message);
                    chunk.put_slice(b"\n\n");
                }
            }
        }
        chunk.freeze()
    }
}
