//! The way to all channels of a server: which actor owns which.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::time::Duration;

use althing::{ActorRef, AskError, Node};
use bytes::Bytes;
use folkmoot_protocol::frame::{ClientInfo, HistoryResult, SubscribeResult};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::{
    Attach, Begun, Channels, ChannelsCalls, Count, Found, FoundChannel, HistoryPage, Join, NotMade,
    Owner, OwnerCalls, Position, Post, Posts, Shipment,
};
use crate::connection::Connection;
use crate::nodes::{Nodes, SiteCalls};
use crate::stream::{Keep, Query};

/// Actors among which the channels are dealt out. More than a machine has cores, so that a channel
/// with a hundred thousand subscribers holds few others up.
pub(crate) const SHARDS: usize = 64;
/// How long a client waits for an owner that is lost: until its next life begins on another node.
const ATTACH_TIMEOUT: Duration = Duration::from_secs(20);
/// Between two questions to an owner that has just been lost.
const ATTACH_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The longest publication where there are several nodes: half of a frame between them, which holds
/// names and keys, too.
const PUBLICATION_BYTES_MAX: usize = 32 << 20;

/// Why nothing was published.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Refused {
    /// The owner of the channel did not answer.
    #[error("{0}")]
    Asking(#[from] AskError),
    /// Its history cannot be written.
    #[error("the disk takes no histories")]
    Disk,
    /// With several nodes: a frame between them would not hold it.
    #[error("a publication of {0} bytes is over the limit of {max} between nodes", max = PUBLICATION_BYTES_MAX)]
    TooLarge(usize),
}

/// Whether a frame between nodes holds a publication.
fn fits(post: &Post) -> Result<(), Refused> {
    match post.payload.encoded_len() {
        len if len > PUBLICATION_BYTES_MAX => Err(Refused::TooLarge(len)),
        _ => Ok(()),
    }
}

/// Publishes into durable channels of one owner.
async fn store(owner: ActorRef<Channels>, posts: Posts) -> Result<Vec<Position>, Refused> {
    let (reply, written) = oneshot::channel();
    owner.store(posts, reply).await?;
    written.await.ok().flatten().ok_or(Refused::Disk)
}

/// All channels of a server.
#[derive(Debug, Clone)]
pub(crate) struct Hub {
    /// On one node of several, the subscribers that came to it.
    shards: Arc<[ActorRef<Channels>]>,
    /// Where the owners are then; `None`: they are in `shards`.
    nodes: Option<Arc<Nodes>>,
}

/// Somebody who is present.
#[derive(Debug)]
pub(crate) enum Someone<'a> {
    /// On this node, with what the backend says of it in the channel.
    Here(&'a Connection, &'a Bytes),
    There(ClientInfo),
}

/// Takes a subscription back that is about to be made, unless it was made.
struct Pending<'a> {
    channels: &'a ActorRef<Channels>,
    channel: Arc<str>,
    client: Arc<str>,
    is_over: bool,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let (channel, client) = (self.channel.clone(), self.client.clone());
            // One that has no room notices it with the owner's answer.
            let _ = self.channels.give_up(channel, client).try_tell();
        }
    }
}

impl Hub {
    pub(crate) fn new(node: &Node) -> Self {
        let shards = (0..SHARDS).map(|shard| node.get::<Channels>(shard.to_string())).collect();
        Self { shards, nodes: None }
    }

    /// The same on one node of several.
    pub(crate) fn across(self, nodes: Arc<Nodes>) -> Self {
        Self { nodes: Some(nodes), ..self }
    }

    /// The subscribers of this node, by their channels' owners.
    pub(crate) fn shards(&self) -> &Arc<[ActorRef<Channels>]> {
        &self.shards
    }

    /// The nodes of which this is one; `None`: the relay is alone.
    pub(crate) fn nodes(&self) -> Option<&Arc<Nodes>> {
        self.nodes.as_ref()
    }

    /// Where a channel's subscribers of this node are; on a relay that is alone, its owner.
    pub(crate) fn of(&self, channel: &str) -> &ActorRef<Channels> {
        &self.shards[Self::shard(channel)]
    }

    /// The number of a channel's owner.
    pub(crate) fn shard(channel: &str) -> usize {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        (hasher.hash_one(channel) % SHARDS as u64) as usize
    }

