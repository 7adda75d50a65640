//! What is asked for, what is meant by it, and what came of it.

use super::{Carry, Clue};
use crate::place::{ActSeq, Place, PlayerId};

/// What somebody does. The numbers are those of the log and of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Deed {
    /// Arrives in the world.
    Join = 0,
    /// Steps to a neighbouring tile.
    Move = 1,
    /// Digs where it stands.
    Dig = 2,
    /// Takes up a clue that lies where it stands.
    PickUp = 3,
    /// Puts down the topmost clue; at a camp it is delivered.
    Drop = 4,
    /// Leaves the world; what it carries stays on the ground.
    Leave = 5,
    /// The sea levels a region: holes fill, clues lie elsewhere. Done by the region itself.
    Tide = 6,
}

/// What a client asks a player to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Act {
    /// Who.
    pub player: PlayerId,
    /// One more than the player's last event.
    pub seq: ActSeq,
    /// What.
    pub deed: Deed,
    /// Where to; unchecked.
    pub x: u16,
    /// Where to; unchecked.
    pub y: u16,
}

/// An act that the player's own state allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intent {
    /// What.
    pub deed: Deed,
    /// Who.
    pub player: PlayerId,
    /// Its number.
    pub seq: ActSeq,
    /// Where the player stands.
    pub from: Place,
    /// Where it wants to be; its own place unless it moves.
    pub to: Place,
    /// Its points so far.
    pub score: u32,
    /// What it carries.
    pub carry: Carry,
}

/// Something that happened: one record of the log. Points and carried clues are those after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What.
    pub deed: Deed,
    /// Who; 0 for a tide.
    pub player: PlayerId,
    /// Number of the player's event; of a tide, its number in the region.
    pub seq: ActSeq,
    /// Where from.
    pub from: Place,
    /// Where to; the event belongs to this place's region.
    pub to: Place,
    /// The clue uncovered, taken, dropped or delivered.
    pub clue: Option<Clue>,
    /// Points this event brought, to the player and to the region.
    pub gain: u16,
    /// The player's points after it.
    pub score: u32,
    /// What the player carries after it.
    pub carry: Carry,
}

impl Deed {
    /// The deed of that number.
    pub fn from_number(number: u8) -> Option<Self> {
        const ALL: [Deed; 7] =
            [Deed::Join, Deed::Move, Deed::Dig, Deed::PickUp, Deed::Drop, Deed::Leave, Deed::Tide];
        ALL.get(usize::from(number)).copied()
    }

    /// Whether it can change what lies on or under the ground.
    pub fn touches_ground(self) -> bool {
        matches!(self, Self::Dig | Self::PickUp | Self::Drop | Self::Leave | Self::Tide)
    }
}

impl Intent {
    /// The event of this intent if it brings nothing.
    pub(crate) fn happens(self) -> Event {
        Event {
            deed: self.deed,
            player: self.player,
            seq: self.seq,
            from: self.from,
            to: self.to,
            clue: None,
            gain: 0,
            score: self.score,
            carry: self.carry,
        }
    }
}
