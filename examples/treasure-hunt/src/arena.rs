//! A bump arena that many owners share, each through an epoch of its own.
//!
//! Blocks are handed out one after the other from the newest chunk, whoever asks. An `Epoch`
//! remembers the chunks it has blocks in; ending it gives all of its blocks back at once, without
//! looking at them, and a chunk is freed when the last epoch in it has ended. So an owner costs its
//! own blocks and not a chunk of its own.
//!
//! Safe by construction: a block is written once, before its slot is known to anybody, and a
//! chunk's count of epochs is the count of its `Arc`. The price of sharing: an epoch that never
//! ends keeps its neighbours' slots of the same chunk, so owners with long lives should turn over
//! (end the epoch and begin a new one) once in a while.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

/// Blocks per chunk: 32 tile blocks are 8 KiB, so that one forgotten epoch pins little.
pub const CHUNK_BLOCKS: usize = 32;

/// The arena; cheap to clone.
#[derive(Debug)]
pub struct Arena<T> {
    shared: Arc<Shared<T>>,
}

#[derive(Debug)]
struct Shared<T> {
    newest: Mutex<Newest<T>>,
    counts: Arc<Counts>,
}

#[derive(Debug)]
struct Newest<T> {
    chunk: Option<Arc<Chunk<T>>>,
    used: usize,
}

#[derive(Debug, Default)]
struct Counts {
    chunks: AtomicUsize,
    epochs: AtomicUsize,
    blocks: AtomicUsize,
}

#[derive(Debug)]
struct Chunk<T> {
    blocks: Box<[OnceLock<T>]>,
    counts: Arc<Counts>,
}

/// One owner's share of the arena, given back as a whole when dropped.
#[derive(Debug)]
pub struct Epoch<T> {
    arena: Arc<Shared<T>>,
    chunks: Vec<Arc<Chunk<T>>>,
    blocks: usize,
}

/// Where a block lies; good for the epoch that returned it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    chunk: u16,
    block: u16,
}

/// What an arena holds at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArenaUse {
    /// Chunks in memory.
    pub chunks: usize,
    /// Epochs that have begun and not ended.
    pub epochs: usize,
    /// Blocks of those epochs.
    pub blocks: usize,
}

impl<T> Arena<T> {
    /// An arena without chunks.
    pub fn new() -> Self {
        let newest = Mutex::new(Newest { chunk: None, used: 0 });
        Self { shared: Arc::new(Shared { newest, counts: Arc::default() }) }
    }

    /// Begins an epoch. It costs nothing until it keeps a block.
    pub fn epoch(&self) -> Epoch<T> {
        self.shared.counts.epochs.fetch_add(1, Ordering::Relaxed);
        Epoch { arena: self.shared.clone(), chunks: Vec::new(), blocks: 0 }
    }

    /// What it holds.
    pub fn usage(&self) -> ArenaUse {
        let counts = &self.shared.counts;
        ArenaUse {
            chunks: counts.chunks.load(Ordering::Relaxed),
            epochs: counts.epochs.load(Ordering::Relaxed),
            blocks: counts.blocks.load(Ordering::Relaxed),
        }
    }
}

impl<T> Shared<T> {
    /// The next free slot, in a new chunk if the newest is full.
    fn bump(&self) -> (Arc<Chunk<T>>, usize) {
        let mut newest = self.newest.lock();
        let chunk = match &newest.chunk {
            Some(chunk) => chunk.clone(),
            None => {
                newest.used = 0;
                newest.chunk.insert(Arc::new(Chunk::new(self.counts.clone()))).clone()
            }
        };
        let block = newest.used;
        newest.used += 1;
        if newest.used == CHUNK_BLOCKS {
            // Full: from now on its epochs alone keep it.
            newest.chunk = None;
        }
        (chunk, block)
    }
}

impl<T> Chunk<T> {
    fn new(counts: Arc<Counts>) -> Self {
        counts.chunks.fetch_add(1, Ordering::Relaxed);
        Self { blocks: (0..CHUNK_BLOCKS).map(|_| OnceLock::new()).collect(), counts }
    }
}

