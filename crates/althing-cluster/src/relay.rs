//! Which nodes listen to which topics, and what goes to each of them. A step function: no socket,
//! no clock, no lock.
//!
//! A node that has a subscriber says so to every other member, and to each that joins; the last
//! subscriber that goes is said as well. Whoever publishes sends the event straight to the nodes
//! that have said so, once to each, by the same links as messages: so nothing is lost between nodes
//! that both live, and an event does not overtake what its publisher told before. No node has to
//! know a topic for others, and none has to take over when one dies.
//!
//! Publishing does not wait. A node whose link is crowded gets what it missed from the last events
//! that are kept here (`audience`), and a gap in place of the rest.
//!
//! Events of an owner come from one node, those of the next owner perhaps from another one, by
//! another link. So that none of the former are lost when a topic changes hands, the first event of
//! a new owner waits until every other node has said that it sends nothing older (`succession`).
//!
//! Invariant: where an event may be missing before another one, that is taken with
//! `MayLeaveAGap`, or the topic is doubted.

mod audience;
mod limit;
mod succession;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use althing::remote::{Continuity, Departing, Listening};

use self::audience::Audience;
pub(crate) use self::limit::Limit;
use self::succession::Succession;
use crate::protocol::{Hearing, Item, TopicEvent};

/// Topics that a node remembers for others at most; a node that says it listens to more is told so.
/// With names of 50 bytes they take some 200 MB.
pub(crate) const TOPICS_MAX: usize = 1 << 20;

/// Which topic: its name, and the registered name of its events.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) topic: Arc<str>,
    pub(crate) event: Arc<str>,
}

/// What a step asks for.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Put it on the link to that node; before the next step.
    Send { to: u64, item: Item },
    /// Hand it to the topic of this node.
    Take { event: TopicEvent, continuity: Continuity },
    /// Events of the topic may be lost.
    Doubt { key: Key },
    /// The topic's owner of that epoch is no more.
    Release { key: Key, epoch: u64 },
}

/// What a node knows of all topics that somebody of the cluster listens to.
pub(crate) struct Relay {
    /// The other members, and the longest frame that each reads.
    members: BTreeMap<u64, usize>,
    /// Those that have said that they publish nothing more.
    quiet: BTreeSet<u64>,
    topics: BTreeMap<Key, Topic>,
    /// Nodes whose links were crowded, and the topics of which they have not got all.
    behind: BTreeMap<u64, BTreeSet<Key>>,
    /// The longest frame of this node.
    len_max: usize,
    /// How often it has begun to listen to a topic.
    sessions: u64,
}

/// One topic.
#[derive(Default)]
struct Topic {
    /// How often this node's topic is open: once, or twice while one is dropped and made anew.
    handles: usize,
    /// How many of these have subscribers.
    listening: usize,
    /// Which time that is.
    session: u64,
    /// What others have said to that.
    hearing: BTreeMap<u64, Hearing>,
    /// Of these, before whose next event others may have been.
    unheard: BTreeSet<u64>,
    audience: Audience,
    succession: Succession,
}

impl Relay {
    pub(crate) fn new(len_max: usize) -> Self {
        Self {
            members: BTreeMap::new(),
            quiet: BTreeSet::new(),
            topics: BTreeMap::new(),
            behind: BTreeMap::new(),
            len_max,
            sessions: 0,
        }
    }

    /// A topic of this node, which keeps so many events; returns what listening nodes read.
    pub(crate) fn open(&mut self, key: Key, keep: usize) -> Arc<Limit> {
        let topic = self.topics.entry(key).or_default();
        topic.handles += 1;
        topic.audience.keep(keep)
    }

    /// It is no more.
    pub(crate) fn close(&mut self, key: &Key) {
        if let Some(topic) = self.topics.get_mut(key) {
            topic.handles = topic.handles.saturating_sub(1);
        }
        self.forget_if_unused(key);
    }

