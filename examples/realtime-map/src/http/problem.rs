//! Refusals as problem documents (RFC 9457): a status, a title that is always the same, a detail
//! that helps.

use althing::AskError;
use bytes::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper::{Response, StatusCode};
use serde::Serialize;

use super::body::Body;

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Problem {
    title: &'static str,
    status: u16,
    detail: String,
}

impl Problem {
    /// The client's mistake.
    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self { title: "Bad request", status: 400, detail: detail.into() }
    }

    /// Nothing of that name.
    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self { title: "Not found", status: 404, detail: detail.into() }
    }

    /// Only `GET` and `HEAD`.
    pub(crate) fn method_not_allowed() -> Self {
        let detail = "this server answers GET and HEAD".to_owned();
        Self { title: "Method not allowed", status: 405, detail }
    }

    /// The answer as it is sent.
    pub(crate) fn into_response(self) -> Response<Body> {
        let bytes = serde_json::to_vec(&self).expect("text and a number are writable");
        let mut response = Response::new(Body::Whole(Some(Bytes::from(bytes))));
        *response.status_mut() =
            StatusCode::from_u16(self.status).expect("the constructors use real ones");
        response.headers_mut().insert(
            CONTENT_TYPE,
            hyper::header::HeaderValue::from_static("application/problem+json"),
        );
        response
    }
}

impl From<AskError> for Problem {
    fn from(error: AskError) -> Self {
        Self { title: "Unavailable", status: 503, detail: error.to_string() }
    }
}
