//! What pages of other sites may ask of the HTTP transports: those whose origin the operator named.

use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE, ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::origin::is_allowed;

/// Lets pages of this host and of `allowed` origins in, and refuses all others.
pub async fn cors(allowed: &[String], request: Request, next: Next) -> Response {
    if !is_allowed(request.headers(), allowed) {
        return (StatusCode::FORBIDDEN, "pages of this origin may not connect").into_response();
    }
    let origin = request.headers().get(ORIGIN).cloned();
    let mut response = match *request.method() {
        Method::OPTIONS => StatusCode::NO_CONTENT.into_response(),
        _ => next.run(request).await,
    };
    if let Some(origin) = origin {
        allow(response.headers_mut(), origin);
    }
    response
}

fn allow(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    for (name, value) in [
        (ACCESS_CONTROL_ALLOW_CREDENTIALS, "true"),
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, OPTIONS"),
        (ACCESS_CONTROL_ALLOW_HEADERS, "content-type"),
        (ACCESS_CONTROL_MAX_AGE, "300"),
        (VARY, "origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
