//! What the relay decided, done: events go on links, what comes goes to the topics of this node.
//!
//! A topic calls its way under its own lock, so nothing here calls a topic while it holds the lock
//! of `Core`.

use std::any::type_name;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use althing::remote::{Arriving, Continuity, Departing, Listening, NotTaken, TopicWay};
use althing::{Epoch, TopicName};

use super::Shared;
use super::routes::{Core, Later};
use crate::link::dial::Link;
use crate::protocol::{Hearing, Item, TopicEvent};
use crate::relay::{Effect, Key, Limit, Relay, TOPICS_MAX};

/// Longest name of a topic that is heard on other nodes: it goes with each event.
const NAME_LEN_MAX: usize = 1_024;

/// Why what other nodes publish does not reach the subscribers of this one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopicError {
    /// The node was built without this member's way, or without `NodeBuilder::event` for this type.
    #[error("topic {topic} stays on its node: no event is registered for {event}")]
    StaysHere {
        /// The topic.
        topic: TopicName,
        /// The type of its events.
        event: &'static str,
    },
    /// The topic's name is too long to leave the node.
    #[error("a topic's name of {len} bytes is longer than {len_max}: it stays on its node")]
    NameTooLong {
        /// Its length in bytes.
        len: usize,
        /// The longest that leaves a node.
        len_max: usize,
    },
    /// Nobody on this node subscribes to it.
    #[error("nobody on this node subscribes to topic {0}")]
    NoSubscriber(TopicName),
    /// That member has not registered such events: its subscribers and publishers of the topic stay
    /// among themselves.
    #[error("node {node} has no event registered as `{event}`")]
    Unregistered {
        /// Its name.
        node: String,
        /// The registered name of the events.
        event: String,
    },
    /// That member remembers as many topics as it can.
    #[error("node {node} remembers {limit} topics already")]
    TooMany {
        /// Its name.
        node: String,
        /// How many it remembers.
        limit: usize,
    },
    /// This node is no member any more.
    #[error("this node is no member any more")]
    Left,
}

impl TopicError {
    /// Of a topic without a way.
    pub(super) fn of_local<T>(topic: &TopicName) -> Self {
        let len = topic.len();
        if len > NAME_LEN_MAX {
            return Self::NameTooLong { len, len_max: NAME_LEN_MAX };
        }
        Self::StaysHere { topic: topic.clone(), event: type_name::<T>() }
    }
}

/// What a topic of this node is to hear.
pub(super) enum News {
    Event(TopicEvent, Continuity),
    Doubt(Key),
    Release(Key, u64),
}

/// The way of one topic.
struct Way {
    shared: Arc<Shared>,
    key: Key,
    limit: Arc<Limit>,
}

/// The way of a topic of this node; `None` if its name is too long.
pub(super) fn open(
    shared: &Arc<Shared>,
    topic: &TopicName,
    event: &'static str,
    replay: usize,
) -> Option<Arc<dyn TopicWay>> {
    if topic.len() > NAME_LEN_MAX {
        tracing::error!(len = topic.len(), "a topic's name is too long to leave its node");
        return None;
    }
    let key = Key { topic: topic.clone(), event: event.into() };
    let limit = shared.core.lock().relay.open(key.clone(), replay);
    Some(Arc::new(Way { shared: shared.clone(), key, limit }))
}

impl Way {
    fn step(&self, step: impl FnOnce(&mut Relay, &BTreeMap<u64, Arc<Link>>) -> Vec<Effect>) {
        let mut core = self.shared.core.lock();
        let Core { relay, links, .. } = &mut *core;
        let effects = step(relay, links);
        // What a node publishes concerns other nodes only.
        core.obey_relay(effects, self.shared.config.frame_len_max, &mut Later::default());
    }
}

impl TopicWay for Way {
    fn len_max(&self) -> Option<usize> {
        self.limit.of_next_event()
    }

    fn publish(&self, event: Departing) {
        self.step(|relay, links| {
            let has_room = |node| links.get(&node).is_some_and(|link| !link.is_crowded());
            relay.publish(&self.key, event, has_room)
        });
    }

    fn listen(&self, listening: Listening) {
        self.step(|relay, _| relay.listen(&self.key, listening));
    }

    fn released(&self, epoch: Epoch) {
        self.step(|relay, _| relay.released(&self.key, epoch.0));
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.shared.core.lock().relay.close(&self.key);
    }
}

impl Core {
    /// Does what the relay decided, as far as that must be done under the lock.
    pub(super) fn obey_relay(&mut self, effects: Vec<Effect>, len_max: usize, later: &mut Later) {
        for effect in effects {
            later.news.push(match effect {
                Effect::Send { to, item } => {
                    self.push(to, item, len_max);
                    continue;
                }
                Effect::Take { event, continuity } => News::Event(event, continuity),
                Effect::Doubt { key } => News::Doubt(key),
                Effect::Release { key, epoch } => News::Release(key, epoch),
            });
        }
    }
}

