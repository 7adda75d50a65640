//! Watches and links as the mailboxes of both actors keep them: each under the other's serial, with
//! one number.
//!
//! While others hear of a life's end, the next life may watch and link already. The number tells
//! its ties from those that the end takes back.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of a watch or a link; later ones are higher, on all nodes of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TieNumber(u64);

impl TieNumber {
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A watch or a link, and a reference to the other actor.
#[derive(Clone)]
pub(crate) struct Tie<P> {
    pub(crate) number: TieNumber,
    pub(crate) other: P,
}

/// By the serials of the others.
pub(crate) type Ties<P> = BTreeMap<u64, Tie<P>>;

/// Adds a tie. Of two with the same actor the later one stays: both actors may add one at once.
pub(crate) fn add<P>(ties: &mut Ties<P>, serial: u64, tie: Tie<P>) {
    if ties.get(&serial).is_none_or(|known| known.number < tie.number) {
        // One that is replaced leads to the same actor: no last reference goes.
        ties.insert(serial, tie);
    }
}

/// Removes the tie with an actor, unless it is later than `number`.
pub(crate) fn remove_until<P>(
    ties: &mut Ties<P>,
    serial: u64,
    number: TieNumber,
) -> Option<Tie<P>> {
    ties.get(&serial).filter(|tie| tie.number <= number)?;
    ties.remove(&serial)
}
