//! What an act comes to, as actors tell each other.

use althing::AskError;

use crate::rules::{Event, Refusal};
use crate::sight::Stamp;

/// The answer to an act.
pub type Settled = Result<Done, Setback>;

/// It happened and is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// What happened.
    pub event: Event,
    /// Whether a clue lies where the player stands now.
    pub shows_clue: bool,
    /// State of the region's marks.
    pub stamp: Stamp,
}

/// It did not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setback {
    /// The rules refuse it.
    Refused(Refusal),
    /// Who asked was not up to date, and has stopped: ask again.
    Stale,
}

impl From<Refusal> for Setback {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Whether asking again can help. It never harms: acts carry their number.
pub fn is_worth_a_retry(error: &AskError) -> bool {
    !matches!(error, AskError::Cycle(_) | AskError::Rejected(..))
}