    /// Makes a subscription, or says why there is none.
    ///
    /// # Cancel safety
    /// Dropping the future takes the subscription back, unless it was made.
    pub(crate) async fn join(
        &self,
        join: Join,
    ) -> Result<Result<SubscribeResult, NotMade>, AskError> {
        let channels = self.of(&join.channel);
        let Some(nodes) = &self.nodes else { return channels.join(join).await };
        let (channel, connection) = (join.channel.clone(), join.connection.clone());
        let client = connection.id.clone();
        let owner = nodes.owner(Self::shard(&channel));
        let mut pending = Pending { channels, channel, client, is_over: false };
        let mut begun = channels.begin(join).await?;
        let joined = loop {
            match begun {
                // Whoever takes a subscription back takes its place first.
                Begun::Gone if connection.has_place(&pending.channel) => {
                    break Err(NotMade::GivenUp);
                }
                Begun::Gone => break Err(NotMade::Unwanted),
                Begun::Unrecoverable => break Err(NotMade::Unrecoverable),
                Begun::Joined(result) => break Ok(*result),
                Begun::Ask(attach) => {
                    let number = attach.number;
                    let found = attached(owner, *attach).await?;
                    begun = channels.finish(pending.channel.clone(), number, found).await?;
                }
            }
        };
        pending.is_over = true;
        Ok(joined)
    }

    /// A part of a channel's history, and its position.
    pub(crate) async fn history(
        &self,
        channel: &Arc<str>,
        query: Query,
        keep: Keep,
    ) -> Result<HistoryResult, AskError> {
        let Some(nodes) = &self.nodes else {
            return self.of(channel).history(channel.clone(), query, keep).await;
        };
        let owner = nodes.owner(Self::shard(channel));
        let HistoryPage { publications, epoch, offset } =
            owner.history(channel.clone(), query, keep).await?;
        Ok(HistoryResult { publications, epoch, offset })
    }

    /// Publishes into one channel.
    pub(crate) async fn publish(&self, channel: Arc<str>, post: Post) -> Result<Position, Refused> {
        if let Some(nodes) = &self.nodes {
            let owner = nodes.owner(Self::shard(&channel));
            fits(&post)?;
            let positions = owner.publish_all(Shipment(vec![(channel, post)])).await?;
            return Ok(positions.first().copied().unwrap_or_default());
        }
        let owner = self.of(&channel).clone();
        match post.is_durable() {
            false => Ok(owner.publish(channel, post).await?),
            true => {
                let positions = store(owner, vec![(channel, post)]).await?;
                Ok(positions.first().copied().unwrap_or_default())
            }
        }
    }

    /// Publishes into many channels; what came of each comes in their order. Those of one channel
    /// are published in the order in which they are here.
    pub(crate) async fn publish_all(&self, posts: Posts) -> Vec<Result<Position, Refused>> {
        let mut shards: BTreeMap<(usize, bool), (Vec<usize>, Posts)> = BTreeMap::new();
        let mut outcomes = vec![Ok(Position::default()); posts.len()];
        for (place, (channel, post)) in posts.into_iter().enumerate() {
            if self.nodes.is_some()
                && let Err(refused) = fits(&post)
            {
                outcomes[place] = Err(refused);
                continue;
            }
            let shard = shards.entry((Self::shard(&channel), post.is_durable())).or_default();
            shard.0.push(place);
            shard.1.push((channel, post));
        }
        let asked: Vec<_> = shards
            .into_iter()
            .map(|((shard, is_durable), (places, posts))| {
                let owner = self.shards[shard].clone();
                let across = self.nodes.as_ref().map(|nodes| nodes.owner(shard).clone());
                let answer = async move {
                    if let Some(owner) = across {
                        return Ok(owner.publish_all(Shipment(posts)).await?);
                    }
                    match is_durable {
                        false => Ok(owner.publish_all(posts).await?),
                        true => store(owner, posts).await,
                    }
                };
                (places, tokio::spawn(answer))
            })
            .collect();
        for (places, answer) in asked {
            let answer = answer.await.expect("publishing does not panic");
            for (number, place) in places.into_iter().enumerate() {
                outcomes[place] = match &answer {
                    Ok(positions) => Ok(positions.get(number).copied().unwrap_or_default()),
                    Err(refused) => Err(refused.clone()),
                };
            }
        }
        outcomes
    }

