//! Watches and links as the mailboxes of both actors keep them: each under the other's serial, with
//! one number.
//!
//! While others hear of a life's end, its next life may watch and link already, and those who hear
//! of it may have begun another life as well. The numbers tell what belongs to which.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of a watch or a link; later ones are higher, on all nodes of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TieNumber(u64);

impl TieNumber {
    /// Above all others.
    pub(crate) const MAX: Self = Self(u64::MAX);

    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// As it travels to another node and comes back from there.
    pub(crate) fn number(self) -> u64 {
        self.0
    }

    /// As another node gives it back; all are meant by one that knows no numbers.
    pub(crate) fn of_number(number: u64) -> Self {
        if number == 0 { Self::MAX } else { Self(number) }
    }
}

/// A watch or a link, and a reference to the other actor.
#[derive(Clone)]
pub(crate) struct Tie<P> {
    /// The first one with that actor in the life that keeps this; its number may be higher.
    since: TieNumber,
    pub(crate) number: TieNumber,
    pub(crate) other: P,
}

impl<P> Tie<P> {
    pub(crate) fn new(number: TieNumber, other: P) -> Self {
        Self { since: number, number, other }
    }
}

/// By the serials of the others.
pub(crate) type Ties<P> = BTreeMap<u64, Tie<P>>;

/// Adds a tie. One with the same actor takes its number, if that is later: both actors may add one
/// at once.
pub(crate) fn add<P>(ties: &mut Ties<P>, serial: u64, tie: Tie<P>) {
    match ties.entry(serial) {
        Entry::Vacant(place) => _ = place.insert(tie),
        Entry::Occupied(mut known) => {
            let known = known.get_mut();
            known.since = known.since.min(tie.since);
            known.number = known.number.max(tie.number);
        }
    }
}

/// Whether the life that keeps these had that tie with an actor.
pub(crate) fn had<P>(ties: &Ties<P>, serial: u64, number: TieNumber) -> bool {
    ties.get(&serial).is_some_and(|tie| tie.since <= number)
}

/// Takes what there was up to `until`. Of a tie that was renewed later the later part stays.
pub(crate) fn take_until<P: Clone>(ties: &mut Ties<P>, until: TieNumber) -> Ties<P> {
    if ties.values().all(|tie| tie.number <= until) {
        return std::mem::take(ties);
    }
    let mut taken = Ties::new();
    ties.retain(|serial, tie| {
        if tie.since > until {
            return true;
        }
        let number = tie.number.min(until);
        taken.insert(*serial, Tie { since: tie.since, number, other: tie.other.clone() });
        tie.since = tie.number;
        tie.number > until
    });
    taken
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
