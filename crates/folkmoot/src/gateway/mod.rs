//! The sockets: reading, decoding, the bounded write queue, ping and pong, close codes. Decides
//! nothing about chat.

mod connection;
mod liveness;
mod order;
mod origin;
mod outbox;
mod writer;

use std::sync::Arc;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{Extension, Query, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use folkmoot_protocol::limits::FRAME_BYTES_MAX;
use folkmoot_protocol::{ErrorCode, Format, PROTOBUF_SUBPROTOCOL};
use serde::Deserialize;

pub(crate) use outbox::Outbox;

use crate::accept::Guest;
use crate::http::Refused;
use crate::server::Server;

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

#[derive(Debug, Deserialize)]
pub(crate) struct SocketQuery {
    #[serde(default)]
    format: String,
    #[serde(default)]
    cf_protocol: String,
}

/// `GET /connection/websocket`.
pub(crate) async fn websocket(
    State(server): State<Arc<Server>>,
    Extension(Guest(visit)): Extension<Guest>,
    Query(query): Query<SocketQuery>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    if !origin::is_allowed(&headers, &server.config.allow_origin) {
        let text = "pages of this origin may not connect; see --allow-origin";
        return Refused::new(ErrorCode::PermissionDenied, text).into_response();
    }
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
    upgrade.on_upgrade(move |socket| async move {
        let connected = server.connected();
        connection::serve(socket, server, format, visit).await;
        drop(connected);
    })
}