    /// Gives channels back what was found of them on disk.
    pub(crate) async fn restore(&self, found: Vec<FoundChannel>) -> Result<(), AskError> {
        let mut shards: [Vec<_>; SHARDS] = std::array::from_fn(|_| Vec::new());
        for channel in found {
            shards[Self::shard(&channel.0)].push(channel);
        }
        for (owner, found) in self.shards.iter().zip(shards) {
            owner.restore(found).await?;
        }
        Ok(())
    }

    /// Removes the publications of a channel; its numbers go on.
    pub(crate) async fn remove_history(&self, channel: Arc<str>) -> Result<(), Refused> {
        if let Some(nodes) = &self.nodes {
            return Ok(nodes.owner(Self::shard(&channel)).remove_history(channel).await?);
        }
        let (reply, removed) = oneshot::channel();
        self.of(&channel).remove_history(channel.clone(), reply).await?;
        match removed.await {
            Ok(true) => Ok(()),
            _ => Err(Refused::Disk),
        }
    }

    /// Tells of each that is present, at least once: of all who are there from the beginning to the
    /// end, and perhaps of some who come or go meanwhile.
    pub(crate) async fn each_present(
        &self,
        channel: &Arc<str>,
        mut tell: impl FnMut(Someone<'_>),
    ) -> Result<(), AskError> {
        if let Some(nodes) = &self.nodes {
            let (shard, channel) = (shard_number(channel), channel.clone());
            let pages = nodes.ask_all(move |site| {
                let channel = channel.clone();
                async move {
                    let (mut all, mut next) = (Vec::new(), Some(usize::MAX));
                    while let Some(before) = next {
                        let page = site.present(shard, channel.clone(), before).await?;
                        all.extend(page.who);
                        next = page.next;
                    }
                    Ok(all)
                }
            });
            pages.await?.into_iter().flatten().for_each(|one| tell(Someone::There(one)));
            return Ok(());
        }
        let mut next = Some(usize::MAX);
        while let Some(before) = next {
            let page = self.of(channel).present(channel.clone(), before).await?;
            page.who.iter().for_each(|(connection, info)| tell(Someone::Here(connection, info)));
            next = page.next;
        }
        Ok(())
    }

    /// How much there is on this node.
    pub(crate) async fn count(&self) -> Result<Count, AskError> {
        let mut all = Count::default();
        for shard in self.shards.iter() {
            let count = shard.count().await?;
            all.channels += count.channels;
            all.with_subscribers += count.with_subscribers;
            all.subscriptions += count.subscriptions;
        }
        Ok(all)
    }

    /// Every channel with subscribers and how many it has, those that match.
    pub(crate) async fn list(
        &self,
        pattern: Option<regex::Regex>,
    ) -> Result<Vec<(Arc<str>, usize)>, AskError> {
        let mut all = Vec::new();
        if let Some(nodes) = &self.nodes {
            return list_all(nodes, pattern.as_ref().map_or("", |pattern| pattern.as_str())).await;
        }
        for shard in self.shards.iter() {
            all.extend(shard.list(pattern.clone()).await?);
        }
        all.sort();
        Ok(all)
    }
}

fn shard_number(channel: &str) -> u32 {
    u32::try_from(Hub::shard(channel)).expect("there are few")
}

/// Asks an owner until it answers: to be asked twice changes nothing.
async fn attached(owner: &ActorRef<Owner>, attach: Attach) -> Result<Found, AskError> {
    let until = Instant::now() + ATTACH_TIMEOUT;
    loop {
        match owner.attach(attach.clone()).await {
            Ok(found) => return Ok(found),
            Err(error) if Instant::now() >= until => return Err(error),
            Err(error) => tracing::debug!(%error, "an owner of channels does not answer"),
        }
        sleep(ATTACH_AGAIN_AFTER).await;
    }
}

/// The channels of all nodes with subscribers, part by part.
async fn list_all(nodes: &Nodes, pattern: &str) -> Result<Vec<(Arc<str>, usize)>, AskError> {
    let mut all = BTreeMap::new();
    for shard in 0..u32::try_from(SHARDS).expect("there are few") {
        let pattern = pattern.to_owned();
        let listed = nodes.ask_all(move |site| {
            let pattern = pattern.clone();
            async move { site.list(shard, pattern).await }
        });
        for one in listed.await?.into_iter().flatten() {
            *all.entry(one.channel).or_default() += one.clients;
        }
    }
    Ok(all.into_iter().collect())
}
