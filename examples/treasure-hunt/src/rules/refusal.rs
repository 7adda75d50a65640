//! Why an act is refused: a code for programs, a sentence for people.

use althing::Wire;

use crate::place::ActSeq;

/// Why an act did not happen. Nothing changed, except for `Unavailable`, which may be asked again
/// with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Wire)]
pub enum Refusal {
    /// The number is neither the next one nor the last one.
    #[error("this act must have number {}", .expected.0)]
    WrongSeq {
        /// The number it must have.
        expected: ActSeq,
    },
    /// A move goes one tile at a time.
    #[error("a move leads to a neighbouring tile")]
    TooFar,
    /// Water or rock.
    #[error("nobody can stand there")]
    Blocked,
    /// There is no such tile.
    #[error("that is outside the world")]
    OutsideWorld,
    /// Above the rate.
    #[error("at most {} acts a second, in bursts of {}", super::ACTS_PER_SECOND, super::ACTS_BURST)]
    TooFast,
    /// A hole is there already.
    #[error("there is a hole already")]
    AlreadyDug,
    /// No clue lies there.
    #[error("no clue lies here")]
    NothingHere,
    /// Three clues are carried.
    #[error("hands hold {} clues at most", super::CARRY_MAX)]
    HandsFull,
    /// No clue is carried.
    #[error("no clue is carried")]
    EmptyHanded,
    /// The player belongs to another connection.
    #[error("that player is not played by this connection")]
    NotYours,
    /// The player's last act has no answer yet.
    #[error("one act at a time: wait for the answer to the last one")]
    Busy,
    /// Players cannot do this.
    #[error("players cannot do that")]
    NotAllowed,
    /// No answer in spite of retries.
    #[error("no answer in time; ask again with the same number")]
    Unavailable,
    /// It has left, or never was.
    #[error("there is no such player")]
    NoSuchPlayer,
    /// The secret does not fit.
    #[error("the token is not that player's")]
    WrongToken,
    /// Names are short and readable.
    #[error("a name has 1 to 16 characters and none of them is a control character")]
    BadName,
    /// The connection plays as many as it may.
    #[error("a connection plays at most {} players", crate::limits::SOCKET_PLAYERS_MAX)]
    TooManyPlayers,
    /// The world is full.
    #[error("the world holds at most {} players", crate::limits::WORLD_PLAYERS_MAX)]
    WorldFull,
}

impl Refusal {
    /// The number on the wire.
    pub fn code(self) -> u8 {
        match self {
            Self::WrongSeq { .. } => 1,
            Self::TooFar => 2,
            Self::Blocked => 3,
            Self::OutsideWorld => 4,
            Self::TooFast => 5,
            Self::AlreadyDug => 6,
            Self::NothingHere => 7,
            Self::HandsFull => 8,
            Self::EmptyHanded => 9,
            Self::NotYours => 10,
            Self::Busy => 11,
            Self::NotAllowed => 12,
            Self::Unavailable => 13,
            Self::NoSuchPlayer => 14,
            Self::WrongToken => 15,
            Self::BadName => 16,
            Self::TooManyPlayers => 17,
            Self::WorldFull => 18,
        }
    }
}
