//! The page and its parts, compiled in.

use bytes::Bytes;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue,
};
use hyper::{HeaderMap, Response};

use super::body::Body;

/// Only what this server serves, no inline script or style, no frame around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const FILES: &[(&str, &str, &str)] = &[
    ("/", "text/html; charset=utf-8", include_str!("../../page/index.html")),
    ("/style.css", "text/css; charset=utf-8", include_str!("../../page/style.css")),
    ("/icon.svg", "image/svg+xml", include_str!("../../page/icon.svg")),
    ("/main.js", SCRIPT, include_str!("../../page/main.js")),
    ("/camera.js", SCRIPT, include_str!("../../page/camera.js")),
    ("/feed.js", SCRIPT, include_str!("../../page/feed.js")),
    ("/fleet.js", SCRIPT, include_str!("../../page/fleet.js")),
    ("/painter.js", SCRIPT, include_str!("../../page/painter.js")),
    ("/panels.js", SCRIPT, include_str!("../../page/panels.js")),
];
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The file of that path.
pub(crate) fn find(path: &str) -> Option<Response<Body>> {
    let (_, kind, text) = FILES.iter().find(|(name, _, _)| *name == path)?;
    let mut response = Response::new(Body::Whole(Some(Bytes::from_static(text.as_bytes()))));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    secure(headers);
    Some(response)
}

/// Headers of everything a browser might show.
pub(crate) fn secure(headers: &mut HeaderMap) {
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    let fixed = [("x-content-type-options", "nosniff"), ("referrer-policy", "no-referrer")];
    for (name, value) in fixed {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}
