//! How a refusal is told: in an answer that is a success otherwise, or by the transport itself, as
//! an HTTP or gRPC status. The statuses are those of Centrifugo's documentation; codes that it does
//! not have go where they belong by their meaning.

use axum::http::{HeaderMap, StatusCode};
use folkmoot_protocol::ErrorCode;

use crate::settings::ErrorMode;

/// With this header or metadata, one request asks for the status of its transport.
const HEADER: &str = "x-centrifugo-error-mode";

/// How a request wants to hear of errors.
pub(super) fn of(headers: &HeaderMap, otherwise: ErrorMode) -> ErrorMode {
    let is_asked = headers.get(HEADER).is_some_and(|mode| mode == "transport");
    if is_asked { ErrorMode::Transport } else { otherwise }
}

/// The HTTP status of an error.
pub(super) fn http_status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::UnknownChannel | ErrorCode::MethodNotFound => StatusCode::NOT_FOUND,
        ErrorCode::BadRequest | ErrorCode::NotAvailable => StatusCode::BAD_REQUEST,
        ErrorCode::UnrecoverablePosition => StatusCode::RANGE_NOT_SATISFIABLE,
        ErrorCode::PermissionDenied => StatusCode::FORBIDDEN,
        ErrorCode::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::StoreUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The gRPC status of an error, by the number that gRPC gives it.
pub(super) fn grpc_status(code: ErrorCode) -> u8 {
    match code {
        ErrorCode::UnknownChannel | ErrorCode::MethodNotFound => 5,
        ErrorCode::BadRequest | ErrorCode::NotAvailable => 3,
        ErrorCode::UnrecoverablePosition => 11,
        ErrorCode::PermissionDenied => 7,
        ErrorCode::TooManyRequests => 8,
        ErrorCode::StoreUnavailable => 14,
        _ => 13,
    }
}