impl Shared {
    /// Handles what another node sent about topics.
    pub(super) fn handle_topic(self: &Arc<Self>, from: u64, item: Item) {
        let key = |topic, event| Key { topic, event };
        match item {
            Item::Listens { topic, event, session } => {
                let is_known = self.node().is_some_and(|node| node.knows_event(&event));
                self.relay(|relay| relay.listens(from, &key(topic, event), session, is_known));
            }
            Item::Heard { topic, event, session, hearing } => {
                self.core.lock().relay.heard(from, &key(topic, event), session, hearing);
                self.hearing.send_replace(());
            }
            Item::Event(event) => self.relay(|relay| relay.arrive(from, event)),
            Item::Released { topic, event, epoch } => {
                self.relay(|relay| relay.release(&key(topic, event), epoch));
            }
            Item::Drain { topic, event, epoch } => {
                self.relay(|relay| relay.drain(from, &key(topic, event), epoch));
            }
            Item::Drained { topic, event, epoch } => {
                self.relay(|relay| relay.drained(from, &key(topic, event), epoch));
            }
            Item::Quiet => self.relay(|relay| relay.quiet(from)),
            Item::Parcel(_)
            | Item::Marker { .. }
            | Item::Flushed { .. }
            | Item::Closing
            | Item::Closed
            | Item::Group(_)
            | Item::Route { .. }
            | Item::Reply { .. } => {}
        }
    }

    fn relay(self: &Arc<Self>, step: impl FnOnce(&mut Relay) -> Vec<Effect>) {
        let mut later = Later::default();
        let mut core = self.core.lock();
        let effects = step(&mut core.relay);
        core.obey_relay(effects, self.config.frame_len_max, &mut later);
        drop(core);
        self.finish(later);
    }

    pub(super) fn tell_topic(&self, news: News) {
        let Some(node) = self.node() else { return };
        match news {
            News::Event(event, continuity) => {
                let arriving = Arriving { place: event.place(), continuity, body: &event.body };
                match node.take_event(&event.topic, &event.event, arriving) {
                    Ok(()) => {}
                    Err(why @ NotTaken::Late { .. }) => {
                        tracing::debug!(%why, topic = %event.topic, "an event came too late");
                    }
                    Err(why) => {
                        tracing::warn!(%why, topic = %event.topic, "an event was not taken");
                    }
                }
            }
            News::Doubt(key) => node.doubt_topic(&key.topic, &key.event),
            News::Release(key, epoch) => node.release_topic(&key.topic, &key.event, Epoch(epoch)),
        }
    }

    /// Sends a node what it has not got of topics, now that its link has room.
    pub(crate) fn catch_up(&self, node: u64) {
        let mut core = self.core.lock();
        let Some(link) = core.links.get(&node) else { return };
        let room = Cell::new(link.room());
        let has_room = |_| {
            let left = room.get().checked_sub(1);
            room.set(left.unwrap_or(0));
            left.is_some()
        };
        let effects = core.relay.room(node, has_room);
        core.obey_relay(effects, self.config.frame_len_max, &mut Later::default());
    }

    /// Tells all others that this node publishes nothing more.
    pub(super) fn say_that_all_is_published(&self) {
        let mut core = self.core.lock();
        let effects = core.relay.end();
        core.obey_relay(effects, self.config.frame_len_max, &mut Later::default());
    }
}

/// Resolves when all members have heard that this node listens.
pub(super) async fn subscribed(
    shared: &Shared,
    topic: &TopicName,
    event: &'static str,
) -> Result<(), TopicError> {
    let key = Key { topic: topic.clone(), event: event.into() };
    let mut hearing = shared.hearing.subscribe();
    let mut views = shared.view.subscribe();
    let mut state = shared.state.subscribe();
    loop {
        hearing.mark_unchanged();
        views.mark_unchanged();
        if state.borrow_and_update().has_ended() {
            return Err(TopicError::Left);
        }
        if shared.has_been_heard(&key)? {
            return Ok(());
        }
        tokio::select! {
            _ = hearing.changed() => {}
            _ = views.changed() => {}
            _ = state.changed() => {}
        }
    }
}

impl Shared {
    fn has_been_heard(&self, key: &Key) -> Result<bool, TopicError> {
        let core = self.core.lock();
        let Some(hearing) = core.relay.hearing(key) else {
            return Err(TopicError::NoSubscriber(key.topic.clone()));
        };
        let record = core.router.record();
        let name = |node| record.member(node).map_or(String::new(), |member| member.name.clone());
        let mut is_whole = record.member(self.me()).is_some();
        for (node, hearing) in hearing {
            match hearing {
                Some(Hearing::All | Hearing::FromNowOn) => {}
                Some(Hearing::Unregistered) => {
                    let event = key.event.to_string();
                    return Err(TopicError::Unregistered { node: name(node), event });
                }
                Some(Hearing::TooMany) => {
                    return Err(TopicError::TooMany { node: name(node), limit: TOPICS_MAX });
                }
                None => is_whole = false,
            }
        }
        Ok(is_whole)
    }
}
