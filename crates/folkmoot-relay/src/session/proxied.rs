//! What a backend decides of a connection's commands, where its namespace says so.

use std::sync::Arc;

use bytes::Bytes;
use folkmoot_protocol::frame::{
    ConnectRequest, PublishRequest, RpcRequest, RpcResult, SubscribeRequest,
};
use folkmoot_protocol::rpc::RpcError;
use folkmoot_protocol::{ErrorCode, Format};

use super::{Caller, Refusal};
use crate::connection::Connection;
use crate::proxy::{self, About, Connected, Event, Origin, Refreshed, ReplyData, Subscribed};
use crate::server::Server;

impl Connection {
    fn about(&self, server: &Server, event: Event) -> About<'_> {
        let about = About::new(&self.id, Some(&self.user), self.format, &self.origin);
        if server.proxies.includes_meta(event) { about.with_meta(self.meta()) } else { about }
    }
}

/// Who somebody without a token is; `None`: the backend does not say.
pub(super) async fn connect(
    server: &Server,
    id: &str,
    format: Format,
    origin: &Origin,
    request: &ConnectRequest,
) -> Result<Option<Connected>, Refusal> {
    let request = proxy::ConnectRequest {
        about: About::new(id, None, format, origin),
        name: &request.name,
        version: &request.version,
        data: proxy::payload(&request.data),
        channels: request.subs.keys().map(String::as_str).collect(),
    };
    server.proxies.ask(Event::Connect, origin, &request).await
}

/// Whether and how somebody may subscribe.
pub(super) async fn subscribe(
    caller: &Caller,
    request: &SubscribeRequest,
) -> Result<Subscribed, Refusal> {
    ask_of_channel(
        &caller.server,
        &caller.connection,
        Event::Subscribe,
        &request.channel,
        &request.data,
    )
    .await
}

/// Whether somebody may publish, and what.
pub(super) async fn publish(
    caller: &Caller,
    request: &PublishRequest,
) -> Result<ReplyData, Refusal> {
    ask_of_channel(
        &caller.server,
        &caller.connection,
        Event::Publish,
        &request.channel,
        &request.data,
    )
    .await
}

/// What a call returns.
pub(super) async fn rpc(caller: &Caller, request: &RpcRequest) -> Result<RpcResult, Refusal> {
    let Caller { server, connection } = caller;
    if !server.rpc.has(&request.method) {
        return Err(RpcError::method_not_found(&request.method).into());
    }
    let asked = proxy::RpcRequest {
        about: connection.about(server, Event::Rpc),
        method: &request.method,
        data: proxy::payload(&request.data),
    };
    let reply: ReplyData = server.proxies.ask(Event::Rpc, &connection.origin, &asked).await?;
    Ok(RpcResult { data: reply.data() })
}

/// Whether a connection goes on; `None`: the backend does not say.
pub(super) async fn refresh(
    server: &Server,
    connection: &Connection,
) -> Result<Option<Refreshed>, Refusal> {
    let about = connection.about(server, Event::Refresh);
    server.proxies.ask(Event::Refresh, &connection.origin, &about).await
}

/// Whether a subscription goes on; `None`: the backend does not say.
pub(super) async fn sub_refresh(
    server: &Server,
    connection: &Arc<Connection>,
    channel: &str,
) -> Result<Option<Refreshed>, Refusal> {
    ask_of_channel(server, connection, Event::SubRefresh, channel, &Bytes::new()).await
}

async fn ask_of_channel<T: serde::de::DeserializeOwned + Default>(
    server: &Server,
    connection: &Connection,
    event: Event,
    channel: &str,
    data: &Bytes,
) -> Result<T, Refusal> {
    let data = proxy::payload(data);
    let request = proxy::WithChannel { about: connection.about(server, event), channel, data };
    server.proxies.ask(event, &connection.origin, &request).await
}

/// Which calls of clients a backend answers.
#[derive(Debug)]
pub(crate) struct Calls {
    without_namespace: bool,
    namespaces: Vec<String>,
}

impl Calls {
    pub(crate) fn new(settings: &crate::settings::RpcSettings) -> Self {
        let enabled = settings.namespaces.iter().filter(|namespace| namespace.proxy_enabled);
        Self {
            without_namespace: settings.without_namespace.proxy_enabled,
            namespaces: enabled.map(|namespace| namespace.name.clone()).collect(),
        }
    }

    fn has(&self, method: &str) -> bool {
        match method.split_once(':') {
            None => self.without_namespace,
            Some((namespace, _)) => self.namespaces.iter().any(|one| one == namespace),
        }
    }
}

impl From<ErrorCode> for Refusal {
    fn from(code: ErrorCode) -> Self {
        Self::Error(code.into())
    }
}

impl From<RpcError> for Refusal {
    fn from(error: RpcError) -> Self {
        Self::Error(error.into())
    }
}
