//! The server API over HTTP, as Centrifugo documents it: `POST /api/<method>` with a JSON body and
//! the key in `X-API-Key`. What a method refuses is an `error` in a reply with status 200, unless
//! the operator or the request wants a status that says so.

mod batch;
mod caller;
pub(crate) mod grpc;
mod in_turn;
pub(crate) mod keys;
mod method;
mod mode;
mod openapi;
mod params;
pub(crate) mod publish;
mod users;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::rpc::RpcError;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::server::Server;
use crate::settings::ErrorMode;
use caller::Caller;
use keys::Rights;
pub(crate) use method::{Info, Subscription, info};
pub(crate) use users::on_users;

/// What a method returns, as JSON.
pub(crate) type Outcome = Result<Box<RawValue>, RpcError>;

pub(crate) fn routes(server: &Arc<Server>) -> Router<Arc<Server>> {
    Router::new()
        .route("/api/{method}", post(call))
        .route("/api", post(call_named))
        .route_layer(middleware::from_fn_with_state(server.clone(), admit))
        .route("/api/openapi.json", get(openapi::document))
}

/// Nothing is read of who knows no key: a body may be long, and all of it is held in memory.
async fn admit(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    match is_known(&server, request.headers()) {
        true => next.run(request).await,
        false => StatusCode::UNAUTHORIZED.into_response(),
    }
}

async fn call(
    State(server): State<Arc<Server>>,
    Path(method): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mode = mode::of(&headers, server.error_mode);
    let Some(caller) = caller(server, &headers) else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    answer(&run(&caller, &method, &body).await, mode)
}

/// The older form: the method is in the body.
async fn call_named(
    State(server): State<Arc<Server>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mode = mode::of(&headers, server.error_mode);
    let Some(caller) = caller(server, &headers) else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    let reply = match params::read::<params::Named>(&body) {
        Ok(named) => run(&caller, &named.method, named.params()).await,
        Err(error) => error.into(),
    };
    answer(&reply, mode)
}

async fn run(caller: &Caller, method: &str, params: &[u8]) -> Reply {
    match method {
        "batch" => batch::run(caller, params).await.map_or_else(Reply::from, Reply::Whole),
        method => method::run(caller, method, params).await.into(),
    }
}

/// A reply as the API writes it.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    Result(Box<RawValue>),
    Error(Refused),
    /// Of a batch, which has no `result` around its replies.
    #[serde(untagged)]
    Whole(Box<RawValue>),
}

#[derive(Serialize)]
struct Refused {
    #[serde(serialize_with = "number")]
    code: ErrorCode,
    message: String,
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn number<S: serde::Serializer>(code: &ErrorCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u32(code.code())
}

impl From<Outcome> for Reply {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Ok(result) => Self::Result(result),
            Err(error) => error.into(),
        }
    }
}

impl From<RpcError> for Reply {
    fn from(error: RpcError) -> Self {
        Self::Error(refused(error))
    }
}

fn refused(error: RpcError) -> Refused {
    Refused { code: error.code, message: error.message }
}

fn answer(reply: &Reply, mode: ErrorMode) -> Response {
    let (status, reply) = match (reply, mode) {
        (Reply::Error(refused), ErrorMode::Transport) => {
            (mode::http_status(refused.code), serde_json::to_vec(refused))
        }
        (reply, _) => (StatusCode::OK, serde_json::to_vec(reply)),
    };
    let reply = reply.expect("replies are JSON");
    (status, [(CONTENT_TYPE, "application/json")], reply).into_response()
}

/// JSON of a result.
fn json(result: &impl Serialize) -> Outcome {
    serde_json::value::to_raw_value(result).map_err(|error| {
        // Bytes that were published in base64 and are no JSON.
        RpcError::new(ErrorCode::BadRequest, format!("the result is no JSON: {error}"))
    })
}

/// Who knows a key.
fn caller(server: Arc<Server>, headers: &HeaderMap) -> Option<Caller> {
    let rights = rights(&server, headers)?;
    Some(Caller { server, rights })
}

/// Whether a request has a key.
pub(crate) fn is_known(server: &Server, headers: &HeaderMap) -> bool {
    rights(server, headers).is_some()
}

fn rights(server: &Server, headers: &HeaderMap) -> Option<Arc<Rights>> {
    let by_header = headers.get("x-api-key").map(|key| key.as_bytes());
    let by_authorization = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let by_authorization = by_authorization.and_then(|value| value.split_once(' '));
    let by_authorization =
        by_authorization.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("apikey"));
    let key = by_header.or(by_authorization.map(|(_, key)| key.trim_start().as_bytes()))?;
    server.api_keys.rights(key)
}
