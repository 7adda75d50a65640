//! The rules of the game as values: no actor, no clock, no I/O.
//!
//! A player asks for an `Act`; `Player::intend` turns it into an `Intent` or a `Refusal`;
//! `Region::decide` turns that into an `Event`; whoever applies the same events in the same order
//! gets the same state.

mod carry;
mod clue;
mod event;
mod player;
mod refusal;
mod region;

pub use carry::{CARRY_MAX, Carry};
pub use clue::{Clue, DIG_POINTS};
pub use event::{Act, Deed, Event, Intent};
pub use player::{ACTS_BURST, ACTS_PER_SECOND, Player};
pub use refusal::Refusal;
pub use region::{Region, RegionImage};
