//! The last events of a topic, for those who come late or missed some. A plain value: no lock, no
//! clock.
//!
//! Whatever leaves the ring is returned, never dropped here: the ring is used under the topic's
//! lock, and an event's drop is its user's code.

use std::collections::VecDeque;
use std::sync::Arc;

use super::published::{Gap, Published, Sequence};

/// The last events, oldest first.
pub(super) struct Ring<T> {
    events: VecDeque<Arc<Published<T>>>,
    len_max: usize,
}

impl<T> Ring<T> {
    pub(super) fn new(len_max: usize) -> Self {
        Self { events: VecDeque::new(), len_max }
    }

    /// Keeps `event`; returns what has to go for it.
    pub(super) fn push(&mut self, event: Arc<Published<T>>) -> Option<Arc<Published<T>>> {
        if self.len_max == 0 {
            return Some(event);
        }
        let oldest = if self.events.len() == self.len_max { self.events.pop_front() } else { None };
        self.events.push_back(event);
        oldest
    }

    /// How many it keeps now.
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    /// Takes everything out.
    pub(super) fn take(&mut self) -> VecDeque<Arc<Published<T>>> {
        std::mem::take(&mut self.events)
    }

    /// The kept ones of the events after `after`, and what of them is gone; `last` is the topic's
    /// last one.
    pub(super) fn after(
        &self,
        after: Sequence,
        last: Sequence,
    ) -> (Option<Gap>, Vec<Arc<Published<T>>>) {
        // A position that the topic has not reached is from before it was made anew: its reader has
        // seen none of these.
        let is_of_another_life = after > last;
        let first = match is_of_another_life {
            true => 0,
            false => self.events.partition_point(|event| event.sequence <= after),
        };
        let kept: Vec<_> = self.events.range(first..).cloned().collect();
        let until = kept.first().map_or(last, |event| event.previous);
        let is_gap = is_of_another_life || until > after;
        (is_gap.then_some(Gap { after, until }), kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epoch::Epoch;

    fn ring(len_max: usize, sequences: &[u64]) -> (Ring<()>, Sequence) {
        let mut ring = Ring::new(len_max);
        let mut last = Sequence(0);
        for &sequence in sequences {
            let (previous, sequence) = (last, Sequence(sequence));
            let topic = "t".into();
            ring.push(Arc::new(Published {
                topic,
                epoch: Epoch(0),
                sequence,
                previous,
                payload: (),
            }));
            last = sequence;
        }
        (ring, last)
    }

    fn after(kept: &(Ring<()>, Sequence), after: u64) -> (Option<(u64, u64)>, Vec<u64>) {
        let (gap, events) = kept.0.after(Sequence(after), kept.1);
        let gap = gap.map(|gap| (gap.after.0, gap.until.0));
        (gap, events.iter().map(|event| event.sequence.0).collect())
    }

    #[test]
    fn what_is_kept_comes_without_a_gap() {
        let kept = ring(3, &[1, 2, 3, 4]);
        assert_eq!(after(&kept, 1), (None, vec![2, 3, 4]));
        assert_eq!(after(&kept, 3), (None, vec![4]));
        assert_eq!(after(&kept, 4), (None, vec![]));
    }

    #[test]
    fn what_is_gone_shows_as_a_gap_before_the_rest() {
        let kept = ring(2, &[1, 2, 3, 4]);
        assert_eq!(after(&kept, 0), (Some((0, 2)), vec![3, 4]));
        assert_eq!(after(&kept, 1), (Some((1, 2)), vec![3, 4]));
        assert_eq!(after(&ring(0, &[1, 2]), 1), (Some((1, 2)), vec![]));
    }

    #[test]
    fn numbers_may_jump_without_being_a_gap() {
        let kept = ring(4, &[10, 20, 30]);
        assert_eq!(after(&kept, 10), (None, vec![20, 30]));
        assert_eq!(after(&kept, 15), (None, vec![20, 30]));
    }

    #[test]
    fn a_position_that_the_topic_has_not_reached_is_a_gap_before_all_that_is_kept() {
        assert_eq!(after(&ring(4, &[1, 2]), 7), (Some((7, 0)), vec![1, 2]));
        assert_eq!(after(&ring(1, &[1, 2]), 7), (Some((7, 1)), vec![2]));
        assert_eq!(after(&ring(4, &[]), 7), (Some((7, 0)), vec![]));
        assert_eq!(after(&ring(4, &[]), 0), (None, vec![]));
    }
}
