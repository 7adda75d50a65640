//! The sockets of the chat: what `folkmoot-gateway` reads and writes, handed to sessions. Decides
//! nothing about chat.

use std::sync::Arc;

use axum::extract::{Extension, Query, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use folkmoot_gateway::{Application, Guest, Handshake, Note, Opening, SocketQuery};
use folkmoot_protocol::frame::{Reply, Request};
use folkmoot_protocol::{DisconnectCode, ErrorCode};
use tokio::sync::watch;

use crate::http::Refused;
use crate::server::{Connected, Server};
use crate::session::{self, Caller};

/// `GET /connection/websocket`.
pub(crate) async fn websocket(
    State(server): State<Arc<Server>>,
    Extension(Guest(visit)): Extension<Guest>,
    Query(query): Query<SocketQuery>,
    headers: HeaderMap,
    handshake: Handshake,
) -> Response {
    if !folkmoot_gateway::is_allowed(&headers, &server.config.allow_origin) {
        let text = "pages of this origin may not connect; see --allow-origin";
        return Refused::new(ErrorCode::PermissionDenied, text).into_response();
    }
    if !server.takes_connections() {
        let text = "this node takes no connections (--role state); connect to another one";
        return Refused::new(ErrorCode::NotAvailable, text).into_response();
    }
    let settings = server.config.gateway.sockets();
    folkmoot_gateway::upgrade(handshake, &query, visit, settings, Sockets(server))
}

/// The chat, as its sockets see it.
#[derive(Debug, Clone)]
struct Sockets(Arc<Server>);

impl Application for Sockets {
    type Caller = Caller;
    type Guard = Connected;

    fn opened(&self) -> Connected {
        self.0.metrics.connection_opened();
        self.0.connected()
    }

    async fn connect(&self, opening: Opening) -> Result<(Arc<Caller>, Reply), DisconnectCode> {
        session::open(self.0.clone(), opening).await
    }

    async fn go_live(caller: &Caller) {
        caller.go_live().await;
    }

    async fn answer(caller: &Caller, id: u32, request: Request) -> Option<Reply> {
        session::command::run(caller, id, request).await
    }

    async fn end(caller: &Caller) {
        caller.end().await;
    }

    fn note(&self, note: Note) {
        match note {
            Note::Command => self.0.metrics.command(),
            Note::Closed(code) => self.0.metrics.connection_closed(code),
        }
    }

    fn stopping(&self) -> watch::Receiver<bool> {
        self.0.goodbye().of_next()
    }
}