    /// The first subscriber of this node has come, or the last one has gone.
    pub(crate) fn listen(&mut self, key: &Key, listening: Listening) -> Vec<Effect> {
        let Some(topic) = self.topics.get_mut(key) else { return Vec::new() };
        let was_listening = topic.listening > 0;
        match listening {
            Listening::Begins => topic.listening += 1,
            Listening::Ends => topic.listening = topic.listening.saturating_sub(1),
        }
        let listens = topic.listening > 0;
        if was_listening == listens {
            return Vec::new();
        }
        topic.hearing.clear();
        topic.unheard.clear();
        topic.succession = Succession::default();
        if listens {
            self.sessions += 1;
            topic.session = self.sessions;
        }
        let session = listens.then_some(topic.session);
        let item = |to: &u64| Effect::Send { to: *to, item: listens_item(key, session) };
        self.members.keys().map(item).collect()
    }

    /// An event of this node.
    pub(crate) fn publish(
        &mut self,
        key: &Key,
        event: Departing,
        has_room: impl Fn(u64) -> bool,
    ) -> Vec<Effect> {
        let Some(topic) = self.topics.get_mut(key) else { return Vec::new() };
        if let Some(place) = event.place {
            topic.succession.own(place.epoch.0);
        }
        let mut effects = Vec::new();
        for node in topic.audience.publish(key, event, has_room, &mut effects) {
            self.behind.entry(node).or_default().insert(key.clone());
        }
        effects
    }

    /// The owner of that epoch, on this node, is no more.
    pub(crate) fn released(&self, key: &Key, epoch: u64) -> Vec<Effect> {
        let Some(topic) = self.topics.get(key) else { return Vec::new() };
        let Key { topic: name, event } = key;
        let item = || Item::Released { topic: name.clone(), event: event.clone(), epoch };
        topic.audience.nodes().map(|to| Effect::Send { to, item: item() }).collect()
    }

    /// The link to that node has room again.
    pub(crate) fn room(&mut self, node: u64, has_room: impl Fn(u64) -> bool) -> Vec<Effect> {
        let mut effects = Vec::new();
        let Some(mut keys) = self.behind.remove(&node) else { return effects };
        keys.retain(|key| {
            let topic = self.topics.get_mut(key);
            topic.is_some_and(|topic| {
                topic.audience.catch_up(key, node, &has_room, &mut effects).is_behind()
            })
        });
        if !keys.is_empty() {
            self.behind.insert(node, keys);
        }
        effects
    }

    /// That node says that it listens, or no longer; `is_known` tells whether such events are
    /// registered here.
    pub(crate) fn listens(
        &mut self,
        from: u64,
        key: &Key,
        session: Option<u64>,
        is_known: bool,
    ) -> Vec<Effect> {
        let Some(session) = session else {
            if let Some(topic) = self.topics.get_mut(key) {
                topic.audience.leave(from, self.len_max, &self.members, key);
            }
            if let Some(keys) = self.behind.get_mut(&from) {
                keys.remove(key);
            }
            self.forget_if_unused(key);
            return Vec::new();
        };
        let Key { topic, event } = key.clone();
        let hearing = if !is_known {
            Hearing::Unregistered
        } else if self.topics.len() >= TOPICS_MAX && !self.topics.contains_key(key) {
            Hearing::TooMany
        } else {
            let topic = self.topics.entry(key.clone()).or_default();
            topic.audience.join(from, self.len_max, &self.members, key)
        };
        vec![Effect::Send { to: from, item: Item::Heard { topic, event, session, hearing } }]
    }

    /// That node's answer to that this node listens.
    pub(crate) fn heard(&mut self, from: u64, key: &Key, session: u64, hearing: Hearing) {
        let is_current = |topic: &&mut Topic| topic.listening > 0 && topic.session == session;
        if let Some(topic) = self.topics.get_mut(key).filter(is_current) {
            topic.hearing.insert(from, hearing);
            if hearing == Hearing::FromNowOn {
                topic.unheard.insert(from);
            }
        }
    }

    /// What all others have said to that this node listens; `None` if it does not.
    pub(crate) fn hearing(&self, key: &Key) -> Option<BTreeMap<u64, Option<Hearing>>> {
        let topic = self.topics.get(key).filter(|topic| topic.listening > 0)?;
        let of = |node: &u64| (*node, topic.hearing.get(node).copied());
        Some(self.members.keys().map(of).collect())
    }

    /// An event of another node.
    pub(crate) fn arrive(&mut self, from: u64, mut event: TopicEvent) -> Vec<Effect> {
        let key = event.key();
        match self.topics.get_mut(&key).filter(|topic| topic.hearing.contains_key(&from)) {
            Some(topic) => event.gap |= topic.unheard.remove(&from),
            // It was sent to a subscriber of before.
            None => return Vec::new(),
        }
        self.succeed(&key, |succession, others, effects| {
            succession.arrive(from, &key, event, others, effects);
        })
    }

