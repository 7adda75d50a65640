//! Where things are: tiles, regions, blocks, and the ids of players.
//!
//! The world is a square of `WORLD_SIDE` tiles, cut into regions of `REGION_SIDE` and blocks of
//! `BLOCK_SIDE`. A `Place` is always inside the world: `Place::new` refuses anything else, so that
//! nothing behind it checks again.

use althing::Wire;

/// Tiles along one side of the world.
pub const WORLD_SIDE: u16 = 1_024;
/// Tiles along one side of a region: what one actor orders and scores.
pub const REGION_SIDE: u16 = 64;
/// Tiles along one side of a block: what a player's tile cache holds at a time.
pub const BLOCK_SIDE: u16 = 16;
/// Regions along one side of the world.
pub const REGIONS_PER_SIDE: u16 = WORLD_SIDE / REGION_SIDE;
/// Regions of the world.
pub const REGIONS: u16 = REGIONS_PER_SIDE * REGIONS_PER_SIDE;
/// Tiles of a region.
pub const REGION_TILES: usize = REGION_SIDE as usize * REGION_SIDE as usize;
/// Tiles of a block.
pub const BLOCK_TILES: usize = BLOCK_SIDE as usize * BLOCK_SIDE as usize;
/// How far a player sees, in tiles to each side; below half a region, so that at most four regions
/// are in view.
pub const VIEW_RADIUS: u16 = 20;

/// Names a player for as long as the log exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PlayerId(pub u32);

/// Numbers the events of one player, from 1 (its arrival), without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Wire)]
pub struct ActSeq(pub u32);

/// A region, row by row from the north-west.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegionId(u16);

/// A block, row by row from the north-west.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockId(u16);

/// A tile of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    x: u16,
    y: u16,
}

impl ActSeq {
    /// The number after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl Place {
    /// The tile at those coordinates, if the world has it.
    pub fn new(x: u16, y: u16) -> Option<Self> {
        (x < WORLD_SIDE && y < WORLD_SIDE).then_some(Self { x, y })
    }

    /// Tiles from the western edge.
    pub fn x(self) -> u16 {
        self.x
    }

    /// Tiles from the northern edge.
    pub fn y(self) -> u16 {
        self.y
    }

    /// The region it lies in.
    pub fn region(self) -> RegionId {
        RegionId(self.y / REGION_SIDE * REGIONS_PER_SIDE + self.x / REGION_SIDE)
    }

    /// The block it lies in.
    pub fn block(self) -> BlockId {
        BlockId(self.y / BLOCK_SIDE * (WORLD_SIDE / BLOCK_SIDE) + self.x / BLOCK_SIDE)
    }

    /// Its number in the row-by-row order of its region.
    pub fn in_region(self) -> u16 {
        self.y % REGION_SIDE * REGION_SIDE + self.x % REGION_SIDE
    }

    /// Its index in the row-by-row order of its block.
    pub fn in_block(self) -> usize {
        usize::from(self.y % BLOCK_SIDE * BLOCK_SIDE + self.x % BLOCK_SIDE)
    }

    /// Its number in the row-by-row order of the world.
    pub fn in_world(self) -> u32 {
        u32::from(self.y) * u32::from(WORLD_SIDE) + u32::from(self.x)
    }

    /// Whether one step, straight or diagonal, leads there.
    pub fn is_step_to(self, other: Self) -> bool {
        self != other && self.x.abs_diff(other.x) <= 1 && self.y.abs_diff(other.y) <= 1
    }

    /// The regions that someone here sees: one, two or four.
    pub fn regions_in_view(self) -> RegionsInView {
        let column = |x: u16| x.min(WORLD_SIDE - 1) / REGION_SIDE;
        let (west, east) =
            (column(self.x.saturating_sub(VIEW_RADIUS)), column(self.x + VIEW_RADIUS));
        let (north, south) =
            (column(self.y.saturating_sub(VIEW_RADIUS)), column(self.y + VIEW_RADIUS));
        RegionsInView { west, east, north, south }
    }
}

/// A rectangle of regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionsInView {
    west: u16,
    east: u16,
    north: u16,
    south: u16,
}

impl RegionsInView {
    /// All regions of the world.
    pub fn all() -> Self {
        Self { west: 0, east: REGIONS_PER_SIDE - 1, north: 0, south: REGIONS_PER_SIDE - 1 }
    }

    /// The regions, row by row.
    pub fn iter(self) -> impl Iterator<Item = RegionId> {
        (self.north..=self.south).flat_map(move |row| {
            (self.west..=self.east).map(move |column| RegionId(row * REGIONS_PER_SIDE + column))
        })
    }
}

impl RegionId {
    /// The region of that number, if there is one.
    pub fn new(number: u16) -> Option<Self> {
        (number < REGIONS).then_some(Self(number))
    }

    /// Its number.
    pub fn number(self) -> u16 {
        self.0
    }

    /// Its index in a list of all regions.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// All regions.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..REGIONS).map(Self)
    }

    /// The tile of that number in the row-by-row order of the region.
    ///
    /// # Panics
    /// If the region has no such tile.
    pub fn place(self, in_region: u16) -> Place {
        assert!(usize::from(in_region) < REGION_TILES, "a region has {REGION_TILES} tiles");
        let (west, north) = (self.0 % REGIONS_PER_SIDE, self.0 / REGIONS_PER_SIDE);
        Place {
            x: west * REGION_SIDE + in_region % REGION_SIDE,
            y: north * REGION_SIDE + in_region / REGION_SIDE,
        }
    }

    /// Where its players start and where they bring clues to.
    pub fn camp(self) -> Place {
        self.place(REGION_SIDE / 2 * REGION_SIDE + REGION_SIDE / 2)
    }
}

impl BlockId {
    /// The region it lies in.
    pub fn region(self) -> RegionId {
        self.corner().region()
    }

    /// Its north-western tile.
    pub fn corner(self) -> Place {
        let per_row = WORLD_SIDE / BLOCK_SIDE;
        Place { x: self.0 % per_row * BLOCK_SIDE, y: self.0 / per_row * BLOCK_SIDE }
    }

    /// Its tiles, row by row.
    pub fn places(self) -> impl Iterator<Item = Place> {
        let Place { x, y } = self.corner();
        (y..y + BLOCK_SIDE).flat_map(move |y| (x..x + BLOCK_SIDE).map(move |x| Place { x, y }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_place_is_found_again_in_its_region_and_its_block(x in 0..WORLD_SIDE, y in 0..WORLD_SIDE) {
            let place = Place::new(x, y).unwrap();
            prop_assert_eq!(place.region().place(place.in_region()), place);
            prop_assert_eq!(place.block().places().nth(place.in_block()), Some(place));
            prop_assert_eq!(place.block().region(), place.region());
            prop_assert!(place.regions_in_view().iter().any(|region| region == place.region()));
            prop_assert!(place.regions_in_view().iter().count() <= 4);
        }
    }

    #[test]
    fn nothing_lies_outside_the_world() {
        assert!(Place::new(WORLD_SIDE, 0).is_none());
        assert!(Place::new(0, WORLD_SIDE).is_none());
        assert!(RegionId::new(REGIONS).is_none());
    }
}
