//! Who may see the inside of the server: its metrics and the console of its actors. They tell names
//! of rooms and users and how much is going on, so they are for this machine itself, for whoever
//! has the operator's token, and for administrators.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequestParts, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::Response;
use folkmoot_protocol::ErrorCode;
use sha2::{Digest, Sha256};

use super::Refused;
use super::auth::Administrator;
use crate::server::Server;
use folkmoot_gateway::is_local;

/// Lets only those pass who may see the inside.
pub(crate) async fn guard(
    State(server): State<Arc<Server>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Result<Response, Refused> {
    let (mut parts, body) = request.into_parts();
    let given = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = given.and_then(|value| value.strip_prefix("Bearer "));
    let has_token = match (&server.config.metrics_token, given) {
        // Hashes are compared, so how long it takes tells nothing about the token.
        (Some(token), Some(given)) => Sha256::digest(token) == Sha256::digest(given),
        _ => false,
    };
    if !is_local(peer.ip(), &parts.headers)
        && !has_token
        && Administrator::from_request_parts(&mut parts, &server).await.is_err()
    {
        let text =
            "this is for the server's own machine, for administrators, and with --metrics-token";
        return Err(Refused::new(ErrorCode::Unauthorized, text));
    }
    Ok(next.run(Request::from_parts(parts, body)).await)
}
