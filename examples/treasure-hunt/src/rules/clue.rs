//! Clues: where they are buried and what they are worth, from the seed alone.

use crate::map::mix;
use crate::place::Place;

/// Points for uncovering a clue.
pub const DIG_POINTS: u16 = 5;
/// One tile in so many hides a clue.
const TILES_PER_CLUE: u64 = 96;
/// The least and the most a clue is worth at a camp.
const WORTH: std::ops::Range<u64> = 10..50;

/// A clue, named by the tile of the world it was buried under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Clue(pub u32);

impl Clue {
    /// The clue that the ground of `place` hides in the given tide, if it can be dug there at all.
    pub fn buried_at(seed: u64, tide: u16, place: Place) -> Option<Self> {
        let salt = mix(seed ^ u64::from(tide) << 32 ^ u64::from(place.in_world()));
        salt.is_multiple_of(TILES_PER_CLUE).then_some(Self(place.in_world()))
    }

    /// Points for bringing it to a camp.
    pub fn worth(self, seed: u64) -> u16 {
        let spread = WORTH.end - WORTH.start;
        let worth = WORTH.start + mix(seed.rotate_left(17) ^ u64::from(self.0)) % spread;
        u16::try_from(worth).expect("at most 50")
    }
}
