//! The map: what the ground is like (`terrain`, from `noise`) and how far it is to the next buried
//! clue (`scent`).
//!
//! All of it follows from the seed alone, is pure, and takes milliseconds of CPU for a region:
//! callers run it on the node's bounded pool, never on the reactor.

mod noise;
mod scent;
mod terrain;

pub use noise::mix;
pub use scent::{Mark, SCENT_FAINTEST, Scent};
pub use terrain::{CLEARING, Ground, Terrain, Tile, has_camp_on_land};
