//! Between the messages of gRPC and what the rest of the server has.

use std::sync::Arc;

use folkmoot_protocol::frame;
use folkmoot_protocol::rpc::RpcError;

use super::messages::{
    Broadcast, Channels, ClientInfo, Error, History, Node, Overrides, Page, Presence,
    PresenceStats, Publication, Publish, PublishResponse, Published, Subscribers, Switch,
};
use crate::api::method;
use crate::api::params::Content;
use crate::channels::Position;
use crate::overrides;

impl From<RpcError> for Error {
    fn from(refused: RpcError) -> Self {
        Self { code: refused.code.code(), message: refused.message }
    }
}

impl From<Publish> for (String, Content) {
    fn from(it: Publish) -> Self {
        let Publish {
            channel,
            data,
            b64data,
            skip_history,
            tags,
            idempotency_key,
            delta,
            version,
            version_epoch,
        } = it;
        let content = Content { b64data, raw: data, skip_history, tags, ..Content::default() };
        (channel, Content { idempotency_key, delta, version, version_epoch, ..content })
    }
}

impl From<Broadcast> for (Vec<String>, Content) {
    fn from(it: Broadcast) -> Self {
        let Broadcast {
            channels,
            data,
            b64data,
            skip_history,
            tags,
            idempotency_key,
            delta,
            version,
            version_epoch,
        } = it;
        let content = Content { b64data, raw: data, skip_history, tags, ..Content::default() };
        (channels, Content { idempotency_key, delta, version, version_epoch, ..content })
    }
}

impl From<Overrides> for overrides::Overrides {
    fn from(it: Overrides) -> Self {
        let switch = |it: Option<Switch>| it.map(|Switch { value }| overrides::Switch { value });
        Self {
            presence: switch(it.presence),
            join_leave: switch(it.join_leave),
            force_push_join_leave: switch(it.force_push_join_leave),
            force_positioning: switch(it.force_positioning),
            force_recovery: switch(it.force_recovery),
        }
    }
}

impl From<Position> for Published {
    fn from(position: Position) -> Self {
        let Position { offset, epoch } = position;
        let epoch = if offset == 0 { String::new() } else { epoch.to_string() };
        Self { offset, epoch }
    }
}

impl From<Result<Position, RpcError>> for PublishResponse {
    fn from(outcome: Result<Position, RpcError>) -> Self {
        match outcome {
            Ok(position) => Self { error: None, result: Some(position.into()) },
            Err(refused) => Self { error: Some(refused.into()), result: None },
        }
    }
}

impl From<frame::ClientInfo> for ClientInfo {
    fn from(info: frame::ClientInfo) -> Self {
        let frame::ClientInfo { user, client, conn_info, chan_info } = info;
        Self { user, client, conn_info, chan_info }
    }
}

impl From<frame::PresenceResult> for Presence {
    fn from(found: frame::PresenceResult) -> Self {
        let presence = found.presence.into_iter();
        Self { presence: presence.map(|(client, info)| (client, info.into())).collect() }
    }
}

impl From<frame::PresenceStatsResult> for PresenceStats {
    fn from(stats: frame::PresenceStatsResult) -> Self {
        let frame::PresenceStatsResult { num_clients, num_users } = stats;
        Self { num_clients, num_users }
    }
}

impl From<History> for frame::HistoryRequest {
    fn from(it: History) -> Self {
        let History { channel, limit, since, reverse } = it;
        Self { channel, limit, since, reverse }
    }
}

impl From<frame::HistoryResult> for Page {
    fn from(page: frame::HistoryResult) -> Self {
        let publication = |one: frame::Publication| Publication {
            data: one.data,
            info: one.info.map(ClientInfo::from),
            offset: one.offset,
            tags: one.tags,
        };
        let publications = page.publications.into_iter().map(publication).collect();
        Self { publications, epoch: page.epoch, offset: page.offset }
    }
}

impl From<Vec<(Arc<str>, usize)>> for Channels {
    fn from(listed: Vec<(Arc<str>, usize)>) -> Self {
        let subscribers = |clients| Subscribers { num_clients: count(clients) };
        let channels = listed.into_iter();
        let channels = channels.map(|(name, clients)| (name.to_string(), subscribers(clients)));
        Self { channels: channels.collect() }
    }
}

impl From<method::Info> for Node {
    fn from(info: method::Info) -> Self {
        Self {
            uid: info.uid,
            name: info.name.to_owned(),
            version: info.version.to_owned(),
            num_clients: count(info.num_clients),
            num_users: count(info.num_users),
            num_channels: count(info.num_channels),
            uptime: u32::try_from(info.uptime).unwrap_or(u32::MAX),
            num_subs: count(info.num_subs),
        }
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
