//! The way to all channels of a server: which actor owns which.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use althing::{ActorRef, AskError, Node};
use bytes::Bytes;
use tokio::sync::oneshot;

use super::{Channels, ChannelsCalls, Count, FoundChannel, Position, Post, Posts};
use crate::connection::Connection;

/// Actors among which the channels are dealt out. More than a machine has cores, so that a channel
/// with a hundred thousand subscribers holds few others up.
const SHARDS: usize = 64;
/// Why nothing was published.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Refused {
    /// The owner of the channel did not answer.
    #[error("{0}")]
    Asking(#[from] AskError),
    /// Its history cannot be written.
    #[error("the disk takes no histories")]
    Disk,
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
    shards: Arc<[ActorRef<Channels>]>,
}

impl Hub {
    pub(crate) fn new(node: &Node) -> Self {
        Self { shards: (0..SHARDS).map(|shard| node.get::<Channels>(shard.to_string())).collect() }
    }

    /// The owner of a channel.
    pub(crate) fn of(&self, channel: &str) -> &ActorRef<Channels> {
        &self.shards[Self::shard(channel)]
    }

    /// The number of a channel's owner.
    pub(crate) fn shard(channel: &str) -> usize {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        (hasher.hash_one(channel) % SHARDS as u64) as usize
    }

    /// Publishes into one channel.
    pub(crate) async fn publish(&self, channel: Arc<str>, post: Post) -> Result<Position, Refused> {
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
            let shard = shards.entry((Self::shard(&channel), post.is_durable())).or_default();
            shard.0.push(place);
            shard.1.push((channel, post));
        }
        let asked: Vec<_> = shards
            .into_iter()
            .map(|((shard, is_durable), (places, posts))| {
                let owner = self.shards[shard].clone();
                let answer = async move {
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
    pub(crate) async fn remove_history(&self, channel: Arc<str>) -> Result<(), AskError> {
        self.of(&channel).remove_history(channel.clone()).await
    }

    /// Tells of each that is present, at least once: of all who are there from the beginning to the
    /// end, and perhaps of some who come or go meanwhile.
    pub(crate) async fn each_present(
        &self,
        channel: &Arc<str>,
        mut tell: impl FnMut(&Connection, &Bytes),
    ) -> Result<(), AskError> {
        let mut next = Some(usize::MAX);
        while let Some(before) = next {
            let page = self.of(channel).present(channel.clone(), before).await?;
            page.who.iter().for_each(|(connection, info)| tell(connection, info));
            next = page.next;
        }
        Ok(())
    }

    /// How much there is in all.
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
        for shard in self.shards.iter() {
            all.extend(shard.list(pattern.clone()).await?);
        }
        all.sort();
        Ok(all)
    }
}
