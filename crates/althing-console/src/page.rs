//! The page and its JSON over HTTP. The page's script and style are files of their own, so that the strictest policy holds.

use std::sync::Arc;

use althing::Node;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};

use crate::observer::Observer;
use crate::view::View;

/// Where the page is; its JSON is at `/console/api`.
pub const PATH: &str = "/console";

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Routes of the console of `node`, to be merged into an application's. Whoever reaches them sees the keys of actors.
pub fn router<S>(node: &Node) -> Router<S> {
    Router::new()
        .route(PATH, get(document))
        .route("/console/api", get(api))
        .route("/console/console.js", get(script))
        .route("/console/console.css", get(style))
        .with_state(Arc::new(Observer::new(node)))
}

async fn document() -> impl IntoResponse {
    let headers = [(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, POLICY)];
    (headers, include_str!("../page/console.html"))
}

async fn script() -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("../page/console.js"))
}

async fn style() -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/css; charset=utf-8")], include_str!("../page/console.css"))
}

async fn api(State(observer): State<Arc<Observer>>) -> impl IntoResponse {
    let node = observer.node().clone();
    let view: View = node.blocking(move || observer.view()).await;
    ([(CACHE_CONTROL, "no-store")], Json(view))
}
