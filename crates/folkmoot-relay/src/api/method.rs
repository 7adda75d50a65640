//! The methods of the server API, each by itself, and how they are called with JSON.

use std::sync::Arc;

use bytes::Bytes;
use folkmoot_gateway::Close;
use folkmoot_protocol::frame::{
    HistoryRequest, HistoryResult, PresenceResult, PresenceStatsResult, PushKind, Refresh,
    StreamPosition, Unsubscribe,
};
use folkmoot_protocol::rpc::RpcError;
use folkmoot_protocol::{DisconnectCode, ErrorCode};
use regex::Regex;
use serde::Serialize;
use serde_json::json;

use super::caller::Caller;
use super::params::{self, read};
use super::{Outcome, json, publish};
use crate::channels::{Answer, ChannelsCalls};
use crate::connection::Connection;
use crate::overrides::Overrides;
use crate::payload::Encoded;
use crate::question;
use crate::rules::Rule;
use crate::server::{Server, seconds_left, unavailable};
use crate::session::{ByServer, end_connection_at, end_subscription_at, subscribe_by_server};

/// The SDKs do not subscribe again by themselves after a code below 2500.
const UNSUBSCRIBED_BY_SERVER: u32 = 2000;

/// Longer than any name that it could match.
const PATTERN_BYTES_MAX: usize = 1_024;

/// Runs a method with its parameters in JSON.
pub(crate) async fn run(caller: &Caller, method: &str, params: &[u8]) -> Outcome {
    caller.rights.may(method)?;
    let nothing = |(): ()| json(&json!({}));
    match method {
        "publish" | "broadcast" => {
            let outcome = publish::run(caller, method, params).await;
            caller.server.metrics.by_api.count(&outcome);
            outcome
        }
        "subscribe" => {
            let asked = read::<params::Subscribe>(params)?;
            let subscription = Subscription {
                info: asked.info()?,
                data: asked.data()?,
                since: asked.recover_since,
                ends_at: asked.expire_at,
                overrides: asked.overrides.unwrap_or_default(),
                channel: asked.channel,
            };
            subscribe(caller, &read(params)?, &subscription).await.and_then(nothing)
        }
        "unsubscribe" => {
            unsubscribe(caller, &read(params)?, channel(params)?).await.and_then(nothing)
        }
        "disconnect" => {
            let why = read::<params::Disconnect>(params)?.disconnect;
            disconnect(caller, &read(params)?, why).and_then(nothing)
        }
        "refresh" => refresh(caller, &read(params)?, &read(params)?).and_then(nothing),
        "presence" => json(&presence(caller, channel(params)?).await?),
        "presence_stats" => json(&presence_stats(caller, channel(params)?).await?),
        "history" => json(&history(caller, &read(params)?).await?),
        "history_remove" => history_remove(caller, channel(params)?).await.and_then(nothing),
        "channels" => {
            let listed = channels(caller, &read::<params::List>(params)?.pattern).await?;
            let channels: serde_json::Map<_, _> = listed
                .into_iter()
                .map(|(channel, clients)| (channel.to_string(), json!({ "num_clients": clients })))
                .collect();
            json(&json!({ "channels": channels }))
        }
        "info" => json(&json!({ "nodes": [info(caller).await?] })),
        "rpc" => Err(rpc(&read::<params::Rpc>(params)?.method)),
        method => Err(RpcError::method_not_found(method)),
    }
}

fn channel(params: &[u8]) -> Result<Arc<str>, RpcError> {
    Ok(read::<params::Channel>(params)?.channel.into())
}

/// The connections that a request is about.
fn connections(server: &Server, of: &params::Of) -> Result<Vec<Arc<Connection>>, RpcError> {
    let wrong = |text: &str| Err(RpcError::new(ErrorCode::BadRequest, text));
    let session = of.session.as_deref().unwrap_or_default();
    if of.label_filter.is_some() {
        return wrong("label_filter is not offered: connections have no labels");
    }
    if of.all_users && of.user.is_empty() {
        return wrong("all_users is not offered: name the user");
    }
    if [&of.user, &of.client, session].into_iter().all(str::is_empty) {
        return wrong("user is required, or client or session of an anonymous connection");
    }
    let mut connections = server.people.of(&of.user, &of.client, session);
    connections.retain(|one| !of.whitelist.iter().any(|spared| **spared == *one.id));
    Ok(connections)
}

/// How connections are subscribed.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) channel: String,
    pub(super) info: Bytes,
    pub(super) data: Bytes,
    pub(super) since: Option<StreamPosition>,
    /// In seconds since 1970; 0: they have no end.
    pub(super) ends_at: i64,
    pub(super) overrides: Overrides,
}

