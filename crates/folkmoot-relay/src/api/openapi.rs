//! The OpenAPI document of the server API, kept by hand beside its methods. A test holds it to what
//! they take and answer.

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

const DOCUMENT: &str = include_str!("openapi.json");

/// `GET /api/openapi.json`.
pub(super) async fn document() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], DOCUMENT)
}
