//! Named actors by type and key.
//!
//! The set keeps a place and its name's hash: the name is the place's own, so it is not kept twice,
//! and a set that grows looks into no place.

use std::any::TypeId;
use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;

use crate::address::kind::TypeHasher;
use crate::address::place::{AnyPlace, Header};
use crate::node::env::HashKeys;

/// What an actor is found by.
#[derive(Clone, Copy)]
pub(super) struct Name<'a> {
    type_id: TypeId,
    key: &'a str,
    hash: u64,
}

/// Places by their names.
#[derive(Default)]
pub(super) struct Named {
    places: HashSet<Entry, BuildHasherDefault<TypeHasher>>,
}

struct Entry {
    hash: u64,
    place: Arc<dyn AnyPlace>,
}

/// An entry, or the name that it is sought by.
trait Nameable {
    fn name(&self) -> Name<'_>;
}

impl<'a> Name<'a> {
    /// The key of an actor of that type, which is called `name`.
    pub(super) fn new(
        keys: &HashKeys,
        (name, type_id): (&'static str, TypeId),
        key: &'a str,
    ) -> Self {
        // Not by the type's id, which is another one in each build: a simulation's seed would mean
        // another order then.
        Self { type_id, key, hash: keys.hash_one((name, key)) }
    }

    /// The name of a named actor.
    pub(super) fn of(keys: &HashKeys, header: &'a Header) -> Option<Self> {
        let kind = &header.kind;
        Some(Self::new(keys, (kind.name, kind.type_id), header.key()?))
    }

    /// Which of so many shards it belongs to; not by the bits by which sets go.
    pub(super) fn shard(self, shards: usize) -> usize {
        (self.hash >> 32) as usize % shards
    }
}

impl Named {
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn get(&self, name: Name<'_>) -> Option<&Arc<dyn AnyPlace>> {
        self.places.get(&name as &dyn Nameable).map(|entry| &entry.place)
    }

    /// Keeps a place of that name; returns the one that had it.
    pub(super) fn insert(
        &mut self,
        name: Name<'_>,
        place: Arc<dyn AnyPlace>,
    ) -> Option<Arc<dyn AnyPlace>> {
        self.places.replace(Entry { hash: name.hash, place }).map(|entry| entry.place)
    }

    pub(super) fn remove(&mut self, name: Name<'_>) -> Option<Arc<dyn AnyPlace>> {
        self.places.take(&name as &dyn Nameable).map(|entry| entry.place)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<dyn AnyPlace>> {
        self.places.iter().map(|entry| &entry.place)
    }

    /// Takes the places out for which `is_wanted` says so.
    pub(super) fn extract(
        &mut self,
        mut is_wanted: impl FnMut(&Arc<dyn AnyPlace>) -> bool,
    ) -> Vec<Arc<dyn AnyPlace>> {
        let entries = self.places.extract_if(|entry| is_wanted(&entry.place));
        entries.map(|entry| entry.place).collect()
    }
}

impl Nameable for Entry {
    fn name(&self) -> Name<'_> {
        let header = self.place.header();
        let key = header.key().expect("only named places are kept by name");
        Name { type_id: header.kind.type_id, key, hash: self.hash }
    }
}

impl Nameable for Name<'_> {
    fn name(&self) -> Name<'_> {
        *self
    }
}

impl PartialEq for Name<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.key == other.key && self.type_id == other.type_id
    }
}

impl<'a> Borrow<dyn Nameable + 'a> for Entry {
    fn borrow(&self) -> &(dyn Nameable + 'a) {
        self
    }
}

impl PartialEq for dyn Nameable + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for dyn Nameable + '_ {}

impl Hash for dyn Nameable + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.name().hash);
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Entry {}

impl Hash for Entry {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}
