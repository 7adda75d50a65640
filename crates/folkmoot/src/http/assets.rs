//! The web client, embedded in the binary. Paths of the client's own views get its page; without
//! a built client there is a page that says how to build it. Files are packed when the client is
//! built (`web/compress.ts`): a file and its `.br` and `.gz` are one answer in three encodings, and
//! nothing is compressed while somebody waits.

use std::borrow::Cow;

use axum::http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{Html, IntoResponse, Response};
use folkmoot_protocol::ErrorCode;
use rust_embed::RustEmbed;

use super::Refused;

#[derive(RustEmbed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Client;

const PAGE: &str = "index.html";
const NOT_BUILT: &str = "<!doctype html><title>Folkmoot</title><h1>Folkmoot runs</h1>\
     <p>This binary was built without the web client. Run <code>make run</code>, or \
     <code>make web</code> and build again.</p>";

/// How a file may be packed, the smallest first: the name in `Accept-Encoding`, the file's ending.
const ENCODINGS: [(&str, &str); 2] = [("br", ".br"), ("gzip", ".gz")];

pub(crate) async fn serve(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let path = uri.path().trim_start_matches('/');
    if path.starts_with("api/") || path.starts_with("connection/") {
        return Refused::new(ErrorCode::NotFound, "no such route").into_response();
    }
    if method != Method::GET && method != Method::HEAD {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let path = if path.is_empty() { PAGE } else { path };
    if let Some(found) = answer(path, &headers) {
        return found;
    }
    // A missing file is missing; anything else is a view of the client.
    if path.rsplit('/').next().is_some_and(|name| name.contains('.')) && path != PAGE {
        return StatusCode::NOT_FOUND.into_response();
    }
    answer(PAGE, &headers).unwrap_or_else(|| Html(NOT_BUILT).into_response())
}

/// A file of the client as it was built.
pub(super) fn file(path: &str) -> Option<Cow<'static, [u8]>> {
    Client::get(path).map(|file| file.data)
}

/// The file, packed in the best way that the client reads.
fn answer(path: &str, headers: &HeaderMap) -> Option<Response> {
    let plain = Client::get(path)?;
    let packed = ENCODINGS
        .into_iter()
        .filter(|(encoding, _)| accepts(headers, encoding))
        .find_map(|(encoding, ending)| Some((encoding, Client::get(&format!("{path}{ending}"))?)));
    // Built files carry a hash in their name, so they never change; the page names them.
    let cache = match path.starts_with("assets/") {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    // A cache in between must not hand a packed file to a client that cannot read it.
    let named = [(CONTENT_TYPE, media_type(path)), (CACHE_CONTROL, cache)];
    let vary = [(VARY, "accept-encoding")];
    Some(match packed {
        Some((encoding, file)) => {
            (named, vary, [(CONTENT_ENCODING, encoding)], file.data).into_response()
        }
        None => (named, vary, plain.data).into_response(),
    })
}

/// Whether `Accept-Encoding` names the encoding (RFC 9110, 12.5.3) and does not refuse it by `q=0`.
fn accepts(headers: &HeaderMap, encoding: &str) -> bool {
    let lines = headers.get_all(ACCEPT_ENCODING).iter().map(HeaderValue::to_str);
    lines.flatten().flat_map(|line| line.split(',')).any(|item| {
        let mut parts = item.split(';').map(str::trim);
        let is_named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(encoding));
        is_named && !parts.any(is_refusal)
    })
}

/// `q=0`, `q=0.000` and what lies between.
fn is_refusal(parameter: &str) -> bool {
    let weight = parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="));
    weight.and_then(|weight| weight.trim().parse::<f32>().ok()).is_some_and(|weight| weight <= 0.0)
}

/// The few types that a built client consists of.
fn media_type(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn get(path: &'static str) -> StatusCode {
        serve(Method::GET, Uri::from_static(path), HeaderMap::new()).await.status()
    }

    #[tokio::test]
    async fn views_of_the_client_get_its_page_and_missing_files_do_not() {
        assert_eq!(get("/").await, StatusCode::OK);
        assert_eq!(get("/i/some-invite").await, StatusCode::OK);
        assert_eq!(get("/assets/missing.js").await, StatusCode::NOT_FOUND);
        assert_eq!(get("/api/v1/nothing").await, StatusCode::NOT_FOUND);
    }

    #[tokio::test]
    async fn nothing_here_can_be_posted_to() {
        let posted = serve(Method::POST, Uri::from_static("/"), HeaderMap::new()).await;
        assert_eq!(posted.status(), StatusCode::METHOD_NOT_ALLOWED);
    }

    fn accepting(encodings: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(encodings))])
    }

    #[test]
    fn an_encoding_is_accepted_where_it_is_named_and_not_refused() {
        assert!(accepts(&accepting("gzip, deflate, br, zstd"), "br"));
        assert!(accepts(&accepting("GZIP;q=0.5"), "gzip"));
        assert!(!accepts(&accepting("br;q=0, gzip"), "br"));
        assert!(!accepts(&accepting("br;q=0.000"), "br"));
        assert!(!accepts(&accepting("brotli"), "br"));
        assert!(!accepts(&HeaderMap::new(), "gzip"));
    }
}
