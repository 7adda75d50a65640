//! The server API over HTTP, as Centrifugo documents it: `POST /api/<method>` with a JSON body and
//! the key in `X-API-Key`. What a method refuses is an `error` in a reply with status 200.

mod batch;
mod method;
mod params;
pub(crate) mod publish;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::rpc::RpcError;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::server::Server;

/// What a method returns, as JSON.
pub(crate) type Outcome = Result<Box<RawValue>, RpcError>;

pub(crate) fn routes() -> Router<Arc<Server>> {
    Router::new().route("/api/{method}", post(call)).route("/api", post(call_named))
}

async fn call(
    State(server): State<Arc<Server>>,
    Path(method): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if !is_allowed(&server, &headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    answer(&run(&server, &method, &body).await)
}

/// The older form: the method is in the body.
async fn call_named(
    State(server): State<Arc<Server>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if !is_allowed(&server, &headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let reply = match params::read::<params::Named>(&body) {
        Ok(named) => run(&server, &named.method, named.params()).await,
        Err(error) => error.into(),
    };
    answer(&reply)
}

async fn run(server: &Arc<Server>, method: &str, params: &[u8]) -> Reply {
    match method {
        "batch" => batch::run(server, params).await.map_or_else(Reply::from, Reply::Whole),
        method => method::run(server, method, params).await.into(),
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
    code: u32,
    message: String,
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
    Refused { code: error.code.code(), message: error.message }
}

fn answer(reply: &Reply) -> Response {
    let reply = serde_json::to_vec(reply).expect("replies are JSON");
    ([(CONTENT_TYPE, "application/json")], reply).into_response()
}

/// JSON of a result.
fn json(result: &impl Serialize) -> Outcome {
    serde_json::value::to_raw_value(result).map_err(|error| {
        // Bytes that were published in base64 and are no JSON.
        RpcError::new(ErrorCode::BadRequest, format!("the result is no JSON: {error}"))
    })
}

/// Whether the caller knows the key.
fn is_allowed(server: &Server, headers: &HeaderMap) -> bool {
    let by_header = headers.get("x-api-key").map(|key| key.as_bytes());
    let by_authorization = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let by_authorization = by_authorization.and_then(|value| value.strip_prefix("apikey "));
    let key = by_header.or(by_authorization.map(str::as_bytes));
    let wanted = server.api_key.as_bytes();
    !wanted.is_empty() && key.is_some_and(|key| is_same(key, wanted))
}

/// Compares in a time that says nothing of where they differ.
pub(crate) fn is_same(key: &[u8], wanted: &[u8]) -> bool {
    let differing = key.iter().zip(wanted).fold(0, |differing, (one, two)| differing | (one ^ two));
    key.len() == wanted.len() && differing == 0
}
