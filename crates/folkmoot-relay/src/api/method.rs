//! The methods of the server API, each by itself.

use std::sync::Arc;

use folkmoot_gateway::Close;
use folkmoot_protocol::frame::{HistoryRequest, PushKind, Refresh, Unsubscribe};
use folkmoot_protocol::rpc::RpcError;
use folkmoot_protocol::{DisconnectCode, ErrorCode};
use regex::Regex;
use serde_json::json;

use super::params::{self, read};
use super::{Outcome, json, publish};
use crate::channels::{Answer, ChannelsCalls};
use crate::connection::Connection;
use crate::payload::Encoded;
use crate::question;
use crate::rules::Rule;
use crate::server::{Server, seconds_left, unavailable};
use crate::session::{ByServer, end_connection_at, subscribe_by_server};

/// The SDKs do not subscribe again by themselves after a code below 2500.
const UNSUBSCRIBED_BY_SERVER: u32 = 2000;

/// Runs a method with its parameters in JSON.
pub(crate) async fn run(server: &Arc<Server>, method: &str, params: &[u8]) -> Outcome {
    match method {
        "publish" | "broadcast" => {
            let outcome = publish::run(server, method, params).await;
            server.metrics.by_api.count(&outcome);
            outcome
        }
        "subscribe" => subscribe(server, params).await,
        "unsubscribe" => unsubscribe(server, params).await,
        "disconnect" => disconnect(server, params),
        "refresh" => refresh(server, params),
        "presence" => presence(server, params).await,
        "presence_stats" => presence_stats(server, params).await,
        "history" => history(server, params).await,
        "history_remove" => history_remove(server, params).await,
        "channels" => channels(server, params).await,
        "info" => info(server).await,
        method => Err(RpcError::method_not_found(method)),
    }
}

/// The connections that a request is about.
fn connections(server: &Server, params: &[u8]) -> Result<Vec<Arc<Connection>>, RpcError> {
    let of = read::<params::Of>(params)?;
    if of.user.is_empty() && of.client.is_empty() {
        return Err(RpcError::new(ErrorCode::BadRequest, "user is required"));
    }
    let mut connections = server.people.of(&of.user, &of.client);
    connections.retain(|one| !of.whitelist.iter().any(|spared| **spared == *one.id));
    Ok(connections)
}

async fn subscribe(server: &Arc<Server>, params: &[u8]) -> Outcome {
    let asked = read::<params::Subscribe>(params)?;
    server.rules.of(&asked.channel)?;
    for connection in connections(server, params)? {
        let since = asked.recover_since.as_ref();
        let by_server = ByServer {
            info: asked.info()?,
            data: asked.data()?,
            since: since.map(|since| (since.offset, since.epoch.clone())),
            answer: Answer::Push,
        };
        match subscribe_by_server(server, &connection, &asked.channel, by_server).await {
            Ok(_) => {}
            // It has what was wanted for it.
            Err(error) if error.code == ErrorCode::AlreadySubscribed => {}
            // It ends.
            Err(error) if error.code == ErrorCode::NotAvailable => {}
            Err(error) => return Err(error),
        }
    }
    json(&json!({}))
}

async fn unsubscribe(server: &Server, params: &[u8]) -> Outcome {
    let channel: Arc<str> = read::<params::Channel>(params)?.channel.into();
    server.rules.of(&channel)?;
    for connection in connections(server, params)? {
        let reason = "server unsubscribe".to_owned();
        let why = Unsubscribe { code: UNSUBSCRIBED_BY_SERVER, reason };
        let expelled = server.hub.of(&channel).expel(channel.clone(), connection.id.clone(), why);
        expelled.await.map_err(|error| unavailable(&error))?;
    }
    json(&json!({}))
}

