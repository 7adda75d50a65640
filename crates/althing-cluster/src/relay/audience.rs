//! The nodes that listen to one topic, and the last events that this node has published there.
//!
//! Each node gets all events in their order as long as its link has room. One whose link is crowded
//! stays behind; when there is room again it gets what is still kept, and with the first of that
//! the word that some are missing, if they are.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use althing::remote::Departing;

use super::limit::Limit;
use super::{Effect, Key};
use crate::protocol::{Hearing, Item, TopicEvent};

/// What a frame needs besides names and event: numbers, tags and lengths.
const OVERHEAD_LEN_MAX: usize = 128;

/// The nodes that listen to one topic.
#[derive(Default)]
pub(super) struct Audience {
    /// Each with the number of the first event that it has not got, if it has not got all.
    nodes: BTreeMap<u64, Option<u64>>,
    /// The last events, numbered for this node's own use.
    kept: VecDeque<(u64, Arc<Departing>)>,
    keep: usize,
    published: u64,
    /// Whether something was published while nobody listened.
    has_kept_silent: bool,
    limit: Arc<Limit>,
}

/// Whether a node has got everything.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    HasAll,
    IsBehind,
}

impl Progress {
    pub(super) fn is_behind(self) -> bool {
        self == Self::IsBehind
    }
}

impl Audience {
    /// Keeps so many events; returns what all that listen read.
    pub(super) fn keep(&mut self, keep: usize) -> Arc<Limit> {
        self.keep = keep;
        self.limit.clone()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = u64> {
        self.nodes.keys().copied()
    }

    pub(super) fn join(
        &mut self,
        node: u64,
        own_len_max: usize,
        members: &BTreeMap<u64, usize>,
        key: &Key,
    ) -> Hearing {
        self.has_kept_silent |= self.limit.has_kept_silent();
        let has_published = self.published > 0 || self.has_kept_silent;
        self.nodes.insert(node, None);
        self.set_limit(own_len_max, members, key);
        if has_published { Hearing::FromNowOn } else { Hearing::All }
    }

    pub(super) fn leave(
        &mut self,
        node: u64,
        own_len_max: usize,
        members: &BTreeMap<u64, usize>,
        key: &Key,
    ) {
        if self.nodes.remove(&node).is_some() {
            self.set_limit(own_len_max, members, key);
        }
        if self.nodes.is_empty() {
            self.kept.clear();
        }
    }

    fn set_limit(&self, own_len_max: usize, members: &BTreeMap<u64, usize>, key: &Key) {
        let of = |node: &u64| members.get(node).copied().unwrap_or(usize::MAX);
        let frame = self.nodes.keys().map(of).min().map(|least| least.min(own_len_max));
        let overhead = OVERHEAD_LEN_MAX + key.topic.len() + key.event.len();
        self.limit.set(frame.map(|frame| frame.saturating_sub(overhead)));
    }

    /// Sends an event to every node whose link has room; returns the others. `has_room` is asked once
    /// for each event that is sent.
    pub(super) fn publish(
        &mut self,
        key: &Key,
        event: Departing,
        has_room: impl Fn(u64) -> bool,
        effects: &mut Vec<Effect>,
    ) -> Vec<u64> {
        if self.nodes.is_empty() {
            return Vec::new();
        }
        self.published += 1;
        self.kept.push_back((self.published, Arc::new(event)));
        let nodes: Vec<_> = self.nodes().collect();
        let published = self.published;
        let mut behind = nodes;
        behind.retain(|node| {
            self.nodes.entry(*node).or_default().get_or_insert(published);
            self.catch_up(key, *node, &has_room, effects).is_behind()
        });
        // After it was sent, so that a topic that keeps nothing sends it all the same.
        while self.kept.len() > self.keep {
            self.kept.pop_front();
        }
        behind
    }

    /// Sends a node what it has not got, as long as there is room.
    pub(super) fn catch_up(
        &mut self,
        key: &Key,
        node: u64,
        has_room: impl Fn(u64) -> bool,
        effects: &mut Vec<Effect>,
    ) -> Progress {
        let Some(next) = self.nodes.get_mut(&node) else { return Progress::HasAll };
        let Some(mut from) = *next else { return Progress::HasAll };
        let first = self.kept.partition_point(|(number, _)| *number < from);
        for (number, event) in self.kept.range(first..) {
            if !has_room(node) {
                break;
            }
            let item = Item::Event(TopicEvent::new(key, event, *number > from));
            effects.push(Effect::Send { to: node, item });
            from = number + 1;
        }
        let has_all = from > self.published;
        *next = (!has_all).then_some(from);
        if has_all { Progress::HasAll } else { Progress::IsBehind }
    }
}
