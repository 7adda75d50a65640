//! What one player knows of the ground: blocks of marks in the shared arena, given back as a whole.

use crate::arena::{Arena, Epoch, Slot};
use crate::map::Mark;
use crate::place::{BLOCK_TILES, BlockId, Place};

/// Blocks a player remembers; walking on, it forgets all and begins anew, so that long lives pin no
/// old chunks.
pub const BLOCKS_MAX: usize = 6;

/// The marks of a block.
pub type Block = [Mark; BLOCK_TILES];

/// Changes whenever the marks of a region do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp(pub u32);

/// One player's tile cache.
#[derive(Debug)]
pub struct Sight {
    epoch: Epoch<Block>,
    known: Vec<Known>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    block: BlockId,
    slot: Slot,
    stamp: Stamp,
}

impl Sight {
    /// Knows nothing yet.
    pub fn new(arena: &Arena<Block>) -> Self {
        Self { epoch: arena.epoch(), known: Vec::new() }
    }

    /// The mark of a tile, if its block is known.
    pub fn mark(&self, place: Place) -> Option<Mark> {
        let known = self.known.iter().find(|known| known.block == place.block())?;
        self.epoch.get(known.slot).map(|block| block[place.in_block()])
    }

    /// Remembers a block, forgetting all others if there are too many.
    pub fn remember(&mut self, block: BlockId, marks: Block, stamp: Stamp) {
        if self.known.len() >= BLOCKS_MAX || self.known.iter().any(|known| known.block == block) {
            self.forget();
        }
        let slot = self.epoch.keep(marks);
        self.known.reserve_exact(1);
        self.known.push(Known { block, slot, stamp });
    }

    /// Forgets everything if what is known of the place's region is older than `stamp`.
    pub fn renew(&mut self, place: Place, stamp: Stamp) {
        let region = place.region();
        if self.known.iter().any(|known| known.block.region() == region && known.stamp != stamp) {
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.epoch.turn_over();
        self.known.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::{Scent, Terrain};
    use crate::place::RegionId;

    fn place(column: u16) -> Place {
        RegionId::new(0).unwrap().place(column * 16)
    }

    fn marks(block: BlockId) -> Block {
        let terrain = Terrain::generate(1, block.region());
        let scent = Scent::spread(&terrain, [block.region().camp().in_region()]);
        let mut places = block.places();
        std::array::from_fn(|_| Mark::new(&terrain, &scent, places.next().unwrap()))
    }

    #[test]
    fn a_block_is_known_until_the_region_changes() {
        let arena = Arena::new();
        let mut sight = Sight::new(&arena);
        let block = place(1).block();
        assert!(sight.mark(place(1)).is_none());
        sight.remember(block, marks(block), Stamp(4));
        assert_eq!(sight.mark(place(1)), Some(marks(block)[0]));
        sight.renew(place(2), Stamp(4));
        assert!(sight.mark(place(1)).is_some());
        sight.renew(place(2), Stamp(5));
        assert!(sight.mark(place(1)).is_none());
        assert_eq!(arena.usage().blocks, 0);
    }

    #[test]
    fn a_traveller_forgets_and_leaves_nothing_behind() {
        let arena = Arena::new();
        let mut sight = Sight::new(&arena);
        let block = place(0).block();
        for region in RegionId::all().take(50) {
            sight.remember(region.camp().block(), marks(block), Stamp(0));
            assert!(sight.mark(region.camp()).is_some());
            assert!(arena.usage().blocks <= BLOCKS_MAX);
        }
        drop(sight);
        assert_eq!((arena.usage().blocks, arena.usage().epochs), (0, 0));
    }
}
