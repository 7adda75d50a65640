//! Which actors live on this node: named ones by type and key, anonymous ones by serial, in shards.
//!
//! The directory's reference keeps an actor alive. A named actor is removed only together with a check, under the shard's
//! lock, that nobody else holds its cell: so a name never has two cells.

use std::any::TypeId;
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::actor::Actor;
use crate::actor_id::Key;
use crate::cell::{AnyCell, Cell};

/// Enough that threads seldom meet.
const SHARDS: usize = 64;

type Named = HashMap<(TypeId, Key), Arc<dyn AnyCell>>;
type Anonymous = HashMap<u64, Arc<dyn AnyCell>, BuildHasherDefault<SerialHasher>>;

pub(crate) struct Directory {
    named: Vec<Mutex<Named>>,
    anonymous: Vec<Mutex<Anonymous>>,
    hasher: RandomState,
    next_sample: AtomicUsize,
}

impl Directory {
    pub(crate) fn new() -> Self {
        Self {
            named: (0..SHARDS).map(|_| Mutex::default()).collect(),
            anonymous: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            next_sample: AtomicUsize::new(0),
        }
    }

    /// The cell of a name, made by `make` if there is none.
    pub(crate) fn get_or_insert<A: Actor>(
        &self,
        key: &str,
        make: impl FnOnce(Key) -> Cell<A>,
    ) -> Arc<Cell<A>> {
        let mut shard = self.shard_of(TypeId::of::<A>(), key).lock();
        let place = (TypeId::of::<A>(), Key::from(key));
        let cell = shard.entry(place).or_insert_with_key(|place| Arc::new(make(place.1.clone())));
        typed(cell.clone())
    }

    /// Registers a name; `None` if it is taken by an actor that has not stopped.
    pub(crate) fn insert<A: Actor>(&self, key: &Key, cell: Arc<Cell<A>>) -> Option<Arc<Cell<A>>> {
        let mut shard = self.shard_of(TypeId::of::<A>(), key).lock();
        let place = (TypeId::of::<A>(), key.clone());
        if let Some(old) = shard.get(&place)
            && !old.header().mailbox.lock().closed
        {
            return None;
        }
        shard.insert(place, cell.clone());
        Some(cell)
    }

    pub(crate) fn insert_anonymous(&self, cell: Arc<dyn AnyCell>) {
        let serial = cell.header().serial();
        self.anonymous_shard(serial).lock().insert(serial, cell);
    }

    /// Removes a cell that has stopped for good, and only that cell.
    pub(crate) fn forget(&self, cell: &Arc<dyn AnyCell>) {
        let header = cell.header();
        let Some(key) = header.key() else {
            self.anonymous_shard(header.serial()).lock().remove(&header.serial());
            return;
        };
        let type_id = header.kind.type_id;
        let mut shard = self.shard_of(type_id, key).lock();
        let place = (type_id, key.clone());
        if shard.get(&place).is_some_and(|other| Arc::ptr_eq(other, cell)) {
            shard.remove(&place);
        }
    }

    /// Removes sleeping named actors whose address nobody holds; returns how many are left.
    pub(crate) fn sweep_unused(&self) -> usize {
        let mut left = 0;
        for shard in &self.named {
            let mut shard = shard.lock();
            shard.retain(|_, cell| !is_unused(cell));
            left += shard.len();
        }
        left
    }

    /// All cells, cloned shard by shard.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&Arc<dyn AnyCell>)) {
        for shard in &self.named {
            let cells: Vec<_> = shard.lock().values().cloned().collect();
            cells.iter().for_each(&mut visit);
        }
        for shard in &self.anonymous {
            let cells: Vec<_> = shard.lock().values().cloned().collect();
            cells.iter().for_each(&mut visit);
        }
    }

    /// Visits cells shard by shard, from the next shard each time, until at least `cells_min` were visited or there are no more; returns
    /// how many. `visit` runs under a shard's lock and must not come back here.
    pub(crate) fn sample(
        &self,
        cells_min: usize,
        mut visit: impl FnMut(&Arc<dyn AnyCell>),
    ) -> usize {
        let first = self.next_sample.fetch_add(1, Ordering::Relaxed);
        let mut visited = 0;
        for i in 0..SHARDS {
            let shard = first.wrapping_add(i) % SHARDS;
            let named = self.named[shard].lock();
            named.values().for_each(&mut visit);
            visited += named.len();
            drop(named);
            let anonymous = self.anonymous[shard].lock();
            anonymous.values().for_each(&mut visit);
            visited += anonymous.len();
            if visited >= cells_min {
                break;
            }
        }
        visited
    }

    fn shard_of(&self, type_id: TypeId, key: &str) -> &Mutex<Named> {
        let hash = self.hasher.hash_one(Place { type_id, key });
        &self.named[hash as usize % SHARDS]
    }

    fn anonymous_shard(&self, serial: u64) -> &Mutex<Anonymous> {
        &self.anonymous[serial as usize % SHARDS]
    }
}

/// Serials are dense and chosen by us: a multiplication spreads them well enough (Fibonacci hashing; Knuth, TAOCP 6.4).
#[derive(Default)]
struct SerialHasher(u64);

impl Hasher for SerialHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("only serials are hashed")
    }

    fn write_u64(&mut self, serial: u64) {
        self.0 = serial.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[derive(Hash)]
struct Place<'a> {
    type_id: TypeId,
    key: &'a str,
}

fn typed<A: Actor>(cell: Arc<dyn AnyCell>) -> Arc<Cell<A>> {
    cell.into_any().downcast().expect("a place holds cells of its own type")
}

fn is_unused(cell: &Arc<dyn AnyCell>) -> bool {
    // The map's own reference is the one; new ones come from this map only, whose lock we hold.
    if Arc::strong_count(cell) > 1 {
        return false;
    }
    cell.header().mailbox.lock().is_asleep()
}
