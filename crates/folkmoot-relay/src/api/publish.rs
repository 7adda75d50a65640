//! `publish` and `broadcast`: from a request to publications, which rows of a backend become too.

use std::sync::Arc;

use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::rpc::RpcError;
use serde::Serialize;

use super::params::{self, Content, read};
use super::{Outcome, Reply, json};
use crate::channels::{Position, Post, Posts};
use crate::durable::RowKey;
use crate::payload::Payload;
use crate::rules::Rule;
use crate::server::{Server, not_published, now_ms};

/// Channels in one broadcast.
const CHANNELS_LEN_MAX: usize = 1_000_000;

/// What a request asks for.
pub(crate) struct Asked {
    pub(crate) posts: Posts,
    /// For each channel, why it is not among `posts`.
    refused: Vec<Option<RpcError>>,
}

/// Reads a request of either method.
pub(crate) fn asked(
    server: &Server,
    method: &str,
    params: &[u8],
    row: Option<&RowKey>,
) -> Result<Asked, RpcError> {
    match method {
        "publish" => one(server, params, row),
        "broadcast" => many(server, params, row),
        method => {
            let text = format!("method `{method}` is neither publish nor broadcast");
            Err(RpcError::new(ErrorCode::MethodNotFound, text))
        }
    }
}

fn one(server: &Server, params: &[u8], row: Option<&RowKey>) -> Result<Asked, RpcError> {
    let channel = read::<params::Channel>(params)?.channel;
    let content = read::<Content>(params)?;
    let rule = server.rules.of(&channel)?;
    let post = post(&content, &payload(&content)?, rule, key(&content).as_ref(), row);
    Ok(Asked { posts: vec![(channel.into(), post)], refused: vec![None] })
}

fn many(server: &Server, params: &[u8], row: Option<&RowKey>) -> Result<Asked, RpcError> {
    let channels = read::<params::Broadcast>(params)?.channels;
    if channels.is_empty() {
        return Err(RpcError::new(ErrorCode::BadRequest, "channels is required"));
    }
    if channels.len() > CHANNELS_LEN_MAX {
        let text = format!("channels: more than {CHANNELS_LEN_MAX} in one broadcast");
        return Err(RpcError::new(ErrorCode::BadRequest, text));
    }
    let content = read::<Content>(params)?;
    let (payload, key) = (payload(&content)?, key(&content));
    let mut asked = Asked { posts: Vec::with_capacity(channels.len()), refused: Vec::new() };
    for channel in channels {
        let rule = server.rules.of(&channel);
        if let Ok(rule) = rule {
            let post = post(&content, &payload, rule, key.as_ref(), row);
            asked.posts.push((channel.as_str().into(), post));
        }
        asked.refused.push(rule.err());
    }
    Ok(asked)
}

/// The payload of a request, held once for all channels it goes to.
fn payload(content: &Content) -> Result<Arc<Payload>, RpcError> {
    let (data, tags) = (content.bytes()?, content.tags.clone());
    Ok(Arc::new(Payload { data, tags, info: None, time: now_ms() }))
}

fn post(
    content: &Content,
    payload: &Arc<Payload>,
    rule: &Rule,
    key: Option<&Arc<str>>,
    row: Option<&RowKey>,
) -> Post {
    let keep = rule.keep().filter(|_| !content.skip_history);
    let may_be_delta = content.delta || rule.publishes_deltas();
    Post { payload: payload.clone(), keep, key: key.cloned(), row: row.cloned(), may_be_delta }
}

fn key(content: &Content) -> Option<Arc<str>> {
    let key = content.idempotency_key.as_str();
    (!key.is_empty()).then(|| key.into())
}

/// Where a publication went; nothing of it, if the channel keeps no history.
#[derive(Serialize)]
struct Published {
    #[serde(skip_serializing_if = "is_zero")]
    offset: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    epoch: String,
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(offset: &u64) -> bool {
    *offset == 0
}

impl From<Position> for Published {
    fn from(position: Position) -> Self {
        let Position { offset, epoch } = position;
        let epoch = if offset == 0 { String::new() } else { epoch.to_string() };
        Self { offset, epoch }
    }
}

/// Runs either method.
pub(super) async fn run(server: &Server, method: &str, params: &[u8]) -> Outcome {
    match method {
        "publish" => publish(server, params).await,
        _ => broadcast(server, params).await,
    }
}

async fn publish(server: &Server, params: &[u8]) -> Outcome {
    let asked = one(server, params, None)?;
    let (channel, post) = asked.posts.into_iter().next().expect("one was asked for");
    let published = server.hub.publish(channel, post).await;
    json(&Published::from(published.map_err(|refused| not_published(&refused))?))
}

async fn broadcast(server: &Server, params: &[u8]) -> Outcome {
    let Asked { posts, refused } = many(server, params, None)?;
    let mut outcomes = server.hub.publish_all(posts).await.into_iter();
    let mut responses: Vec<Reply> = Vec::with_capacity(refused.len());
    for refused in refused {
        responses.push(match refused {
            Some(error) => error.into(),
            None => match outcomes.next().unwrap_or_else(|| Ok(Position::default())) {
                Ok(position) => Reply::Result(json(&Published::from(position))?),
                Err(refused) => not_published(&refused).into(),
            },
        });
    }
    #[derive(Serialize)]
    struct Responses {
        responses: Vec<Reply>,
    }
    json(&Responses { responses })
}
