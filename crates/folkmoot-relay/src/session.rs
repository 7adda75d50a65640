//! What clients ask, and what they get: the commands of the client protocol.

mod command;
mod expiry;
mod opening;
mod proxied;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use althing::SendError;
use axum::http::HeaderMap;
use folkmoot_gateway::{Application, Close, Direction, Note, Opening};
use folkmoot_protocol::DisconnectCode;
use folkmoot_protocol::frame::{Error, Reply, Request};
use tokio::sync::watch;

use crate::channels::ChannelsCalls;
use crate::connection::Connection;
use crate::proxy::Origin;
use crate::server::Server;

pub(crate) use command::{ByServer, subscribe_by_server};
pub(crate) use expiry::{end_connection_at, end_subscription_at};
pub(crate) use proxied::Calls;

/// The relay, as one socket sees it.
#[derive(Debug, Clone)]
pub(crate) struct Sockets {
    server: Arc<Server>,
    /// How the client came.
    origin: Arc<Origin>,
    direction: Direction,
}

impl Sockets {
    /// For a client that comes by this transport, with these headers.
    pub(crate) fn new(server: Arc<Server>, transport: &'static str, headers: &HeaderMap) -> Self {
        let origin = Arc::new(server.proxies.origin(transport, headers));
        Self { server, origin, direction: Direction::Both }
    }

    /// For one that only listens.
    pub(crate) fn to_client(
        server: Arc<Server>,
        transport: &'static str,
        headers: &HeaderMap,
    ) -> Self {
        Self { direction: Direction::ToClient, ..Self::new(server, transport, headers) }
    }
}

/// Why a command has no result.
#[derive(Debug)]
pub(crate) enum Refusal {
    Error(Error),
    /// The connection ends.
    Disconnect(Close),
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) server: Arc<Server>,
    pub(crate) connection: Arc<Connection>,
}

impl Caller {
    /// Takes back everything that others know of the connection.
    async fn end(&self) {
        let Self { server, connection } = self;
        server.people.leave(connection);
        for channel in connection.end_all() {
            let owner = server.hub.of(&channel);
            // One that stayed behind would be present for ever.
            while let Err(SendError::Timeout(_)) =
                owner.part(channel.clone(), connection.id.clone()).tell().await
            {}
        }
    }
}

impl Application for Sockets {
    type Caller = Caller;
    type Guard = ();

    fn opened(&self) {
        self.server.metrics.connections_total.fetch_add(1, Ordering::Relaxed);
    }

    async fn connect(&self, opening: Opening) -> Result<(Arc<Caller>, Reply), DisconnectCode> {
        opening::open(self.server.clone(), &self.origin, self.direction, opening).await
    }

    async fn go_live(caller: &Caller) {
        caller.connection.go_live();
    }

    async fn answer(caller: &Caller, id: u32, request: Request) -> Option<Reply> {
        command::answer(caller, id, request).await
    }

    fn begins_in_order(caller: &Caller, channel: &str) -> bool {
        !caller.server.rules.of(channel).is_ok_and(|rule| rule.asks_to_publish())
    }

    async fn end(caller: &Caller) {
        caller.end().await;
    }

    fn note(&self, note: Note) {
        let metrics = &self.server.metrics;
        match note {
            Note::Command => drop(metrics.commands_total.fetch_add(1, Ordering::Relaxed)),
            Note::Closed(code) => {
                metrics.count_disconnect(code);
                tracing::debug!(code, "a connection was closed");
            }
        }
    }

    fn stopping(&self) -> watch::Receiver<bool> {
        self.server.stopping()
    }
}
