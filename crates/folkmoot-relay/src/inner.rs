//! Who may see the inside of the relay: its metrics tell how much is going on, so they are for this
//! machine itself and for whoever has the operator's token.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use folkmoot_gateway::is_local;

use crate::api::keys::is_same;
use crate::metrics;
use crate::server::Server;

/// The page of metrics.
pub(crate) async fn metrics(
    State(server): State<Arc<Server>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
) -> Response {
    if !is_local(peer.ip(), &headers) && !has_token(&server.metrics_token, &headers) {
        let text = "this is for the relay's own machine, and with prometheus.token";
        return (StatusCode::UNAUTHORIZED, text).into_response();
    }
    let page = metrics::page(&server).await;
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], page).into_response()
}

fn has_token(token: &str, headers: &HeaderMap) -> bool {
    let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = given.and_then(|value| value.strip_prefix("Bearer "));
    !token.is_empty() && given.is_some_and(|given| is_same(given.as_bytes(), token.as_bytes()))
}

/// Whether clients may be sent here.
pub(crate) async fn health(State(server): State<Arc<Server>>) -> Response {
    let is_serving = server.hub.nodes().is_none_or(|nodes| nodes.is_serving());
    let status = match *server.stopping().borrow() || !is_serving {
        true => StatusCode::SERVICE_UNAVAILABLE,
        false => StatusCode::OK,
    };
    (status, [(CONTENT_TYPE, "application/json")], "{}").into_response()
}