pub(super) async fn subscribe(
    caller: &Caller,
    of: &params::Of,
    asked: &Subscription,
) -> Result<(), RpcError> {
    let rule = asked.overrides.over(caller.rule(&asked.channel)?)?;
    if asked.ends_at != 0 && seconds_left(asked.ends_at) == 0 {
        return Err(RpcError::new(ErrorCode::BadRequest, "expire_at is over"));
    }
    for connection in connections(&caller.server, of)? {
        let since = asked.since.as_ref();
        let by_server = ByServer {
            info: asked.info.clone(),
            data: asked.data.clone(),
            since: since.map(|since| (since.offset, since.epoch.clone())),
            answer: Answer::Push,
            place: None,
        };
        let (server, channel) = (&caller.server, Arc::from(asked.channel.as_str()));
        match subscribe_by_server(server, &connection, &channel, &rule, by_server).await {
            Ok(_) => end_subscription_at(server, &connection, &channel, asked.ends_at),
            // It has what was wanted for it, but for another end.
            Err(error) if error.code == ErrorCode::AlreadySubscribed => {
                if asked.ends_at != 0 {
                    end_subscription_at(server, &connection, &channel, asked.ends_at);
                }
            }
            // It ends.
            Err(error) if error.code == ErrorCode::NotAvailable => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

pub(super) async fn unsubscribe(
    caller: &Caller,
    of: &params::Of,
    channel: Arc<str>,
) -> Result<(), RpcError> {
    caller.rule(&channel)?;
    for connection in connections(&caller.server, of)? {
        let reason = "server unsubscribe".to_owned();
        let why = Unsubscribe { code: UNSUBSCRIBED_BY_SERVER, reason };
        let expelled =
            caller.server.hub.of(&channel).expel(channel.clone(), connection.id.clone(), why);
        expelled.await.map_err(|error| unavailable(&error))?;
    }
    Ok(())
}

pub(super) fn disconnect(
    caller: &Caller,
    of: &params::Of,
    why: Option<params::Code>,
) -> Result<(), RpcError> {
    let close = match why {
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
    for connection in connections(&caller.server, of)? {
        connection.outbox.close(close.clone());
    }
    Ok(())
}

/// Puts the end of connections off, or ends them.
pub(super) fn refresh(
    caller: &Caller,
    of: &params::Of,
    asked: &params::Refresh,
) -> Result<(), RpcError> {
    for connection in connections(&caller.server, of)? {
        if asked.expired {
            connection.outbox.close(DisconnectCode::Expired);
            continue;
        }
        if let Some(info) = asked.info() {
            connection.set_info(info);
        }
        end_connection_at(&caller.server, &connection, asked.expire_at);
        let (expires, ttl) = (asked.expire_at > 0, seconds_left(asked.expire_at));
        let refresh = PushKind::Refresh(Refresh { expires, ttl });
        connection.push(Encoded::new(&Arc::from(""), refresh).bytes(connection.format));
    }
    Ok(())
}

fn present_rule<'a>(caller: &'a Caller, channel: &str) -> Result<&'a Rule, RpcError> {
    let rule = caller.rule(channel)?;
    if rule.has_presence() { Ok(rule) } else { Err(ErrorCode::NotAvailable.into()) }
}

pub(super) async fn presence(
    caller: &Caller,
    channel: Arc<str>,
) -> Result<PresenceResult, RpcError> {
    present_rule(caller, &channel)?;
    question::presence(&caller.server, channel).await
}

pub(super) async fn presence_stats(
    caller: &Caller,
    channel: Arc<str>,
) -> Result<PresenceStatsResult, RpcError> {
    present_rule(caller, &channel)?;
    question::presence_stats(&caller.server, channel).await
}

pub(super) async fn history(
    caller: &Caller,
    asked: &HistoryRequest,
) -> Result<HistoryResult, RpcError> {
    let rule = caller.rule(&asked.channel)?;
    question::history(&caller.server, rule, asked).await
}

pub(super) async fn history_remove(caller: &Caller, channel: Arc<str>) -> Result<(), RpcError> {
    caller.rule(&channel)?.keep().ok_or(ErrorCode::NotAvailable)?;
    let removed = caller.server.hub.remove_history(channel).await;
    removed.map_err(|error| unavailable(&error))
}

/// The channels with subscribers, and how many each has.
pub(super) async fn channels(
    caller: &Caller,
    pattern: &str,
) -> Result<Vec<(Arc<str>, usize)>, RpcError> {
    let pattern = match pattern {
        "" => None,
        pattern => Some(glob(pattern)?),
    };
    let mut listed = caller.server.hub.list(pattern).await.map_err(|error| unavailable(&error))?;
    listed.retain(|(channel, _)| caller.rights.sees(channel));
    Ok(listed)
}

/// `*` is any part of a name that stays within `.` and `:`, as in Centrifugo's patterns; `**` any.
fn glob(pattern: &str) -> Result<Regex, RpcError> {
    if pattern.len() > PATTERN_BYTES_MAX {
        let text = format!("pattern is over the limit of {PATTERN_BYTES_MAX} bytes");
        return Err(RpcError::new(ErrorCode::BadRequest, text));
    }
    let escaped = regex::escape(pattern).replace(r"\*\*", ".*").replace(r"\*", "[^.:]*");
    let escaped = escaped.replace(r"\?", "[^.:]");
    // A name may have line breaks, too.
    Regex::new(&format!("(?s)^(?:{escaped})$"))
        .map_err(|error| RpcError::new(ErrorCode::BadRequest, format!("pattern: {error}")))
}

/// Why nothing is called by that name: Centrifugo's are extensions that are built into it.
pub(super) fn rpc(name: &str) -> RpcError {
    match name {
        "" => RpcError::new(ErrorCode::BadRequest, "method is required"),
        name => RpcError::method_not_found(name),
    }
}

/// What a relay tells of itself.
#[derive(Debug, Serialize)]
pub(super) struct Info {
    pub(super) uid: String,
    pub(super) name: &'static str,
    pub(super) version: &'static str,
    pub(super) num_clients: usize,
    pub(super) num_users: usize,
    pub(super) num_subs: usize,
    pub(super) num_channels: usize,
    /// Seconds.
    pub(super) uptime: u64,
}

pub(super) async fn info(caller: &Caller) -> Result<Info, RpcError> {
    let server = &caller.server;
    let (num_clients, num_users) = server.people.count();
    let count = server.hub.count().await.map_err(|error| unavailable(&error))?;
    Ok(Info {
        uid: server.node.incarnation().to_string(),
        name: "folkmoot-relay",
        version: env!("CARGO_PKG_VERSION"),
        num_clients,
        num_users,
        num_subs: count.subscriptions,
        num_channels: count.with_subscribers,
        uptime: server.started.elapsed().as_secs(),
    })
}
