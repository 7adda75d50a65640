//! The ground of one region, one byte per tile: three bits of kind, five bits of height.

use super::noise::height;
use crate::place::{Place, REGION_SIDE, REGION_TILES, RegionId};

/// What a tile consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Ground {
    /// Too deep to walk.
    Water = 0,
    /// Beach.
    Sand = 1,
    /// Open land.
    Grass = 2,
    /// Trees; walkable.
    Forest = 3,
    /// Too steep to walk.
    Rock = 4,
}

/// A tile as the page gets it: `kind | height << 3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile(u8);

/// The ground of a region.
#[derive(Debug)]
pub struct Terrain {
    region: RegionId,
    tiles: Box<[u8; REGION_TILES]>,
}

/// Kinds by height, from below.
const LEVELS: [(f32, Ground); 4] =
    [(0.40, Ground::Water), (0.44, Ground::Sand), (0.56, Ground::Grass), (0.66, Ground::Forest)];
/// Every camp stands on a clearing of this radius, so that nobody starts in the sea.
pub const CLEARING: u16 = 4;

impl Tile {
    /// What it consists of.
    pub fn ground(self) -> Ground {
        match self.0 & 7 {
            0 => Ground::Water,
            1 => Ground::Sand,
            2 => Ground::Grass,
            3 => Ground::Forest,
            _ => Ground::Rock,
        }
    }

    /// Whether a player can stand on it.
    pub fn is_passable(self) -> bool {
        !matches!(self.ground(), Ground::Water | Ground::Rock)
    }
}

/// Whether a region's camp stands on land, and not on a clearing in the sea or among rocks. Cheap.
pub fn has_camp_on_land(seed: u64, region: RegionId) -> bool {
    let camp = region.camp();
    Tile(ground_at(seed, camp) as u8).is_passable()
}

impl Terrain {
    /// Computes a region's ground from the seed. Takes milliseconds.
    pub fn generate(seed: u64, region: RegionId) -> Self {
        let mut tiles = Box::new([0; REGION_TILES]);
        for (number, tile) in (0..).zip(tiles.iter_mut()) {
            *tile = tile_at(seed, region.place(number), region.camp());
        }
        Self { region, tiles }
    }

    /// The region.
    pub fn region(&self) -> RegionId {
        self.region
    }

    /// A tile of the region.
    ///
    /// # Panics
    /// If the place is in another region.
    pub fn tile(&self, place: Place) -> Tile {
        assert_eq!(place.region(), self.region, "a terrain knows its own region only");
        Tile(self.tiles[usize::from(place.in_region())])
    }

    /// All tiles, row by row, as the page gets them.
    pub fn bytes(&self) -> &[u8; REGION_TILES] {
        &self.tiles
    }

    /// The tiles that touch the tile `number` and that a player can step onto from it.
    pub(super) fn neighbours(&self, number: u16) -> impl Iterator<Item = u16> {
        let (x, y) = (number % REGION_SIDE, number / REGION_SIDE);
        let columns = x.saturating_sub(1)..=(x + 1).min(REGION_SIDE - 1);
        columns
            .flat_map(move |x| {
                let rows = y.saturating_sub(1)..=(y + 1).min(REGION_SIDE - 1);
                rows.map(move |y| y * REGION_SIDE + x)
            })
            .filter(move |other| *other != number)
            .filter(|other| Tile(self.tiles[usize::from(*other)]).is_passable())
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 31")]
fn tile_at(seed: u64, place: Place, camp: Place) -> u8 {
    let height = height_at(seed, place);
    let is_clearing = place.x().abs_diff(camp.x()).max(place.y().abs_diff(camp.y())) <= CLEARING;
    let ground = if is_clearing { Ground::Grass } else { ground_of(height) };
    ground as u8 | ((height * 31.0) as u8) << 3
}

fn ground_at(seed: u64, place: Place) -> Ground {
    ground_of(height_at(seed, place))
}

fn height_at(seed: u64, place: Place) -> f32 {
    height(seed, f32::from(place.x()), f32::from(place.y()))
}

fn ground_of(height: f32) -> Ground {
    LEVELS.iter().find(|(top, _)| height < *top).map_or(Ground::Rock, |(_, ground)| *ground)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_land_and_another_seed_another() {
        let region = RegionId::new(17).unwrap();
        assert_eq!(Terrain::generate(7, region).bytes(), Terrain::generate(7, region).bytes());
        assert_ne!(Terrain::generate(7, region).bytes(), Terrain::generate(8, region).bytes());
    }

    #[test]
    fn every_camp_can_be_stood_on_and_left() {
        for region in RegionId::all() {
            let terrain = Terrain::generate(7, region);
            assert!(terrain.tile(region.camp()).is_passable());
            assert_eq!(terrain.neighbours(region.camp().in_region()).count(), 8);
        }
    }
}
