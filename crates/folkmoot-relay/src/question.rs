//! What clients and backends ask of a channel alike: pages of its history, and who is present.
//! Whether somebody may ask is decided before.

use std::sync::Arc;

use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::frame::{
    HistoryRequest, HistoryResult, PresenceResult, PresenceStatsResult,
};
use folkmoot_protocol::rpc::RpcError;

use crate::channels::ChannelsCalls;
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
    let page = server.hub.of(&channel).history(channel.clone(), query, keep).await;
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
    let present = server.hub.of(&channel).presence(channel.clone()).await;
    let present = present.map_err(|error| unavailable(&error))?;
    let presence = present.into_iter().map(|one| (one.client.clone(), one)).collect();
    Ok(PresenceResult { presence })
}

/// How many connections and users are in a channel.
pub(crate) async fn presence_stats(
    server: &Server,
    channel: Arc<str>,
) -> Result<PresenceStatsResult, RpcError> {
    let stats = server.hub.of(&channel).presence_stats(channel.clone()).await;
    stats.map_err(|error| unavailable(&error))
}