impl<T> Drop for Chunk<T> {
    fn drop(&mut self) {
        self.counts.chunks.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T> Epoch<T> {
    /// Keeps a block until the epoch ends.
    ///
    /// # Panics
    /// If the epoch has blocks in more than 65,536 chunks: it should have been ended long ago.
    pub fn keep(&mut self, block: T) -> Slot {
        let (chunk, index) = self.arena.bump();
        let is_written = chunk.blocks[index].set(block).is_ok();
        assert!(is_written, "a slot is handed out once");
        self.blocks += 1;
        self.arena.counts.blocks.fetch_add(1, Ordering::Relaxed);
        let known = self.chunks.iter().rposition(|other| Arc::ptr_eq(other, &chunk));
        let place = known.unwrap_or_else(|| {
            self.chunks.push(chunk);
            self.chunks.len() - 1
        });
        Slot {
            chunk: u16::try_from(place).expect("an epoch has few chunks"),
            block: u16::try_from(index).expect("a chunk has few blocks"),
        }
    }

    /// The block in a slot of this epoch; `None` for a slot of another.
    pub fn get(&self, slot: Slot) -> Option<&T> {
        self.chunks.get(usize::from(slot.chunk))?.blocks.get(usize::from(slot.block))?.get()
    }

    /// Ends this epoch and begins a new one: all slots are void.
    pub fn turn_over(&mut self) {
        self.arena.counts.blocks.fetch_sub(self.blocks, Ordering::Relaxed);
        self.blocks = 0;
        // Not `clear`: an idle owner should not keep the list's memory either.
        self.chunks = Vec::new();
    }
}

impl<T> Drop for Epoch<T> {
    fn drop(&mut self) {
        self.turn_over();
        self.arena.counts.epochs.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T> Clone for Arena<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn owners_share_a_chunk_and_the_last_one_frees_it() {
        let arena = Arena::new();
        let mut epochs: Vec<_> = (0..CHUNK_BLOCKS).map(|_| arena.epoch()).collect();
        for (value, epoch) in epochs.iter_mut().enumerate() {
            epoch.keep(value);
        }
        assert_eq!(
            arena.usage(),
            ArenaUse { chunks: 1, epochs: CHUNK_BLOCKS, blocks: CHUNK_BLOCKS }
        );
        let last = epochs.pop().unwrap();
        drop(epochs);
        assert_eq!(arena.usage(), ArenaUse { chunks: 1, epochs: 1, blocks: 1 });
        drop(last);
        assert_eq!(arena.usage(), ArenaUse { chunks: 0, epochs: 0, blocks: 0 });
    }

    #[test]
    fn a_thousand_small_owners_cost_their_blocks_and_not_a_chunk_each() {
        let arena = Arena::new();
        let epochs: Vec<_> = (0..1_000)
            .map(|value| {
                let mut epoch = arena.epoch();
                epoch.keep(value);
                epoch
            })
            .collect();
        assert_eq!(arena.usage().chunks, 1_000_usize.div_ceil(CHUNK_BLOCKS));
        drop(epochs);
        // The newest chunk is still being filled.
        assert_eq!(arena.usage(), ArenaUse { chunks: 1, epochs: 0, blocks: 0 });
    }

    #[test]
    fn threads_that_share_an_arena_read_back_what_they_wrote() {
        let arena = Arena::new();
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let arena = arena.clone();
                scope.spawn(move || {
                    for round in 0..200 {
                        let mut epoch = arena.epoch();
                        let slots: Vec<_> =
                            (0..20).map(|n| epoch.keep((thread, round, n))).collect();
                        for (n, slot) in (0..).zip(slots) {
                            assert_eq!(epoch.get(slot), Some(&(thread, round, n)));
                        }
                    }
                });
            }
        });
        assert_eq!((arena.usage().epochs, arena.usage().blocks), (0, 0));
        assert!(arena.usage().chunks <= 1);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Keep(usize, u32),
        TurnOver(usize),
        Leave(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            8 => (0_usize..6, any::<u32>()).prop_map(|(who, value)| Step::Keep(who, value)),
            1 => (0_usize..6).prop_map(Step::TurnOver),
            1 => (0_usize..6).prop_map(Step::Leave),
        ];
        proptest::collection::vec(step, 0..300)
    }

    proptest! {
        #[test]
        fn every_epoch_reads_its_own_blocks_whoever_comes_and_goes(steps in steps()) {
            let arena = Arena::new();
            let mut owners: Vec<_> = (0..6).map(|_| (arena.epoch(), Vec::new())).collect();
            for step in steps {
                match step {
                    Step::Keep(who, value) => {
                        let slot = owners[who].0.keep(value);
                        owners[who].1.push((slot, value));
                    }
                    Step::TurnOver(who) => {
                        owners[who].0.turn_over();
                        owners[who].1.clear();
                    }
                    Step::Leave(who) => owners[who] = (arena.epoch(), Vec::new()),
                }
                for (epoch, kept) in &owners {
                    for (slot, value) in kept {
                        prop_assert_eq!(epoch.get(*slot), Some(value));
                    }
                }
                let kept: usize = owners.iter().map(|(_, kept)| kept.len()).sum();
                prop_assert_eq!(arena.usage().blocks, kept);
                // Each block keeps at most its own chunk; one more is being filled.
                prop_assert!(arena.usage().chunks <= kept + 1);
            }
        }
    }
}
