//! The kinds of actors that a node knows: by type, and by the name that identities and other nodes
//! use.
//!
//! A name belongs to the type that was seen with it first. Another type of that name is refused
//! when its actors start.

use std::any::TypeId;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::address::actor_id::KindName;
use crate::address::kind::{Kind, KindTwice, TypeHasher};
use crate::address::place::AnyPlace;
use crate::node::env::HashKeys;
use crate::node::shared::Node;

/// Finds the actor of a key.
pub(crate) type Find = fn(&Node, &str) -> Arc<dyn AnyPlace>;

pub(crate) struct Kinds {
    known: RwLock<Known>,
}

struct Known {
    by_type: HashMap<TypeId, Entry, BuildHasherDefault<TypeHasher>>,
    by_name: HashMap<KindName, TypeId, HashKeys>,
}

struct Entry {
    kind: Arc<Kind>,
    find: Find,
}

impl Kinds {
    pub(crate) fn new(keys: HashKeys) -> Self {
        let known = Known { by_type: HashMap::default(), by_name: HashMap::with_hasher(keys) };
        Self { known: RwLock::new(known) }
    }

    pub(crate) fn of_type(&self, type_id: TypeId) -> Option<Arc<Kind>> {
        self.known.read().by_type.get(&type_id).map(|entry| entry.kind.clone())
    }

    pub(crate) fn of_name(&self, name: &str) -> Option<Arc<Kind>> {
        self.known.read().of_name(name).map(|entry| entry.kind.clone())
    }

    /// How an actor of a kind is found by its key.
    pub(crate) fn find_of_name(&self, name: &str) -> Option<Find> {
        self.known.read().of_name(name).map(|entry| entry.find)
    }

    pub(crate) fn all(&self) -> Vec<Arc<Kind>> {
        self.known.read().by_type.values().map(|entry| entry.kind.clone()).collect()
    }

    /// Adds a kind unless its type is known; returns the one that counts.
    pub(crate) fn add(&self, kind: Kind, find: Find) -> Arc<Kind> {
        let mut known = self.known.write();
        if let Some(earlier) = known.by_type.get(&kind.type_id) {
            return earlier.kind.clone();
        }
        let kind = known.put(kind, find);
        drop(known);
        complain(kind)
    }

    /// Adds a kind, or puts it in the place of the one of its type.
    pub(crate) fn replace(&self, kind: Kind, find: Find) -> Arc<Kind> {
        let kind = self.known.write().put(kind, find);
        complain(kind)
    }

    /// Takes all of them out: they keep their node in memory.
    pub(crate) fn take(&self) -> Vec<Arc<Kind>> {
        let mut known = self.known.write();
        known.by_name.clear();
        let mut kinds: Vec<_> = known.by_type.drain().map(|(_, entry)| entry.kind).collect();
        // In an order of their own: what factories hold is dropped in it.
        kinds.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        kinds
    }

    /// Types whose names are taken.
    pub(crate) fn twice(&self) -> Option<KindTwice> {
        self.known.read().by_type.values().find_map(|entry| entry.kind.twice.clone())
    }
}

/// Says so if another type has the name; without the lock, because who hears it is foreign.
fn complain(kind: Arc<Kind>) -> Arc<Kind> {
    if let Some(twice) = &kind.twice {
        tracing::error!("{twice}: actors of the second one do not start");
    }
    kind
}

impl Known {
    fn of_name(&self, name: &str) -> Option<&Entry> {
        self.by_name.get(name).and_then(|type_id| self.by_type.get(type_id))
    }

    fn put(&mut self, mut kind: Kind, find: Find) -> Arc<Kind> {
        let owner = *self.by_name.entry(kind.id.clone()).or_insert(kind.type_id);
        if owner != kind.type_id {
            let first =
                self.by_type.get(&owner).map_or("another type", |first| first.kind.type_name);
            let twice = KindTwice { name: kind.id.clone(), first, second: kind.type_name };
            kind.twice = Some(twice);
        }
        let kind = Arc::new(kind);
        self.by_type.insert(kind.type_id, Entry { kind: kind.clone(), find });
        kind
    }
}