    /// The owner of that epoch, on another node, is no more.
    pub(crate) fn release(&mut self, key: &Key, epoch: u64) -> Vec<Effect> {
        self.succeed(key, |succession, _, effects| succession.release(key, epoch, effects))
    }

    /// That node wants to know when all has come that this one has published for older owners: now,
    /// because links keep their order. What it has not got for lack of room goes before.
    pub(crate) fn drain(&mut self, from: u64, key: &Key, epoch: u64) -> Vec<Effect> {
        let mut effects = Vec::new();
        if let Some(topic) = self.topics.get_mut(key) {
            topic.audience.catch_up(key, from, |_| true, &mut effects);
        }
        let Key { topic, event } = key.clone();
        effects.push(Effect::Send { to: from, item: Item::Drained { topic, event, epoch } });
        effects
    }

    /// This node publishes nothing more: who has got all is told so.
    pub(crate) fn end(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        for node in self.members.keys().copied().collect::<Vec<_>>() {
            effects.extend(self.room(node, |_| true));
            if !self.behind.contains_key(&node) {
                effects.push(Effect::Send { to: node, item: Item::Quiet });
            }
        }
        effects
    }

    /// From that node nothing comes any more that is older than this epoch.
    pub(crate) fn drained(&mut self, from: u64, key: &Key, epoch: u64) -> Vec<Effect> {
        self.succeed(key, |succession, _, effects| {
            succession.drained(from, key, epoch, effects);
        })
    }

    /// That node publishes nothing more, and all of it has come.
    pub(crate) fn quiet(&mut self, from: u64) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.quiet.insert(from);
        for (key, topic) in &mut self.topics {
            topic.succession.quiet(from, key, &mut effects);
            if topic.unheard.remove(&from) {
                effects.push(Effect::Doubt { key: key.clone() });
            }
        }
        effects
    }

    /// These are the other members now.
    pub(crate) fn follow(&mut self, members: BTreeMap<u64, usize>) -> Vec<Effect> {
        let old = std::mem::replace(&mut self.members, members);
        let mut effects = Vec::new();
        for node in old.keys().filter(|node| !self.members.contains_key(node)) {
            self.behind.remove(node);
            let was_quiet = self.quiet.remove(node);
            for (key, topic) in &mut self.topics {
                topic.hearing.remove(node);
                topic.unheard.remove(node);
                topic.audience.leave(*node, self.len_max, &self.members, key);
                if topic.listening > 0 && !was_quiet {
                    topic.succession.lose(*node, key, &mut effects);
                }
            }
        }
        let unused = |topic: &Topic| topic.is_unused();
        self.topics.retain(|_, topic| !unused(topic));
        for node in self.members.keys().filter(|node| !old.contains_key(node)) {
            let heard = self.topics.iter().filter(|(_, topic)| topic.listening > 0);
            let item = |(key, topic): (&Key, &Topic)| listens_item(key, Some(topic.session));
            effects.extend(heard.map(item).map(|item| Effect::Send { to: *node, item }));
        }
        effects
    }

    fn succeed(
        &mut self,
        key: &Key,
        step: impl FnOnce(&mut Succession, BTreeSet<u64>, &mut Vec<Effect>),
    ) -> Vec<Effect> {
        let mut effects = Vec::new();
        // What comes after the last subscriber has gone is for nobody.
        if let Some(topic) = self.topics.get_mut(key).filter(|topic| topic.listening > 0) {
            let others = self.members.keys().filter(|node| !self.quiet.contains(node));
            step(&mut topic.succession, others.copied().collect(), &mut effects);
        }
        effects
    }

    fn forget_if_unused(&mut self, key: &Key) {
        if self.topics.get(key).is_some_and(Topic::is_unused) {
            self.topics.remove(key);
        }
    }
}

impl Topic {
    fn is_unused(&self) -> bool {
        self.handles == 0 && self.audience.is_empty()
    }
}

fn listens_item(key: &Key, session: Option<u64>) -> Item {
    Item::Listens { topic: key.topic.clone(), event: key.event.clone(), session }
}
