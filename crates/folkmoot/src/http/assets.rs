//! The web client, embedded in the binary. Paths of the client's own views get its page; without
//! a built client there is a page that says how to build it.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{Method, StatusCode, Uri};
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

pub(crate) async fn serve(method: Method, uri: Uri) -> Response {
    let path = uri.path().trim_start_matches('/');
    if path.starts_with("api/") || path.starts_with("connection/") {
        return Refused::new(ErrorCode::NotFound, "no such route").into_response();
    }
    if method != Method::GET && method != Method::HEAD {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let path = if path.is_empty() { PAGE } else { path };
    if let Some(file) = Client::get(path) {
        return answer(path, file.data);
    }
    // A missing file is missing; anything else is a view of the client.
    if path.rsplit('/').next().is_some_and(|name| name.contains('.')) && path != PAGE {
        return StatusCode::NOT_FOUND.into_response();
    }
    match Client::get(PAGE) {
        Some(page) => answer(PAGE, page.data),
        None => Html(NOT_BUILT).into_response(),
    }
}

fn answer(path: &str, data: std::borrow::Cow<'static, [u8]>) -> Response {
    // Built files carry a hash in their name, so they never change; the page names them.
    let cache = match path.starts_with("assets/") {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    ([(CONTENT_TYPE, media_type(path)), (CACHE_CONTROL, cache)], data).into_response()
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
        serve(Method::GET, Uri::from_static(path)).await.status()
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
        let posted = serve(Method::POST, Uri::from_static("/")).await;
        assert_eq!(posted.status(), StatusCode::METHOD_NOT_ALLOWED);
    }
}
