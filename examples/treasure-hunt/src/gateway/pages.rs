//! The page, embedded; a strict policy lets it load nothing from elsewhere and run nothing inline.

use axum::Router;
use axum::http::{HeaderName, header};
use axum::response::IntoResponse;
use axum::routing::get;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Path, type and content of each file.
const FILES: [(&str, &str, &str); 8] = [
    ("/", "text/html; charset=utf-8", include_str!("../page/index.html")),
    ("/style.css", "text/css; charset=utf-8", include_str!("../page/style.css")),
    ("/app.js", "text/javascript; charset=utf-8", include_str!("../page/app.js")),
    ("/wire.js", "text/javascript; charset=utf-8", include_str!("../page/wire.js")),
    ("/world.js", "text/javascript; charset=utf-8", include_str!("../page/world.js")),
    ("/canvas.js", "text/javascript; charset=utf-8", include_str!("../page/canvas.js")),
    ("/panels.js", "text/javascript; charset=utf-8", include_str!("../page/panels.js")),
    ("/icon.svg", "image/svg+xml", include_str!("../page/icon.svg")),
];

/// The page and what it loads.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES.into_iter().fold(Router::new(), |router, (path, kind, content)| {
        router.route(path, get(move || async move { file(kind, content) }))
    })
}

fn file(kind: &'static str, content: &'static str) -> impl IntoResponse {
    let headers: [(HeaderName, &str); 5] = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, content)
}
