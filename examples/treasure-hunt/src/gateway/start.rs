//! Where new players begin, and secrets nobody can guess.

use crate::map::{CLEARING, has_camp_on_land};
use crate::place::{Place, REGIONS, RegionId};

/// That region, or the next one whose camp is no island of its own.
fn nearest_on_land(seed: u64, region: RegionId) -> RegionId {
    let after = (1..REGIONS).map(|step| (region.number() + step) % REGIONS);
    let mut regions = std::iter::once(region).chain(after.filter_map(RegionId::new));
    regions.find(|region| has_camp_on_land(seed, *region)).unwrap_or(region)
}

/// Somewhere in the inner half of the clearing around the camp of that region, or of the next one
/// with land around it.
pub(crate) fn start_place(seed: u64, near: RegionId, random: u64) -> Place {
    const REACH: u16 = CLEARING / 2;
    let offset =
        |bits: u64| u16::try_from(bits % u64::from(2 * REACH + 1)).expect("a clearing is small");
    let camp = nearest_on_land(seed, near).camp();
    let (dx, dy) = (offset(random >> 8), offset(random >> 24));
    Place::new(camp.x() + dx - REACH, camp.y() + dy - REACH).expect("camps lie inside the world")
}

pub(crate) fn random_region() -> RegionId {
    let number = u16::try_from(random() % u64::from(REGIONS)).expect("below REGIONS");
    RegionId::new(number).expect("below REGIONS")
}

/// A random number nobody can guess: tokens are secrets.
pub(crate) fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    // Keyed by the operating system's randomness, anew for each call but one key per thread:
    // hashing hides it.
    RandomState::new().hash_one(std::time::Instant::now())
}
