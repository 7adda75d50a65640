//! Connections on which only the server speaks, by one long HTTP response. All that a client says
//! is its connect request: in the URL or the body of the one request that there is. What it is
//! subscribed to, others decide: its token, the backend, the server API.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use folkmoot_protocol::frame::{Command, ConnectRequest, Request};
use folkmoot_protocol::limits::FRAME_BYTES_MAX;
use folkmoot_protocol::{DisconnectCode, Format};
use futures_util::{StreamExt, stream};
use serde::Deserialize;

use crate::accept::Visit;
use crate::connection::Application;
use crate::direction::Direction;
use crate::streaming::{Commands, Wrapping, serve};
use crate::upgrade::Settings;

/// The largest connect request: as a command, it has to fit a frame.
const CONNECT_BYTES_MAX: usize = FRAME_BYTES_MAX - 32;

/// The connect request in a URL.
#[derive(Debug, Default, Deserialize)]
pub struct UniQuery {
    cf_connect: Option<String>,
}

impl UniQuery {
    /// The request, if there is one.
    pub fn into_connect(self) -> Option<Bytes> {
        self.cf_connect.filter(|text| !text.is_empty()).map(Bytes::from)
    }
}

/// Why something is no connect request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoConnect {
    TooLarge,
    Malformed,
}

impl From<NoConnect> for DisconnectCode {
    fn from(why: NoConnect) -> Self {
        match why {
            NoConnect::TooLarge => Self::FrameTooLarge,
            NoConnect::Malformed => Self::BadRequest,
        }
    }
}

impl IntoResponse for NoConnect {
    fn into_response(self) -> Response {
        match self {
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Malformed => StatusCode::BAD_REQUEST,
        }
        .into_response()
    }
}

/// Makes a connect request in JSON the connect command that it stands for. `null` asks for nothing.
pub(crate) fn command(connect: &[u8]) -> Result<Bytes, NoConnect> {
    if connect.len() > CONNECT_BYTES_MAX {
        return Err(NoConnect::TooLarge);
    }
    let request: Option<ConnectRequest> = serde_json::from_slice(connect).map_err(|error| {
        tracing::debug!(%error, "a client sent a connect request that cannot be read");
        NoConnect::Malformed
    })?;
    let request = Some(Request::Connect(request.unwrap_or_default()));
    let mut frame = Vec::new();
    let encoded = Format::Json.encode_command(&Command { id: 1, request }, &mut frame);
    encoded.map_err(|_| NoConnect::Malformed)?;
    Ok(frame.into())
}

/// Answers `POST /connection/uni_http_stream`, whose body is the connect request: a line of JSON
/// for each push.
pub fn uni_http_stream<A: Application>(
    connect: &[u8],
    visit: Arc<Visit>,
    settings: Settings,
    application: A,
) -> Response {
    respond(Wrapping::Stream(Format::Json), connect, visit, settings, application)
}

/// Answers `/connection/uni_sse`, by GET or POST: an event for each push.
pub fn uni_event_stream<A: Application>(
    connect: &[u8],
    visit: Arc<Visit>,
    settings: Settings,
    application: A,
) -> Response {
    respond(Wrapping::Events, connect, visit, settings, application)
}

fn respond<A: Application>(
    wrapping: Wrapping,
    connect: &[u8],
    visit: Arc<Visit>,
    settings: Settings,
    application: A,
) -> Response {
    let connect = match command(connect) {
        Ok(connect) => connect,
        Err(why) => return why.into_response(),
    };
    // There are no further commands, and the connection goes on without them.
    let frames = stream::once(async { Ok(connect) }).chain(stream::pending());
    let commands =
        Commands { frames: Box::pin(frames), session: None, direction: Direction::ToClient };
    serve(wrapping, commands, visit, settings, application)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(connect: &str) -> Result<String, NoConnect> {
        command(connect.as_bytes()).map(|frame| String::from_utf8(frame.into()).expect("UTF-8"))
    }

    #[test]
    fn a_connect_request_becomes_one_command_and_nothing_else() {
        let wanted = r#"{"id":1,"connect":{"token":"t","data":{"a":1}}}"#;
        assert_eq!(text(r#"{"token":"t","data":{"a":1},"rpc":{}}"#).as_deref(), Ok(wanted));
        assert_eq!(text("null").as_deref(), Ok(r#"{"id":1,"connect":{}}"#));
        for wrong in ["", "{", "\"x\"", "7", r#"{"token":7}"#, r#"{"subs":{"a":null}}"#, "{} {}"] {
            assert_eq!(text(wrong), Err(NoConnect::Malformed), "{wrong}");
        }
    }

    #[test]
    fn the_largest_connect_request_fits_a_frame_and_a_larger_one_is_refused() {
        let sized = |len: usize| format!("{{\"token\":\"{}\"}}", "t".repeat(len - 12));
        let largest = text(&sized(CONNECT_BYTES_MAX)).expect("it is not too large");
        assert!(largest.len() <= FRAME_BYTES_MAX, "{}", largest.len());
        assert_eq!(text(&sized(CONNECT_BYTES_MAX + 1)), Err(NoConnect::TooLarge));
    }
}
