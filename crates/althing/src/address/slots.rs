//! Anonymous actors by number, and which numbers are free.
//!
//! In blocks: a vector that grows leaves half as much memory behind as its places take, and they
//! are moved under its shard's lock.

use std::sync::Arc;

use crate::address::place::AnyPlace;

/// Places in a block: a kibibyte.
const BLOCK_LEN: usize = 64;

type Block = Box<[Option<Arc<dyn AnyPlace>>]>;

/// Places by slot; a place knows its own.
#[derive(Default)]
pub(super) struct Slots {
    blocks: Vec<Block>,
    /// Slots that have been given out so far.
    len: usize,
    free: Vec<u32>,
}

impl Slots {
    /// Slots that have been given out so far.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Arc<dyn AnyPlace>> {
        let slot = slot as usize;
        self.blocks.get(slot / BLOCK_LEN)?[slot % BLOCK_LEN].as_ref()
    }

    /// Keeps a place, which is told its slot.
    pub(super) fn insert(&mut self, place: Arc<dyn AnyPlace>) {
        let slot = self.free.pop().unwrap_or_else(|| {
            if self.len == self.blocks.len() * BLOCK_LEN {
                self.blocks.push(vec![None; BLOCK_LEN].into());
            }
            self.len += 1;
            u32::try_from(self.len - 1).expect("fewer than 2^29 actors a shard")
        });
        place.header().set_slot(slot);
        self.blocks[slot as usize / BLOCK_LEN][slot as usize % BLOCK_LEN] = Some(place);
    }

    /// Gives a slot up that holds a place.
    pub(super) fn remove(&mut self, slot: u32) -> Option<Arc<dyn AnyPlace>> {
        let place = self.blocks[slot as usize / BLOCK_LEN][slot as usize % BLOCK_LEN].take();
        self.free.push(slot);
        place
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<dyn AnyPlace>> {
        self.blocks.iter().flat_map(|block| block.iter()).flatten()
    }
}
