//! Headers that every answer carries, so that a browser treats our pages as strictly as it can.

use axum::http::header::{
    CONTENT_SECURITY_POLICY, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::response::Response;

/// Scripts and styles come from this server only and never stand in the page; nobody frames us.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' \
     data: blob:; font-src 'self'; connect-src 'self'; manifest-src 'self'; \
     worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

pub(crate) async fn add_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        // A link in a message must not tell the other site where it stood.
        (REFERRER_POLICY, "no-referrer"),
    ] {
        // A file that somebody uploaded has a stricter policy already.
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}
