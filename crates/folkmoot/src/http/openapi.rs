//! The OpenAPI document of the HTTP interface, kept by hand beside the routes. Tests hold it to
//! what the routes take and answer.

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

const DOCUMENT: &str = include_str!("openapi.json");

/// `GET /api/v1/openapi.json`.
pub(crate) async fn document() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], DOCUMENT)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Every reference leads to a schema, and every schema is used.
    #[test]
    fn references_and_schemas_match() {
        let document: Value = serde_json::from_str(DOCUMENT).unwrap();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let prefix = "\"#/components/schemas/";
        let mut used: Vec<&str> = DOCUMENT
            .match_indices(prefix)
            .map(|(at, _)| DOCUMENT[at + prefix.len()..].split('"').next().unwrap())
            .collect();
        used.sort_unstable();
        used.dedup();
        let mut known: Vec<&str> = schemas.keys().map(String::as_str).collect();
        known.sort_unstable();
        assert_eq!(used, known);
    }
}
