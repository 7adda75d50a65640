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
use crate::address::kind::{Kind, TypeHasher};
use crate::node::env::HashKeys;

/// Two types of actors of one node that have the same
/// [`Actor::kind_name`](crate::Actor::kind_name). The second one's actors do not start.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{first}` and `{second}` are both called `{name}`")]
pub struct KindTwice {
    /// The name.
    pub name: KindName,
    /// The type that has it.
    pub first: &'static str,
    /// The type that cannot have it, too.
    pub second: &'static str,
}

pub(crate) struct Kinds {
    known: RwLock<Known>,
}

struct Known {
    by_type: HashMap<TypeId, Arc<Kind>, BuildHasherDefault<TypeHasher>>,
    by_name: HashMap<KindName, TypeId, HashKeys>,
}

impl Kinds {
    pub(crate) fn new(keys: HashKeys) -> Self {
        let known = Known { by_type: HashMap::default(), by_name: HashMap::with_hasher(keys) };
        Self { known: RwLock::new(known) }
    }

    pub(crate) fn of_type(&self, type_id: TypeId) -> Option<Arc<Kind>> {
        self.known.read().by_type.get(&type_id).cloned()
    }

    pub(crate) fn of_name(&self, name: &str) -> Option<Arc<Kind>> {
        let known = self.known.read();
        known.by_name.get(name).and_then(|type_id| known.by_type.get(type_id)).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Kind>> {
        self.known.read().by_type.values().cloned().collect()
    }

    /// Adds a kind unless its type is known; returns the one that counts.
    pub(crate) fn add(&self, kind: Kind) -> Arc<Kind> {
        let mut known = self.known.write();
        if let Some(earlier) = known.by_type.get(&kind.type_id) {
            return earlier.clone();
        }
        known.put(kind)
    }

    /// Adds a kind, or puts it in the place of the one of its type.
    pub(crate) fn replace(&self, kind: Kind) -> Arc<Kind> {
        self.known.write().put(kind)
    }

    /// Takes all of them out: they keep their node in memory.
    pub(crate) fn take(&self) -> Vec<Arc<Kind>> {
        let mut known = self.known.write();
        known.by_name.clear();
        let mut kinds: Vec<_> = known.by_type.drain().map(|(_, kind)| kind).collect();
        // In an order of their own: what factories hold is dropped in it.
        kinds.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        kinds
    }

    /// Types whose names are taken.
    pub(crate) fn twice(&self) -> Option<KindTwice> {
        self.known.read().by_type.values().find_map(|kind| kind.twice.clone())
    }
}

impl Known {
    fn put(&mut self, mut kind: Kind) -> Arc<Kind> {
        let owner = *self.by_name.entry(kind.id.clone()).or_insert(kind.type_id);
        if owner != kind.type_id {
            let first = self.by_type.get(&owner).map_or("another type", |first| first.type_name);
            let twice = KindTwice { name: kind.id.clone(), first, second: kind.type_name };
            tracing::error!("{twice}: actors of the second one do not start");
            kind.twice = Some(twice);
        }
        let kind = Arc::new(kind);
        self.by_type.insert(kind.type_id, kind.clone());
        kind
    }
}
