//! The methods of the server API, each by itself, and how they are called with JSON.

use std::sync::Arc;

use althing::Wire;
use bytes::Bytes;
use folkmoot_gateway::Close;
use folkmoot_protocol::frame::{
    HistoryRequest, HistoryResult, PresenceResult, PresenceStatsResult, StreamPosition,
};
use folkmoot_protocol::rpc::RpcError;
use folkmoot_protocol::{DisconnectCode, ErrorCode};
use regex::Regex;
use serde::Serialize;
use serde_json::json;

use super::caller::Caller;
use super::params::{self, read};
use super::{Outcome, json, publish};
use crate::nodes::{SiteCalls, UserCommand, Whose};
use crate::overrides::Overrides;
use crate::question;
use crate::rules::Rule;
use crate::server::{Server, not_published, seconds_left, unavailable};

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
            subscribe(caller, &read(params)?, subscription).await.and_then(nothing)
        }
        "unsubscribe" => {
            unsubscribe(caller, &read(params)?, channel(params)?).await.and_then(nothing)
        }
        "disconnect" => {
            let why = read::<params::Disconnect>(params)?.disconnect;
            disconnect(caller, &read(params)?, why).await.and_then(nothing)
        }
        "refresh" => refresh(caller, &read(params)?, &read(params)?).await.and_then(nothing),
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
        "info" => json(&json!({ "nodes": infos(caller).await? })),
        "rpc" => Err(rpc(&read::<params::Rpc>(params)?.method)),
        method => Err(RpcError::method_not_found(method)),
    }
}

fn channel(params: &[u8]) -> Result<Arc<str>, RpcError> {
    Ok(read::<params::Channel>(params)?.channel.into())
}

/// Whose connections a request is about.
fn whose(of: &params::Of) -> Result<Whose, RpcError> {
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
    let (user, client, session) = (of.user.clone(), of.client.clone(), session.to_owned());
    Ok(Whose { user, client, session, spared: of.whitelist.clone() })
}

/// How connections are subscribed.
#[derive(Debug, Clone, Wire)]
pub(crate) struct Subscription {
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
    asked: Subscription,
) -> Result<(), RpcError> {
    asked.overrides.over(caller.rule(&asked.channel)?)?;
    if asked.ends_at != 0 && seconds_left(asked.ends_at) == 0 {
        return Err(RpcError::new(ErrorCode::BadRequest, "expire_at is over"));
    }
    let command = UserCommand::Subscribe { whose: whose(of)?, subscription: asked };
    command.run_everywhere(&caller.server).await
}

pub(super) async fn unsubscribe(
    caller: &Caller,
    of: &params::Of,
    channel: Arc<str>,
) -> Result<(), RpcError> {
    caller.rule(&channel)?;
    let command = UserCommand::Unsubscribe { whose: whose(of)?, channel };
    command.run_everywhere(&caller.server).await
}

pub(super) async fn disconnect(
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
    let Close { code, reason } = close;
    let reason = reason.to_string();
    let command = UserCommand::Disconnect { whose: whose(of)?, code, reason };
    command.run_everywhere(&caller.server).await
}

/// Puts the end of connections off, or ends them.
pub(super) async fn refresh(
    caller: &Caller,
    of: &params::Of,
    asked: &params::Refresh,
) -> Result<(), RpcError> {
    let (expired, expire_at) = (asked.expired, asked.expire_at);
    if expire_at < 0 {
        // It would pass for none, and the connection would never end.
        return Err(RpcError::new(ErrorCode::BadRequest, "expire_at is before 1970"));
    }
    let command =
        UserCommand::Refresh { whose: whose(of)?, expired, expire_at, info: asked.info() };
    command.run_everywhere(&caller.server).await
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
    removed.map_err(|refused| not_published(&refused))
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
#[derive(Debug, Clone, Serialize, Wire)]
pub(crate) struct Info {
    pub(super) uid: String,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) num_clients: usize,
    pub(super) num_users: usize,
    pub(super) num_subs: usize,
    pub(super) num_channels: usize,
    /// Seconds.
    pub(super) uptime: u64,
}

/// What each node tells of itself.
pub(super) async fn infos(caller: &Caller) -> Result<Vec<Info>, RpcError> {
    let Some(nodes) = caller.server.hub.nodes() else {
        return Ok(vec![info(&caller.server).await?]);
    };
    let told = nodes.ask_all(|site| async move { SiteCalls::info(&site).await });
    told.await.map_err(|error| unavailable(&error))
}

/// What this one tells.
pub(crate) async fn info(server: &Server) -> Result<Info, RpcError> {
    let (num_clients, num_users) = server.people.count();
    let count = server.hub.count().await.map_err(|error| unavailable(&error))?;
    Ok(Info {
        uid: server.node.incarnation().to_string(),
        name: "folkmoot-relay".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        num_clients,
        num_users,
        num_subs: count.subscriptions,
        num_channels: count.with_subscribers,
        uptime: server.started.elapsed().as_secs(),
    })
}
