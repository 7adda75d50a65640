//! Which actors live on this node: named ones by type and key, anonymous ones in slots, in shards.
//!
//! The directory's reference keeps an actor alive. A named actor is removed only together with a
//! check, under the shard's lock, that nobody else holds its place: so a name never has two places.

use std::any::TypeId;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::address::actor_id::Origin;
use crate::address::kind::Kind;
use crate::address::named::{Name, Named};
use crate::address::place::{AnyPlace, Header};
use crate::address::slots::Slots;
use crate::node::env::HashKeys;
use crate::shield::discard_all;

/// Enough that threads seldom meet.
const SHARDS: usize = 64;

pub(crate) struct Directory {
    named: Vec<Mutex<Named>>,
    anonymous: Vec<Mutex<Slots>>,
    hash_keys: HashKeys,
    next_sample: AtomicUsize,
    next_pass: AtomicUsize,
}

impl Directory {
    pub(crate) fn new(hash_keys: HashKeys) -> Self {
        Self {
            named: (0..SHARDS).map(|_| Mutex::default()).collect(),
            anonymous: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hash_keys,
            next_sample: AtomicUsize::new(0),
            next_pass: AtomicUsize::new(0),
        }
    }

    /// The place of a name: `place`, told by `insert` that it will be known, unless there is one.
    pub(crate) fn get_or_insert(
        &self,
        place: &Arc<dyn AnyPlace>,
        insert: impl FnOnce(),
    ) -> Arc<dyn AnyPlace> {
        let name = self.name_of(place.header()).expect("only named places have a name");
        let mut shard = self.shard_of(name).lock();
        if let Some(known) = shard.get(name) {
            return known.clone();
        }
        insert();
        shard.insert(name, place.clone());
        place.clone()
    }

    /// The place of a name, if there is one.
    pub(crate) fn find(&self, kind: &Kind, key: &str) -> Option<Arc<dyn AnyPlace>> {
        self.of_name((kind.name, kind.type_id), key)
    }

    /// As `find`, of a type of that name.
    pub(crate) fn of_name(
        &self,
        of: (&'static str, TypeId),
        key: &str,
    ) -> Option<Arc<dyn AnyPlace>> {
        let name = Name::new(&self.hash_keys, of, key);
        self.shard_of(name).lock().get(name).cloned()
    }

    /// The place of an anonymous actor of this node, if it is there.
    pub(crate) fn anonymous(&self, origin: Origin) -> Option<Arc<dyn AnyPlace>> {
        let serial = origin.absolute();
        let shard = self.anonymous_shard(serial).lock();
        let place = shard.get(origin.slot)?;
        (place.header().serial() == serial).then(|| place.clone())
    }

    /// Registers a named place; `false` if its name is taken by an actor that has not stopped.
    pub(crate) fn insert(&self, place: &Arc<dyn AnyPlace>) -> bool {
        let name = self.name_of(place.header()).expect("only named places have a name");
        let mut shard = self.shard_of(name).lock();
        if let Some(old) = shard.get(name)
            && !old.header().mailbox.lock().has_ended()
        {
            return false;
        }
        let replaced = shard.insert(name, place.clone());
        // Dropped after the lock: the old actor's drop may come back here.
        drop(shard);
        drop(replaced);
        true
    }

    pub(crate) fn insert_anonymous(&self, place: Arc<dyn AnyPlace>) {
        self.anonymous_shard(place.header().serial()).lock().insert(place);
    }

    /// Removes a place that has stopped for good, and only that place.
    pub(crate) fn forget(&self, place: &Arc<dyn AnyPlace>) {
        let header = place.header();
        let Some(name) = self.name_of(header) else {
            let mut shard = self.anonymous_shard(header.serial()).lock();
            // Dropped after the lock: the actor's drop may start others.
            let forgotten = shard.remove(header.slot());
            drop(shard);
            drop(forgotten);
            return;
        };
        let mut shard = self.shard_of(name).lock();
        if shard.get(name).is_some_and(|other| Arc::ptr_eq(other, place)) {
            let forgotten = shard.remove(name);
            // Dropped after the lock, as above.
            drop(shard);
            drop(forgotten);
        }
    }

    /// Visits some of the actors under their shard's lock, and removes sleeping named ones whose
    /// address nobody holds. Goes on where the last call ended, shard by shard, until `places_min`
    /// have been visited.
    pub(crate) fn pass(&self, places_min: usize, mut visit: impl FnMut(&Arc<dyn AnyPlace>)) {
        let mut visited = 0;
        for _ in 0..SHARDS {
            let shard = self.next_pass.fetch_add(1, Ordering::Relaxed) % SHARDS;
            let mut named = self.named[shard].lock();
            visited += named.len();
            let unused = named.extract(|place| {
                visit(place);
                is_unused(place)
            });
            drop(named);
            // After the lock: what an actor keeps beside its state may be foreign.
            discard_all("dropping an address that nobody holds", unused);
            let anonymous = self.anonymous[shard].lock();
            anonymous.iter().for_each(&mut visit);
            visited += anonymous.len();
            if visited >= places_min {
                return;
            }
        }
    }

    /// All places, cloned shard by shard.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&Arc<dyn AnyPlace>)) {
        for shard in &self.named {
            let places: Vec<_> = shard.lock().iter().cloned().collect();
            places.iter().for_each(&mut visit);
        }
        for shard in &self.anonymous {
            let places: Vec<_> = shard.lock().iter().cloned().collect();
            places.iter().for_each(&mut visit);
        }
    }

    /// Visits places shard by shard, from the next shard each time, until at least `places_min`
    /// were visited or there are no more; returns how many. `visit` runs under a shard's lock and
    /// must not come back here.
    pub(crate) fn sample(
        &self,
        places_min: usize,
        mut visit: impl FnMut(&Arc<dyn AnyPlace>),
    ) -> usize {
        let first = self.next_sample.fetch_add(1, Ordering::Relaxed);
        let mut visited = 0;
        for i in 0..SHARDS {
            let shard = first.wrapping_add(i) % SHARDS;
            let named = self.named[shard].lock();
            named.iter().for_each(&mut visit);
            visited += named.len();
            drop(named);
            let anonymous = self.anonymous[shard].lock();
            anonymous.iter().for_each(&mut visit);
            visited += anonymous.len();
            if visited >= places_min {
                break;
            }
        }
        visited
    }

    fn name_of<'a>(&self, header: &'a Header) -> Option<Name<'a>> {
        Name::of(&self.hash_keys, header)
    }

    fn shard_of(&self, name: Name<'_>) -> &Mutex<Named> {
        &self.named[name.shard(SHARDS)]
    }

    fn anonymous_shard(&self, serial: u64) -> &Mutex<Slots> {
        &self.anonymous[serial as usize % SHARDS]
    }
}

/// Whether nobody knows the place any more. From then on a weak address that is upgraded looks the
/// name up again.
fn is_unused(place: &Arc<dyn AnyPlace>) -> bool {
    // The map's own reference is the one; new ones come from this map, whose lock we hold, or from
    // a weak address.
    if Arc::strong_count(place) > 1 {
        return false;
    }
    let mut inner = place.header().mailbox.lock();
    // Who upgraded a weak address before holds a reference now; who does so from here on finds the
    // mark, for which the lock is needed.
    Arc::strong_count(place) == 1 && inner.try_forget()
}
