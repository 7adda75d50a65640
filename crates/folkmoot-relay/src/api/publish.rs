//! `publish` and `broadcast`: from a request to publications, which rows of a backend become too.

use std::sync::Arc;

use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::rpc::RpcError;
use serde::Serialize;

use super::caller::Caller;
use super::keys::Rights;
use super::params::{self, Content, read};
use super::{Outcome, Reply, json};
use crate::channels::{Position, Post, Posts};
use crate::durable::RowKey;
use crate::payload::Payload;
use crate::rules::Rule;
use crate::server::{Server, not_published, now_ms};
use crate::version::Version;

/// Channels in one broadcast.
const CHANNELS_LEN_MAX: usize = 1_000_000;

/// The longest idempotency key: each channel keeps it by itself, on disk if it is durable.
const KEY_BYTES_MAX: usize = 1_024;

/// What a request asks for.
pub(crate) struct Asked {
    pub(crate) posts: Posts,
    /// For each channel, why it is not among `posts`.
    refused: Vec<Option<RpcError>>,
}

impl Asked {
    /// Why it cannot be done whole, if so. For rows, whose outcomes of single channels nobody reads.
    pub(crate) fn refusal(&self) -> Option<RpcError> {
        let refused = || self.refused.iter().flatten();
        let RpcError { code, message, .. } = refused().next()?.clone();
        let (count, all) = (refused().count(), self.refused.len());
        let text = format!("{count} of {all} channels are refused, the first because: {message}");
        Some(RpcError::new(code, text))
    }
}

impl Asked {
    /// Of a row that was published before.
    #[cfg(feature = "kafka")]
    pub(crate) fn nothing() -> Self {
        Self { posts: Posts::new(), refused: Vec::new() }
    }

    /// Gives an idempotency key to what has none, by the row that it comes from: of several nodes
    /// another one may read that again, and the owner of the channel knows it then.
    pub(crate) fn name_by(&mut self, row: &RowKey) {
        let RowKey { source, id, part } = row;
        let key: Arc<str> = format!("{source}/{id}/{part:x}").into();
        for (_, post) in &mut self.posts {
            post.key.get_or_insert_with(|| key.clone());
        }
    }
}

/// A publication whose data stand by themselves and are not in a request.
#[cfg(feature = "kafka")]
pub(crate) struct Plain {
    pub(crate) data: bytes::Bytes,
    pub(crate) tags: std::collections::BTreeMap<String, String>,
    pub(crate) idempotency_key: String,
    pub(crate) delta: bool,
    pub(crate) version: u64,
    pub(crate) version_epoch: String,
}

/// Reads a row that is a publication for these channels.
#[cfg(feature = "kafka")]
pub(crate) fn asked_plain(
    server: &Server,
    channels: Vec<String>,
    plain: Plain,
    row: &RowKey,
) -> Result<Asked, RpcError> {
    let Plain { data: raw, tags, idempotency_key, delta, version, version_epoch } = plain;
    let content =
        Content { raw, tags, idempotency_key, delta, version, version_epoch, ..Content::default() };
    many(server, &Rights::ALL, channels, || Ok(content), Some(row))
}

/// Reads a row, which is a request of either method.
pub(crate) fn asked(
    server: &Server,
    method: &str,
    params: &[u8],
    row: &RowKey,
) -> Result<Asked, RpcError> {
    match method {
        "publish" => {
            let channel = read::<params::Channel>(params)?.channel;
            one(server, &Rights::ALL, channel, &read(params)?, Some(row))
        }
        "broadcast" => {
            let channels = read::<params::Broadcast>(params)?.channels;
            many(server, &Rights::ALL, channels, || read(params), Some(row))
        }
        method => {
            let text = format!("method `{method}` is neither publish nor broadcast");
            Err(RpcError::new(ErrorCode::MethodNotFound, text))
        }
    }
}

fn one(
    server: &Server,
    rights: &Rights,
    channel: String,
    content: &Content,
    row: Option<&RowKey>,
) -> Result<Asked, RpcError> {
    rights.reach(&channel)?;
    let rule = server.rules.of(&channel)?;
    let post = Template::of(content)?.post(rule, row)?;
    Ok(Asked { posts: vec![(channel.into(), post)], refused: vec![None] })
}

fn many(
    server: &Server,
    rights: &Rights,
    channels: Vec<String>,
    content: impl FnOnce() -> Result<Content, RpcError>,
    row: Option<&RowKey>,
) -> Result<Asked, RpcError> {
    if channels.is_empty() {
        return Err(RpcError::new(ErrorCode::BadRequest, "channels is required"));
    }
    if channels.len() > CHANNELS_LEN_MAX {
        let text = format!("channels: more than {CHANNELS_LEN_MAX} in one broadcast");
        return Err(RpcError::new(ErrorCode::BadRequest, text));
    }
    let content = content()?;
    let template = Template::of(&content)?;
    let mut asked = Asked { posts: Vec::with_capacity(channels.len()), refused: Vec::new() };
    for channel in channels {
        let rule = rights.reach(&channel).and_then(|()| server.rules.of(&channel));
        match rule.and_then(|rule| template.post(rule, row)) {
            Ok(post) => {
                asked.posts.push((channel.as_str().into(), post));
                asked.refused.push(None);
            }
            Err(refused) => asked.refused.push(Some(refused)),
        }
    }
    Ok(asked)
}

