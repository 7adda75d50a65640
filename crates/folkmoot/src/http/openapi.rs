//! The OpenAPI document of the HTTP interface.

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

const DOCUMENT: &str = include_str!("openapi.json");

/// `GET /api/v1/openapi.json`.
pub(crate) async fn document() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], DOCUMENT)
}
