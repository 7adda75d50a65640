//! The newest publications of a room or user, for clients that missed a little.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Place, Publication};
use crate::storage::Offset;

/// Publications in offset order without gaps, at most `len_max`.
#[derive(Debug)]
pub(crate) struct Tail {
    publications: VecDeque<Arc<Publication>>,
    len_max: usize,
    /// The last offset published; those before memory began included.
    last: Offset,
}

impl Tail {
    /// Empty, after everything up to `last`.
    pub(crate) fn new(last: Offset, len_max: usize) -> Self {
        Self { publications: VecDeque::new(), len_max, last }
    }

    /// The last publications of a stream that ends at `last`, oldest first.
    pub(crate) fn ending(
        last: Offset,
        len_max: usize,
        publications: impl ExactSizeIterator<Item = Publication>,
    ) -> Self {
        let first = last.as_u64().saturating_sub(publications.len() as u64);
        let mut tail = Self::new(Offset::from_u64(first), len_max);
        publications.for_each(|publication| tail.push(Arc::new(publication)));
        tail
    }

    pub(crate) fn last(&self) -> Offset {
        self.last
    }

    pub(crate) fn push(&mut self, publication: Arc<Publication>) {
        let Place::At(offset) = publication.place else { return };
        debug_assert_eq!(offset, self.last.next(), "a publication was skipped");
        self.last = offset;
        if self.publications.len() == self.len_max {
            self.publications.pop_front();
        }
        self.publications.push_back(publication);
    }

    /// Changes the events in memory that hold what must not be shown any more; `change` says
    /// whether it has changed one.
    pub(crate) fn redact<E>(&mut self, mut change: impl FnMut(&mut E) -> bool)
    where
        E: serde::de::DeserializeOwned + serde::Serialize,
    {
        for publication in &mut self.publications {
            let Some(mut event) = publication.event::<E>() else { continue };
            if change(&mut event) {
                *publication = Arc::new(publication.with_event(&event));
            }
        }
    }

    /// Forgets the events up to the last one of those that are gone.
    pub(crate) fn forget<E: serde::de::DeserializeOwned>(&mut self, is_gone: impl Fn(&E) -> bool) {
        let is_gone = |publication: &Arc<Publication>| {
            publication.event::<E>().is_some_and(|event| is_gone(&event))
        };
        if let Some(last) = self.publications.iter().rposition(is_gone) {
            self.publications.drain(..=last);
        }
    }

    /// All after `since`, or `None` if memory does not reach back so far.
    pub(crate) fn after(&self, since: Offset) -> Option<Vec<Arc<Publication>>> {
        let missed = self.last.as_u64().checked_sub(since.as_u64())?;
        let missed = usize::try_from(missed).ok()?;
        let skipped = self.publications.len().checked_sub(missed)?;
        Some(self.publications.iter().skip(skipped).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use folkmoot_protocol::{Channel, RoomId};

    use super::*;

    fn tail(from: u64, to: u64) -> Tail {
        let mut tail = Tail::new(Offset::from_u64(from - 1), 4);
        for offset in from..=to {
            let channel = Channel::Room(RoomId::from_u64(1));
            let place = Place::At(Offset::from_u64(offset));
            tail.push(Arc::new(Publication::new(channel, place, Bytes::from_static(b"{}"))));
        }
        tail
    }

    fn offsets(publications: Option<Vec<Arc<Publication>>>) -> Option<Vec<u64>> {
        publications.map(|all| all.iter().map(|one| one.frame().offset).collect())
    }

    #[test]
    fn what_was_missed_comes_in_order() {
        let tail = tail(5, 8);
        assert_eq!(offsets(tail.after(Offset::from_u64(6))), Some(vec![7, 8]));
        assert_eq!(offsets(tail.after(Offset::from_u64(8))), Some(vec![]));
        assert_eq!(offsets(tail.after(Offset::from_u64(4))), Some(vec![5, 6, 7, 8]));
    }

    #[test]
    fn what_is_forgotten_leaves_no_gap_behind_it() {
        let mut tail = Tail::new(Offset::from_u64(0), 8);
        let channel = Channel::Room(RoomId::from_u64(1));
        for offset in 1..=6u64 {
            let data = Bytes::from(offset.to_string());
            let place = Place::At(Offset::from_u64(offset));
            tail.push(Arc::new(Publication::new(channel, place, data)));
        }
        tail.forget(|number: &u64| [1, 4].contains(number));
        assert_eq!(offsets(tail.after(Offset::from_u64(4))), Some(vec![5, 6]));
        assert_eq!(offsets(tail.after(Offset::from_u64(3))), None, "4 is gone");
        tail.forget(|_: &u64| true);
        assert_eq!(offsets(tail.after(Offset::from_u64(6))), Some(vec![]));
        assert_eq!(offsets(tail.after(Offset::from_u64(5))), None);
    }

    #[test]
    fn what_memory_does_not_hold_is_not_guessed() {
        assert_eq!(offsets(tail(5, 8).after(Offset::from_u64(3))), None);
        assert_eq!(offsets(tail(5, 12).after(Offset::from_u64(7))), None);
        assert_eq!(
            offsets(tail(5, 8).after(Offset::from_u64(9))),
            None,
            "a position from the future"
        );
    }
}
