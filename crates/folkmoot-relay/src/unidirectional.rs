//! Where clients that only listen connect, as with Centrifugo. Each transport is there if the
//! operator wants it; all are the same session, with what a client cannot ask left out.

use std::sync::Arc;

use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{DefaultBodyLimit, Extension, Query, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use bytes::Bytes;
use folkmoot_gateway::{Guest, UniQuery, uni_event_stream, uni_http_stream, uni_upgrade};
use folkmoot_protocol::limits::FRAME_BYTES_MAX;

use crate::server::{Server, no_content};
use crate::session::Sockets;

/// Where a socket of one direction is opened.
pub(crate) const SOCKET: &str = "/connection/uni_websocket";

/// Those over HTTP, which pages of other sites ask for beforehand.
pub(crate) fn over_http(server: &Server) -> Router<Arc<Server>> {
    let mut routes = Router::new();
    if server.listening.uni_sse.enabled {
        let events = get(event_stream).post(posted_event_stream).options(no_content);
        routes = routes.route("/connection/uni_sse", events);
    }
    if server.listening.uni_http_stream.enabled {
        let stream = post(http_stream).options(no_content);
        routes = routes.route("/connection/uni_http_stream", stream);
    }
    routes.layer(DefaultBodyLimit::max(FRAME_BYTES_MAX))
}

/// The one by WebSocket.
pub(crate) fn socket(server: &Server) -> Router<Arc<Server>> {
    match server.listening.uni_websocket.enabled {
        true => Router::new().route(SOCKET, any(websocket)),
        false => Router::new(),
    }
}

async fn event_stream(
    server: State<Arc<Server>>,
    guest: Extension<Guest>,
    Query(query): Query<UniQuery>,
    headers: HeaderMap,
) -> Response {
    // Who asks for nothing is anonymous.
    let connect = query.into_connect().unwrap_or(Bytes::from_static(b"null"));
    posted_event_stream(server, guest, headers, connect).await
}

async fn posted_event_stream(
    State(server): State<Arc<Server>>,
    Extension(Guest(visit)): Extension<Guest>,
    headers: HeaderMap,
    connect: Bytes,
) -> Response {
    let settings = server.sockets();
    let sockets = Sockets::to_client(server, "uni_sse", &headers);
    uni_event_stream(&connect, visit, settings, sockets)
}

async fn http_stream(
    State(server): State<Arc<Server>>,
    Extension(Guest(visit)): Extension<Guest>,
    headers: HeaderMap,
    connect: Bytes,
) -> Response {
    let settings = server.sockets();
    let sockets = Sockets::to_client(server, "uni_http_stream", &headers);
    uni_http_stream(&connect, visit, settings, sockets)
}

async fn websocket(
    State(server): State<Arc<Server>>,
    Extension(Guest(visit)): Extension<Guest>,
    Query(query): Query<UniQuery>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    if let Err(refused) = server.allows(&headers) {
        return refused.into_response();
    }
    let settings = server.sockets();
    let sockets = Sockets::to_client(server, "uni_websocket", &headers);
    uni_upgrade(upgrade, query, visit, settings, sockets)
}
