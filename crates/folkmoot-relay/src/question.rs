//! What clients and backends ask of a channel alike: pages of its history, and who is present.
//! Whether somebody may ask is decided before.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::frame::{
    HistoryRequest, HistoryResult, PresenceResult, PresenceStatsResult,
};
use folkmoot_protocol::rpc::RpcError;

use crate::channels::Someone;
use crate::rules::Rule;
use crate::server::{Server, unavailable};
use crate::stream::Query;

/// A page of a history; an error if the position that it is asked from counts in another epoch.
pub(crate) async fn history(
    server: &Server,
    rule: &Rule,
    request: &HistoryRequest,
) -> Result<HistoryResult, RpcError> {
    let keep = rule.keep().ok_or(ErrorCode::NotAvailable)?;
    let limit_max = server.rules.history_limit;
    // A negative limit asks for all there is, 0 only for the position.
    let limit = usize::try_from(request.limit).unwrap_or(limit_max).min(limit_max);
    let since = request.since.as_ref();
    let query = Query {
        limit: Some(limit),
        since: since.map(|since| since.offset),
        is_reverse: request.reverse,
    };
    let channel: Arc<str> = request.channel.as_str().into();
    let page = server.hub.history(&channel, query, keep).await;
    let page = page.map_err(|error| unavailable(&error))?;
    if since.is_some_and(|since| !since.epoch.is_empty() && since.epoch != page.epoch) {
        return Err(ErrorCode::UnrecoverablePosition.into());
    }
    Ok(page)
}

/// The connections in a channel.
pub(crate) async fn presence(
    server: &Server,
    channel: Arc<str>,
) -> Result<PresenceResult, RpcError> {
    let mut presence = BTreeMap::new();
    let note = |one: Someone<'_>| {
        let seen = match one {
            Someone::Here(connection, info) => connection.seen(info),
            Someone::There(seen) => seen,
        };
        presence.insert(seen.client.clone(), seen);
    };
    let told = server.hub.each_present(&channel, note).await;
    told.map_err(|error| unavailable(&error))?;
    Ok(PresenceResult { presence })
}

/// How many connections and users are in a channel.
pub(crate) async fn presence_stats(
    server: &Server,
    channel: Arc<str>,
) -> Result<PresenceStatsResult, RpcError> {
    let (mut clients, mut users) = (HashSet::<Arc<str>>::new(), HashSet::<Arc<str>>::new());
    let note = |one: Someone<'_>| {
        let (client, user) = match one {
            Someone::Here(connection, _) => (connection.id.clone(), connection.user.clone()),
            Someone::There(seen) => (seen.client.into(), seen.user.into()),
        };
        clients.insert(client);
        users.insert(user);
    };
    let told = server.hub.each_present(&channel, note).await;
    told.map_err(|error| unavailable(&error))?;
    let count = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
    Ok(PresenceStatsResult { num_clients: count(clients.len()), num_users: count(users.len()) })
}
