//! How the owners of channels begin. The first time they are given what was found on disk by the
//! hub. After a panic they read it again, so that offsets and epochs go on; and whose subscriptions
//! went with the state is disconnected, so that it comes back and recovers: nobody may believe to be
//! subscribed where nobody sends to it.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use althing::{ActorError, Start};
use parking_lot::Mutex;

use crate::channels::{Channels, FoundChannel, Hub};
use crate::durable::{Disk, KnownRows, Restored};
use crate::nodes::Nodes;
use crate::people::People;
use crate::rules::Rules;

/// What owners of channels are made with.
#[derive(Debug)]
pub(crate) struct Owners {
    people: Arc<People>,
    rules: Arc<Rules>,
    /// `None`: no channel is durable.
    disk: Option<(Disk, Arc<KnownRows>)>,
    /// How often each has begun.
    begun: Mutex<HashMap<usize, u64>>,
    /// Where the owners are, on one node of several: these have only the subscribers then.
    nodes: OnceLock<Arc<Nodes>>,
}

impl Owners {
    pub(crate) fn new(
        people: Arc<People>,
        rules: Arc<Rules>,
        disk: Option<(Disk, Arc<KnownRows>)>,
    ) -> Self {
        Self { people, rules, disk, begun: Mutex::default(), nodes: OnceLock::new() }
    }

    /// The relay has several nodes; said before any of them begins.
    pub(crate) fn are_on(&self, nodes: Arc<Nodes>) {
        let is_first = self.nodes.set(nodes).is_ok();
        debug_assert!(is_first, "a relay is one node");
    }

    /// The state that an owner begins with.
    pub(crate) async fn begin(&self, start: Start<Channels>) -> Result<Channels, ActorError> {
        let shard: usize = start.key_as()?;
        let begun = self.has_begun(shard);
        if begun > 0 {
            let told = self.people.lose(|channel| Hub::shard(channel) == shard);
            tracing::error!(shard, told, "channels begin anew; their subscribers must come back");
        }
        if let Some(nodes) = self.nodes.get() {
            return Ok(Channels::of_owner(nodes.owner(shard).clone(), nodes.site()?, begun));
        }
        let Some((disk, rows)) = &self.disk else { return Ok(Channels::new()) };
        let channels = Channels::on_disk(disk.clone(), rows.clone());
        if begun == 0 {
            return Ok(channels);
        }
        let found = disk.read(move |channel| Hub::shard(channel) == shard).await?;
        // Of publications that were written when nobody was there to note it.
        found.rows.iter().for_each(|(row, channel)| rows.insert(row, channel));
        Ok(channels.with(self.rules.kept(found.channels)))
    }

    /// Counts a beginning; how often it has begun before.
    fn has_begun(&self, shard: usize) -> u64 {
        let mut begun = self.begun.lock();
        let times = begun.entry(shard).or_default();
        *times += 1;
        *times - 1
    }
}

impl Rules {
    /// What is given back of what was found: nothing of namespaces that are durable no more.
    pub(crate) fn kept(&self, found: HashMap<Arc<str>, Restored>) -> Vec<FoundChannel> {
        let kept = found.into_iter().filter_map(|(channel, restored)| {
            let keep = self.of(&channel).ok()?.keep().filter(|keep| keep.is_durable)?;
            Some((channel, restored, keep))
        });
        kept.collect()
    }
}

#[cfg(test)]
mod tests;
