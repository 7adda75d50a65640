//! Errors as problem documents (RFC 9457): the same codes and texts as over the socket, with an
//! HTTP status.

use axum::Json;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::chat::Problem;
use folkmoot_protocol::rpc::RpcError;

const PROBLEM: &str = "application/problem+json";
/// Of what the router says by itself; its own words are shorter.
const REASON_BYTES_MAX: usize = 4 * 1024;

/// A request that was refused, on its way out.
#[derive(Debug)]
pub(crate) struct Refused(RpcError);

impl Refused {
    pub(crate) fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self(RpcError::new(code, detail))
    }
}

impl From<RpcError> for Refused {
    fn from(error: RpcError) -> Self {
        Self(error)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Self(error) = self;
        let status = status(error.code);
        let problem = Problem {
            // No page describes a kind, so the status is the kind.
            kind: "about:blank".to_owned(),
            title: error.code.text().to_owned(),
            status: status.as_u16(),
            detail: error.message,
            field: error.field,
            limit: error.limit,
            retry_after_ms: error.retry_after_ms,
        };
        let retry_after =
            error.retry_after_ms.map(|ms| [(RETRY_AFTER, ms.div_ceil(1_000).to_string())]);
        // In place of what `Json` says, not beside it.
        (status, [(CONTENT_TYPE, PROBLEM)], retry_after, Json(problem)).into_response()
    }
}

/// Makes a problem document of what the router refuses by itself: a query or a path that cannot be
/// read, a method that a route does not take.
pub(crate) async fn for_router(request: Request, next: Next) -> Response {
    let is_api = request.uri().path().starts_with("/api/");
    let method = request.method().clone();
    let response = next.run(request).await;
    let is_told = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == PROBLEM);
    if !is_api || is_told || !response.status().is_client_error() {
        return response;
    }
    let (parts, body) = response.into_parts();
    let text = to_bytes(body, REASON_BYTES_MAX).await.unwrap_or_default();
    let title = parts.status.canonical_reason().unwrap_or_default().to_owned();
    // The methods that it takes are added further out, in `Allow`.
    let detail = match text.is_empty() {
        true => format!("this route does not take {method}"),
        false => String::from_utf8_lossy(&text).into_owned(),
    };
    let problem = Problem {
        kind: "about:blank".to_owned(),
        title,
        status: parts.status.as_u16(),
        detail,
        field: None,
        limit: None,
        retry_after_ms: None,
    };
    let mut told = (parts.status, Json(problem)).into_response();
    for (name, value) in parts.headers.iter().filter(|(name, _)| **name != CONTENT_LENGTH) {
        told.headers_mut().insert(name, value.clone());
    }
    told.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM));
    told
}

fn status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::Unauthorized | ErrorCode::TokenExpired | ErrorCode::Expired => {
            StatusCode::UNAUTHORIZED
        }
        ErrorCode::PermissionDenied => StatusCode::FORBIDDEN,
        ErrorCode::NotFound | ErrorCode::UnknownChannel | ErrorCode::MethodNotFound => {
            StatusCode::NOT_FOUND
        }
        ErrorCode::KeyReused | ErrorCode::AlreadySubscribed => StatusCode::CONFLICT,
        ErrorCode::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::RateLimited | ErrorCode::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::StoreUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::NotAvailable => StatusCode::NOT_IMPLEMENTED,
        ErrorCode::UnrecoverablePosition => StatusCode::GONE,
        ErrorCode::InvalidField | ErrorCode::BadRequest | ErrorCode::LimitExceeded => {
            StatusCode::BAD_REQUEST
        }
        ErrorCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