/// What all publications of a request share, held once for all channels it goes to.
struct Template<'content> {
    content: &'content Content,
    payload: Arc<Payload>,
    key: Option<Arc<str>>,
    version: Option<Arc<Version>>,
}

impl<'content> Template<'content> {
    fn of(content: &'content Content) -> Result<Self, RpcError> {
        let (data, tags) = (content.bytes()?, content.tags.clone());
        let payload = Arc::new(Payload { data, tags, info: None, time: now_ms() });
        Ok(Self { content, payload, key: key(content)?, version: content.version()? })
    }

    fn post(&self, rule: &Rule, row: Option<&RowKey>) -> Result<Post, RpcError> {
        let keep = rule.keep().filter(|_| !self.content.skip_history);
        if keep.is_none() && self.version.is_some() {
            // Nothing would remember it, so what is out of date would be published.
            let text =
                "version needs a channel with a history, and a publication that goes into it";
            return Err(RpcError::new(ErrorCode::BadRequest, text));
        }
        Ok(Post {
            payload: self.payload.clone(),
            keep,
            key: self.key.clone(),
            row: row.cloned(),
            version: self.version.clone(),
            may_be_delta: self.content.delta || rule.publishes_deltas(),
        })
    }
}

fn key(content: &Content) -> Result<Option<Arc<str>>, RpcError> {
    let key = content.idempotency_key.as_str();
    if key.len() > KEY_BYTES_MAX {
        let text = format!("idempotency_key is over the limit of {KEY_BYTES_MAX} bytes");
        return Err(RpcError::new(ErrorCode::BadRequest, text));
    }
    Ok((!key.is_empty()).then(|| key.into()))
}

/// Where a publication went; nothing of it, if the channel keeps no history.
#[derive(Serialize)]
pub(super) struct Published {
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

/// Reads a request to publish into one channel.
pub(super) fn publication(
    caller: &Caller,
    channel: String,
    content: &Content,
) -> Result<(Arc<str>, Post), RpcError> {
    let Caller { server, rights } = caller;
    rights.may("publish")?;
    let asked = one(server, rights, channel, content, None)?;
    Ok(asked.posts.into_iter().next().expect("one was asked for"))
}

/// The same, with its parameters in JSON.
pub(super) fn read_publication(
    caller: &Caller,
    params: &[u8],
) -> Result<(Arc<str>, Post), RpcError> {
    publication(caller, read::<params::Channel>(params)?.channel, &read(params)?)
}

/// Publishes into one channel what was asked for.
pub(super) async fn publish(
    caller: &Caller,
    asked: Result<(Arc<str>, Post), RpcError>,
) -> Result<Position, RpcError> {
    let (channel, post) = asked?;
    let published = caller.server.hub.publish(channel, post).await;
    published.map_err(|refused| not_published(&refused))
}

/// Publishes into many channels; what came of each comes in their order.
pub(super) async fn broadcast(
    caller: &Caller,
    channels: Vec<String>,
    content: impl FnOnce() -> Result<Content, RpcError>,
) -> Result<Vec<Result<Position, RpcError>>, RpcError> {
    let Caller { server, rights } = caller;
    let Asked { posts, refused } = many(server, rights, channels, content, None)?;
    let mut outcomes = server.hub.publish_all(posts).await.into_iter();
    let outcome = |refused: Option<RpcError>| match refused {
        Some(error) => Err(error),
        None => match outcomes.next() {
            Some(outcome) => outcome.map_err(|refused| not_published(&refused)),
            None => Ok(Position::default()),
        },
    };
    Ok(refused.into_iter().map(outcome).collect())
}

/// Runs either method.
pub(super) async fn run(caller: &Caller, method: &str, params: &[u8]) -> Outcome {
    #[derive(Serialize)]
    struct Responses {
        responses: Vec<Reply>,
    }
    if method == "publish" {
        let position = publish(caller, read_publication(caller, params)).await?;
        return json(&Published::from(position));
    }
    let channels = read::<params::Broadcast>(params)?.channels;
    let outcomes = broadcast(caller, channels, || read(params)).await?;
    let reply = |outcome: Result<Position, RpcError>| -> Result<Reply, RpcError> {
        match outcome {
            Ok(position) => json(&Published::from(position)).map(Reply::Result),
            Err(error) => Ok(error.into()),
        }
    };
    json(&Responses { responses: outcomes.into_iter().map(reply).collect::<Result<_, _>>()? })
}
