//! HTTP: the REST routes, problem documents, health, metrics, the OpenAPI document and the web
//! client. Holds no state; chat goes through the same functions as over the socket.

mod accounts;
mod admin;
mod assets;
mod attachments;
mod auth;
mod body;
mod branding;
mod client_address;
mod deletion;
mod inner;
mod metrics_page;
mod openapi;
mod pictures;
mod problem;
mod range;
mod retention;
mod rooms;
mod search;
mod security;
mod setup;
mod uploads;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, patch, post, put};
use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::limits::{FRAME_BYTES_MAX, PICTURE_BYTES_MAX, UPLOAD_PIECE_BYTES_MAX};
use tokio::task::JoinError;

pub(crate) use problem::Refused;

use crate::gateway;
use crate::server::Server;

/// Where clients open their sockets.
const SOCKET: &str = "/connection/websocket";

/// All routes of a server.
pub(crate) fn router(server: Arc<Server>) -> Router {
    let console =
        if server.config.console { althing_console::router(server.node()) } else { Router::new() };
    let guard = middleware::from_fn_with_state(server.clone(), inner::guard);
    let inner = Router::new().route("/metrics", get(metrics_page)).merge(console);
    Router::new()
        .merge(inner.route_layer(guard))
        .route("/api/v1/accounts", post(accounts::create))
        .route("/api/v1/sessions", post(accounts::sign_in))
        .route("/api/v1/sessions/current", delete(accounts::sign_out))
        .route("/api/v1/setup", get(setup::state).post(setup::create))
        .route("/api/v1/password-resets", post(setup::reset_password))
        .merge(administration())
        .route("/api/v1/me", get(accounts::me))
        .route("/api/v1/me/password", post(accounts::change_password))
        .route("/api/v1/me/deletion", post(deletion::delete_me))
        .route("/api/v1/me/picture", {
            let limit = DefaultBodyLimit::max(PICTURE_BYTES_MAX);
            put(pictures::set).delete(pictures::remove).layer(limit)
        })
        .route("/api/v1/pictures/{id}", get(pictures::picture))
        .route("/api/v1/logo/{id}", get(branding::logo))
        .route("/manifest.webmanifest", get(branding::manifest))
        .route("/api/v1/rooms", get(rooms::list).post(rooms::create))
        .route("/api/v1/rooms/{id}", get(rooms::get).delete(deletion::delete_room))
        .route("/api/v1/rooms/{id}/messages", get(rooms::history).post(rooms::send))
        .route("/api/v1/rooms/{id}/attachments", post(attachments::upload))
        .route("/api/v1/rooms/{id}/uploads", post(uploads::begin))
        .route("/api/v1/uploads/{id}", {
            let limit = DefaultBodyLimit::max(UPLOAD_PIECE_BYTES_MAX);
            get(uploads::progress).patch(uploads::append).delete(uploads::cancel).layer(limit)
        })
        .route("/api/v1/attachments/{id}", get(attachments::file))
        .route("/api/v1/attachments/{id}/thumbnail", get(attachments::thumbnail))
        .route("/api/v1/limits", get(attachments::limits))
        .route("/api/v1/invites/{code}", get(rooms::invite))
        .route("/api/v1/search", get(search::find))
        .route("/api/v1/openapi.json", get(openapi::document))
        .layer(middleware::from_fn(to_its_end))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route(SOCKET, get(gateway::websocket))
        .fallback(assets::serve)
        .layer(middleware::from_fn(problem::for_router))
        .layer(middleware::map_response(security::add_headers))
        // The largest body is a message, and the same over the socket; files are streamed.
        .layer(DefaultBodyLimit::max(FRAME_BYTES_MAX))
        .with_state(server)
}

/// Has a change made in a task of its own, which goes on when the client hangs up: what is stored
/// would else be told to nobody, and the devices that a new password signs out would read on.
async fn to_its_end(request: Request, next: Next) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    match tokio::spawn(next.run(request)).await.map_err(JoinError::try_into_panic) {
        Ok(response) => response,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        Err(Err(_)) => {
            Refused::new(ErrorCode::StoreUnavailable, "the server is stopping").into_response()
        }
    }
}

/// What only administrators may ask for.
fn administration() -> Router<Arc<Server>> {
    Router::new()
        .route("/api/v1/admin/users", get(admin::users))
        .route("/api/v1/admin/users/{id}", patch(admin::update_user))
        .route("/api/v1/admin/users/{id}/devices", delete(admin::sign_out))
        .route("/api/v1/admin/users/{id}/password-reset", post(admin::reset_link))
        .route("/api/v1/admin/users/{id}/deletion", post(deletion::delete_user))
        .route("/api/v1/admin/rooms", get(admin::rooms))
        .route(
            "/api/v1/admin/rooms/{id}",
            patch(deletion::update_room).delete(deletion::delete_any_room),
        )
        .route(
            "/api/v1/admin/rooms/{id}/retention",
            put(retention::set_of_room).delete(retention::unset_of_room),
        )
        .route("/api/v1/admin/retention", get(retention::rules).put(retention::set))
        .route("/api/v1/admin/settings", get(admin::settings).patch(admin::update_settings))
        .route("/api/v1/admin/logo", {
            let limit = DefaultBodyLimit::max(PICTURE_BYTES_MAX);
            put(branding::set_logo).delete(branding::remove_logo).layer(limit)
        })
        .route("/api/v1/admin/storage", get(admin::storage))
        .route("/api/v1/admin/live", get(admin::live))
        .route("/api/v1/admin/moderation", get(admin::moderation))
}

/// Answers as long as the process serves.
async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether new clients are to be sent here. A server that stops takes no connection at all.
async fn readyz(State(server): State<Arc<Server>>) -> Result<&'static str, Refused> {
    if server.nodes().is_none_or(|nodes| nodes.is_serving()) {
        return Ok("ready\n");
    }
    let text = "this node has no lease at present; the others may have taken it for lost";
    Err(Refused::new(ErrorCode::StoreUnavailable, text))
}

async fn metrics_page(State(server): State<Arc<Server>>) -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], metrics_page::page(&server))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_request_is_done_to_its_end_when_its_client_hangs_up() {
        let (begun, mut has_begun) = mpsc::unbounded_channel();
        let (done, mut is_done) = mpsc::unbounded_channel();
        let slow = move || async move {
            begun.send(()).unwrap();
            tokio::time::sleep(Duration::from_millis(200)).await;
            done.send(()).unwrap();
        };
        let router = Router::new().route("/", post(slow)).layer(middleware::from_fn(to_its_end));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        let mut client = TcpStream::connect(address).await.unwrap();
        client
            .write_all(b"POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 0\r\n\r\n")
            .await
            .unwrap();
        has_begun.recv().await.unwrap();
        drop(client);
        let within = tokio::time::timeout(Duration::from_secs(10), is_done.recv());
        assert_eq!(within.await.expect("it goes on"), Some(()));
    }
}
