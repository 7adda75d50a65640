//! Walking distance from each tile of a region to the nearest clue still buried: breadth first from
//! all clues at once.

use std::collections::VecDeque;

use super::terrain::Terrain;
use crate::place::{Place, REGION_TILES};

/// Distance from which a clue cannot be smelled; also where no path leads.
pub const SCENT_FAINTEST: u8 = 63;

/// Distances of a region's tiles, in steps.
#[derive(Debug)]
pub struct Scent {
    steps: Box<[u8; REGION_TILES]>,
}

/// What a player knows of a tile, in one byte: the scent, and whether it can stand there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u8);

const PASSABLE: u8 = 0x80;

impl Mark {
    /// The mark of a tile.
    pub fn new(terrain: &Terrain, scent: &Scent, place: Place) -> Self {
        let passable = if terrain.tile(place).is_passable() { PASSABLE } else { 0 };
        Self(scent.at(place) | passable)
    }

    /// Whether a player can stand there.
    pub fn is_passable(self) -> bool {
        self.0 & PASSABLE != 0
    }

    /// Steps to the nearest buried clue, at most `SCENT_FAINTEST`.
    pub fn scent(self) -> u8 {
        self.0 & SCENT_FAINTEST
    }
}

impl Scent {
    /// Computes the distances to `buried` (numbers of tiles). Visits each tile once.
    pub fn spread(terrain: &Terrain, buried: impl IntoIterator<Item = u16>) -> Self {
        let mut steps = Box::new([SCENT_FAINTEST; REGION_TILES]);
        let mut edge = VecDeque::new();
        for number in buried {
            steps[usize::from(number)] = 0;
            edge.push_back(number);
        }
        while let Some(number) = edge.pop_front() {
            let next = steps[usize::from(number)] + 1;
            if next == SCENT_FAINTEST {
                continue;
            }
            for other in terrain.neighbours(number) {
                if steps[usize::from(other)] > next {
                    steps[usize::from(other)] = next;
                    edge.push_back(other);
                }
            }
        }
        Self { steps }
    }

    /// Steps from that place to the nearest buried clue.
    pub fn at(&self, place: Place) -> u8 {
        self.steps[usize::from(place.in_region())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::RegionId;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn each_step_changes_the_distance_by_at_most_one(seed: u64, offset in 0_u16..3) {
            let region = RegionId::new(40).unwrap();
            let terrain = Terrain::generate(seed, region);
            let source = region.camp().in_region() + offset;
            let scent = Scent::spread(&terrain, [source]);
            prop_assert_eq!(scent.at(region.place(source)), 0);
            for number in (0..).take(REGION_TILES) {
                let here = scent.at(region.place(number));
                if !terrain.tile(region.place(number)).is_passable() {
                    prop_assert_eq!(here, SCENT_FAINTEST);
                    continue;
                }
                for other in terrain.neighbours(number) {
                    prop_assert!(scent.at(region.place(other)).abs_diff(here) <= 1);
                }
                let nearest = terrain.neighbours(number).map(|other| scent.at(region.place(other))).min();
                if here > 0 && here < SCENT_FAINTEST {
                    prop_assert_eq!(nearest, Some(here - 1));
                }
            }
        }
    }
}
