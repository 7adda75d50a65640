//! What is published: where it goes, and when it has gone there already.

use std::sync::Arc;

use althing::Wire;

use super::across::Across;
use super::news::{Heard, What};
use super::{Channels, KEYS_KEPT_MS};
use crate::durable::RowKey;
use crate::epoch::Epoch;
use crate::payload::Payload;
use crate::stream::Keep;
use crate::version::Version;

/// Where a publication went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Wire)]
pub(crate) struct Position {
    /// 0: in no history.
    pub(crate) offset: u64,
    pub(crate) epoch: Epoch,
}

/// What is to be published.
#[derive(Debug, Clone)]
pub(crate) struct Post {
    pub(crate) payload: Arc<Payload>,
    /// `None`: it goes into no history.
    pub(crate) keep: Option<Keep>,
    /// The same key in the same channel is published once.
    pub(crate) key: Option<Arc<str>>,
    /// So is the same row, if the channel is durable.
    pub(crate) row: Option<RowKey>,
    /// Nothing that is older follows it in the same channel. Only what goes into a history has one.
    pub(crate) version: Option<Arc<Version>>,
    /// Whether it may go out as what has changed since the one before it.
    pub(crate) may_be_delta: bool,
}

impl Post {
    pub(crate) fn is_durable(&self) -> bool {
        self.keep.is_some_and(|keep| keep.is_durable)
    }
}

impl Channels {
    /// Publishes, unless the channel has it already.
    pub(super) fn publish_one(&mut self, name: &Arc<str>, post: &Post, now: u64) -> Position {
        let is_kept = post.keep.is_some() || post.key.is_some();
        let known = self.channels.get(name);
        if known.is_none() && !is_kept {
            // Nobody hears it and nothing is kept of it.
            return Position::default();
        }
        let key = post.key.as_ref();
        if let Some(position) = known.zip(key).and_then(|(channel, key)| channel.repeats(key, now))
        {
            return position;
        }
        let version = post.version.as_ref();
        if let Some(position) = known.zip(version).and_then(|(channel, it)| channel.has_newer(it)) {
            return position;
        }
        let position = self.enter(name, post, now);
        self.look_later(name, now);
        position
    }

    /// Takes a publication into its channel and tells its subscribers.
    pub(super) fn enter(&mut self, name: &Arc<str>, post: &Post, now: u64) -> Position {
        let channel = self.channels.entry(name.clone()).or_default();
        let position = channel.push(post, now, &self.epochs);
        if channel.is_heard() {
            let heard = Heard {
                payload: post.payload.clone(),
                offset: position.offset,
                may_be_delta: post.may_be_delta,
            };
            channel.publish(name, &heard);
            if let Across::Owned(nodes) = &channel.across {
                self.outgoing.add(nodes, name, || What::Published(heard.clone()));
            }
        } else {
            channel.base = None;
        }
        if post.version.is_some() {
            channel.version.clone_from(&post.version);
        }
        if let Some(key) = &post.key {
            channel.remember(key.clone(), position, now + KEYS_KEPT_MS);
        }
        position
    }
}