fn disconnect(server: &Server, params: &[u8]) -> Outcome {
    let close = match read::<params::Disconnect>(params)?.disconnect {
        None => Close::from(DisconnectCode::ForceDisconnect),
        Some(params::Code { code, reason }) => {
            let number = u16::try_from(code).ok().filter(|code| (3000..5000).contains(code));
            let wrong = |text: &str| RpcError::new(ErrorCode::BadRequest, text);
            let code = number.ok_or_else(|| wrong("disconnect.code is not from 3000 to 4999"))?;
            if reason.len() > Close::REASON_BYTES_MAX {
                return Err(wrong("disconnect.reason is over the limit of 123 bytes"));
            }
            Close { code, reason: reason.into() }
        }
    };
    for connection in connections(server, params)? {
        connection.outbox.close(close.clone());
    }
    json(&json!({}))
}

/// Puts the end of connections off, or ends them.
fn refresh(server: &Arc<Server>, params: &[u8]) -> Outcome {
    let asked = read::<params::Refresh>(params)?;
    for connection in connections(server, params)? {
        if asked.expired {
            connection.outbox.close(DisconnectCode::Expired);
            continue;
        }
        end_connection_at(server, &connection, asked.expire_at);
        let (expires, ttl) = (asked.expire_at > 0, seconds_left(asked.expire_at));
        let refresh = PushKind::Refresh(Refresh { expires, ttl });
        connection.push(Encoded::new(&Arc::from(""), refresh).bytes(connection.format));
    }
    json(&json!({}))
}

fn present_rule<'a>(server: &'a Server, channel: &str) -> Result<&'a Rule, RpcError> {
    let rule = server.rules.of(channel)?;
    if rule.has_presence() { Ok(rule) } else { Err(ErrorCode::NotAvailable.into()) }
}

async fn presence(server: &Server, params: &[u8]) -> Outcome {
    let channel: Arc<str> = read::<params::Channel>(params)?.channel.into();
    present_rule(server, &channel)?;
    json(&question::presence(server, channel).await?)
}

async fn presence_stats(server: &Server, params: &[u8]) -> Outcome {
    let channel: Arc<str> = read::<params::Channel>(params)?.channel.into();
    present_rule(server, &channel)?;
    json(&question::presence_stats(server, channel).await?)
}

async fn history(server: &Server, params: &[u8]) -> Outcome {
    let asked = read::<HistoryRequest>(params)?;
    let rule = server.rules.of(&asked.channel)?;
    json(&question::history(server, rule, &asked).await?)
}

async fn history_remove(server: &Server, params: &[u8]) -> Outcome {
    let channel: Arc<str> = read::<params::Channel>(params)?.channel.into();
    server.rules.of(&channel)?.keep().ok_or(ErrorCode::NotAvailable)?;
    let removed = server.hub.remove_history(channel).await;
    removed.map_err(|error| unavailable(&error))?;
    json(&json!({}))
}

async fn channels(server: &Server, params: &[u8]) -> Outcome {
    let pattern = read::<params::List>(params)?.pattern;
    let pattern = match pattern.as_str() {
        "" => None,
        pattern => Some(glob(pattern)?),
    };
    let listed = server.hub.list(pattern).await.map_err(|error| unavailable(&error))?;
    let channels: serde_json::Map<_, _> = listed
        .into_iter()
        .map(|(channel, clients)| (channel.to_string(), json!({ "num_clients": clients })))
        .collect();
    json(&json!({ "channels": channels }))
}

/// `*` is any part of a name that stays within `.` and `:`, as in Centrifugo's patterns; `**` any.
fn glob(pattern: &str) -> Result<Regex, RpcError> {
    let escaped = regex::escape(pattern).replace(r"\*\*", ".*").replace(r"\*", "[^.:]*");
    let escaped = escaped.replace(r"\?", "[^.:]");
    Regex::new(&format!("^(?:{escaped})$"))
        .map_err(|error| RpcError::new(ErrorCode::BadRequest, format!("pattern: {error}")))
}

async fn info(server: &Server) -> Outcome {
    let (clients, users) = server.people.count();
    let count = server.hub.count().await.map_err(|error| unavailable(&error))?;
    json(&json!({ "nodes": [{
        "uid": server.node.incarnation().to_string(),
        "name": "folkmoot-relay",
        "version": env!("CARGO_PKG_VERSION"),
        "num_clients": clients,
        "num_users": users,
        "num_subs": count.subscriptions,
        "num_channels": count.with_subscribers,
        "uptime": server.started.elapsed().as_secs(),
    }] }))
}
