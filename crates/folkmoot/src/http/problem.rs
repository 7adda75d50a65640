//! Errors as problem documents (RFC 9457): the same codes and texts as over the socket, with an
//! HTTP status.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::response::{AppendHeaders, IntoResponse, Response};
use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::chat::Problem;
use folkmoot_protocol::rpc::RpcError;

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
        let headers = [(CONTENT_TYPE, "application/problem+json")];
        (status, AppendHeaders(headers), retry_after.map(AppendHeaders), Json(problem))
            .into_response()
    }
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
