//! Who is in which group, as a step function without clock or network.
//!
//! Each node owns the entries that were made on it, and tells every other one of each change, by
//! links on which nothing is lost or overtaken; to a node that comes it tells all that it has. So two
//! nodes that live and have heard each other out know the same of each other's entries, and with a
//! node that goes its entries go. An actor is in a group for as long as any node says so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use althing::{ActorId, Wire};

/// Entries that a node may make: a node that comes is told all of them at once.
pub(crate) const ENTRIES_MAX: usize = 65_536;

/// A group, by its name and the kind of its actors.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) group: Arc<str>,
    pub(crate) kind: Arc<str>,
}

impl Key {
    pub(crate) fn new(group: &str, kind: &str) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }
}

/// An entry that came or went, as one node tells it to another.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
pub(crate) struct Entry {
    pub(crate) group: Arc<str>,
    pub(crate) actor: ActorId,
    pub(crate) is_member: bool,
}

impl Entry {
    pub(crate) fn key(&self) -> Key {
        Key { group: self.group.clone(), kind: self.actor.kind().as_str().into() }
    }
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Tell {
        to: u64,
        entry: Entry,
    },
    /// It may be another one now whether the actor is a member.
    Changed {
        key: Key,
        actor: ActorId,
    },
    /// A node says more than it may.
    TooMany {
        from: u64,
    },
}

/// This node has as many entries as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

#[derive(Debug, Default, PartialEq, Eq)]
struct Entries {
    of: BTreeMap<Key, BTreeSet<ActorId>>,
    count: usize,
}

impl Entries {
    fn set(&mut self, key: &Key, actor: &ActorId, is_member: bool) -> bool {
        if is_member {
            let is_new = self.of.entry(key.clone()).or_default().insert(actor.clone());
            self.count += usize::from(is_new);
            return is_new;
        }
        let Some(actors) = self.of.get_mut(key) else { return false };
        let was_there = actors.remove(actor);
        self.count -= usize::from(was_there);
        if actors.is_empty() {
            self.of.remove(key);
        }
        was_there
    }

    fn all(&self) -> impl Iterator<Item = (&Key, &ActorId)> {
        self.of.iter().flat_map(|(key, actors)| actors.iter().map(move |actor| (key, actor)))
    }
}

/// All entries that a node knows.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    own: Entries,
    others: BTreeMap<u64, Entries>,
}

impl Roster {
    /// An actor of this node comes or goes.
    ///
    /// # Errors
    /// There are as many as there may be; nothing has changed.
    pub(crate) fn set(
        &mut self,
        key: &Key,
        actor: &ActorId,
        is_member: bool,
    ) -> Result<Vec<Effect>, Full> {
        let is_known = self.own.of.get(key).is_some_and(|actors| actors.contains(actor));
        if is_member && !is_known && self.own.count >= ENTRIES_MAX {
            return Err(Full);
        }
        if !self.own.set(key, actor, is_member) {
            return Ok(Vec::new());
        }
        let entry = Entry { group: key.group.clone(), actor: actor.clone(), is_member };
        let tell = |to: &u64| Effect::Tell { to: *to, entry: entry.clone() };
        let mut effects: Vec<_> = self.others.keys().map(tell).collect();
        effects.push(Effect::Changed { key: key.clone(), actor: actor.clone() });
        Ok(effects)
    }

    /// These are the other members of the cluster.
    pub(crate) fn follow(&mut self, others: &BTreeSet<u64>) -> Vec<Effect> {
        let mut effects = Vec::new();
        let gone: Vec<u64> =
            self.others.keys().filter(|node| !others.contains(node)).copied().collect();
        for gone in gone.iter().filter_map(|node| self.others.remove(node)) {
            let changed = |(key, actor): (&Key, &ActorId)| Effect::Changed {
                key: key.clone(),
                actor: actor.clone(),
            };
            effects.extend(gone.all().map(changed));
        }
        for node in others {
            if self.others.contains_key(node) {
                continue;
            }
            self.others.insert(*node, Entries::default());
            let tell = |(key, actor): (&Key, &ActorId)| {
                let (group, actor) = (key.group.clone(), actor.clone());
                Effect::Tell { to: *node, entry: Entry { group, actor, is_member: true } }
            };
            effects.extend(self.own.all().map(tell));
        }
        effects
    }

    /// Another node has said that; one that is no member any more says nothing.
    pub(crate) fn hear(&mut self, from: u64, entry: &Entry) -> Vec<Effect> {
        let Some(entries) = self.others.get_mut(&from) else { return Vec::new() };
        if entry.is_member && entries.count >= ENTRIES_MAX {
            return vec![Effect::TooMany { from }];
        }
        let key = entry.key();
        match entries.set(&key, &entry.actor, entry.is_member) {
            true => vec![Effect::Changed { key, actor: entry.actor.clone() }],
            false => Vec::new(),
        }
    }

    /// Whether an actor is in a group.
    pub(crate) fn holds(&self, key: &Key, actor: &ActorId) -> bool {
        self.everybody()
            .any(|entries| entries.of.get(key).is_some_and(|actors| actors.contains(actor)))
    }

    /// All actors of a group.
    pub(crate) fn members(&self, key: &Key) -> BTreeSet<ActorId> {
        self.everybody().filter_map(|entries| entries.of.get(key)).flatten().cloned().collect()
    }

    fn everybody(&self) -> impl Iterator<Item = &Entries> {
        std::iter::once(&self.own).chain(self.others.values())
    }
}

#[cfg(test)]
mod tests;
