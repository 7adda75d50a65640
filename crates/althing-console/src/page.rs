//! The page and its JSON over HTTP. The page's script and style are files of their own, so that the
//! strictest policy holds.

use std::sync::Arc;

use althing::Node;
use axum::extract::{Query, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};

use crate::observer::Observer;

/// Where the page is; its JSON is at `/console/api`, `/console/api/topics` and `/console/api/tree`.
pub const PATH: &str = "/console";

pub(crate) const POLICY: &str = "default-src 'none'; img-src data:; script-src 'self'; style-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Routes of the console of `node`, to be merged into an application's. Whoever reaches them sees
/// the keys of actors.
pub fn router<S>(node: &Node) -> Router<S> {
    Router::new()
        .route(PATH, get(document))
        .route("/console/api", get(api))
        .route("/console/api/topics", get(topics))
        .route("/console/api/tree", get(tree))
        .route("/console/console.js", get(script(include_str!("../page/console.js"))))
        .route("/console/tables.js", get(script(include_str!("../page/tables.js"))))
        .route("/console/search.js", get(script(include_str!("../page/search.js"))))
        .route("/console/console.css", get(style))
        .with_state(Arc::new(Observer::new(node)))
}

async fn document() -> impl IntoResponse {
    let headers = [(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, POLICY)];
    (headers, include_str!("../page/console.html"))
}

/// A response that is always the same needs no handler.
pub(crate) fn script(text: &'static str) -> impl IntoResponse + Clone {
    ([(CONTENT_TYPE, "text/javascript; charset=utf-8")], text)
}

pub(crate) async fn style() -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/css; charset=utf-8")], include_str!("../page/console.css"))
}

async fn api(State(observer): State<Arc<Observer>>) -> impl IntoResponse {
    answer(observer, Observer::view).await
}

/// What somebody looks for.
#[derive(Deserialize)]
struct Search {
    /// What a name has to hold.
    #[serde(default)]
    text: String,
    /// The last name of the page before.
    #[serde(default)]
    after: String,
}

async fn topics(
    State(observer): State<Arc<Observer>>,
    Query(search): Query<Search>,
) -> impl IntoResponse {
    answer(observer, move |observer| observer.topics(&search.text, &search.after)).await
}

async fn tree(
    State(observer): State<Arc<Observer>>,
    Query(search): Query<Search>,
) -> impl IntoResponse {
    answer(observer, move |observer| observer.tree(&search.text)).await
}

/// Looks away from the runtime's threads: a look visits every actor.
async fn answer<T: Serialize + Send + 'static>(
    observer: Arc<Observer>,
    look: impl FnOnce(&Observer) -> T + Send + 'static,
) -> impl IntoResponse {
    let node = observer.node().clone();
    let view = node.blocking(move || look(&observer)).await;
    ([(CACHE_CONTROL, "no-store")], Json(view))
}
