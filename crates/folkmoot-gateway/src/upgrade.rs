//! From an HTTP request to a socket of the client protocol: its format, its limits, its settings.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::WebSocketUpgrade;
use axum::response::Response;
use folkmoot_protocol::limits::FRAME_BYTES_MAX;
use folkmoot_protocol::{Format, PROTOBUF_SUBPROTOCOL};
use serde::Deserialize;

use crate::accept::Visit;
use crate::connection::Application;
use crate::websocket;

/// The SDKs name it when they speak JSON.
const JSON_SUBPROTOCOL: &str = "centrifuge-json";
/// Values of `?format=` and `?cf_protocol=` that ask for protobuf; the first is Centrifugo's.
const PROTOBUF_FORMATS: [&str; 2] = ["protobuf", "cf_protobuf"];
/// What the WebSocket layer takes before it closes with its own code 1009. Above the protocol's
/// limit, so that a frame that is only somewhat too large is answered with the protocol's code.
const MESSAGE_BYTES_MAX: usize = 4 * FRAME_BYTES_MAX;
/// Read and write buffers of one socket. The library's 128 KiB each would make an idle connection
/// cost a quarter of a megabyte.
const SOCKET_BUFFER_BYTES: usize = 4 * 1024;

/// How sockets are kept.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Between two pings of the server.
    pub ping: Duration,
    /// For the answer to a ping.
    pub pong_timeout: Duration,
    /// For the connect command.
    pub connect_timeout: Duration,
    /// Encoded events that may wait for one connection, in bytes.
    pub outgoing_queue_bytes_max: usize,
}

/// How a client may choose its format in the URL.
#[derive(Debug, Default, Deserialize)]
pub struct SocketQuery {
    #[serde(default)]
    format: String,
    #[serde(default)]
    cf_protocol: String,
}

/// Answers the request for a socket, and serves it until it ends.
pub fn upgrade<A: Application>(
    upgrade: WebSocketUpgrade,
    query: &SocketQuery,
    visit: Arc<Visit>,
    settings: Settings,
    application: A,
) -> Response {
    let upgrade = upgrade
        .protocols([PROTOBUF_SUBPROTOCOL, JSON_SUBPROTOCOL])
        .max_message_size(MESSAGE_BYTES_MAX)
        .max_frame_size(MESSAGE_BYTES_MAX)
        .read_buffer_size(SOCKET_BUFFER_BYTES)
        .write_buffer_size(SOCKET_BUFFER_BYTES);
    let chose_protobuf =
        upgrade.selected_protocol().is_some_and(|protocol| protocol == PROTOBUF_SUBPROTOCOL);
    let asks_for_protobuf = [&query.format, &query.cf_protocol]
        .into_iter()
        .any(|value| PROTOBUF_FORMATS.contains(&value.as_str()));
    let format = match chose_protobuf || asks_for_protobuf {
        true => Format::Protobuf,
        false => Format::Json,
    };
    upgrade.on_upgrade(move |socket| websocket::serve(socket, application, format, visit, settings))
}
