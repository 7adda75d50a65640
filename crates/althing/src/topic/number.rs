//! The number of the next event, and the number that it says was before it. A plain value.

use super::published::Sequence;
use crate::epoch::Epoch;

/// Numbers that an owner has of its own, if it does not choose them itself: those above its epoch
/// times this. So the numbers of a new owner are above those of all former ones, wherever they
/// were.
const NUMBERS_PER_EPOCH_LOG2: u32 = 32;

/// Where an event stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    /// Not above the last one if there is none above it.
    pub(super) sequence: Sequence,
    pub(super) previous: Sequence,
}

impl Number {
    /// Of an event whose number was chosen; `is_unsure` if events before it may be missing. Then
    /// any number in between may be one of them.
    pub(super) fn chosen(sequence: Sequence, last: Sequence, is_unsure: bool) -> Self {
        let before = Sequence(sequence.0.saturating_sub(1));
        Self { sequence, previous: if is_unsure { last.max(before) } else { last } }
    }

    /// Of an event that gets the next number, which is `first` at least. Where events may be
    /// missing, the number after the last one is left out for them.
    pub(super) fn next(last: Sequence, first: Option<Sequence>, is_unsure: bool) -> Self {
        let after = |sequence: Sequence| Sequence(sequence.0.saturating_add(1));
        let at_least = if is_unsure { after(after(last)) } else { after(last) };
        Self::chosen(first.map_or(at_least, |first| first.max(at_least)), last, is_unsure)
    }
}

/// The first number of an owner that does not choose its numbers.
pub(super) fn first_number_of(epoch: Epoch) -> Option<Sequence> {
    let base = epoch.0.checked_mul(1 << NUMBERS_PER_EPOCH_LOG2)?;
    Some(Sequence(base.checked_add(1)?))
}

#[cfg(test)]
mod tests {
    use super::{Number, Sequence};

    fn numbers(number: Number) -> (u64, u64) {
        (number.previous.0, number.sequence.0)
    }

    #[test]
    fn who_is_sure_tells_no_gap() {
        assert_eq!(numbers(Number::next(Sequence(7), None, false)), (7, 8));
        assert_eq!(numbers(Number::next(Sequence(7), Some(Sequence(100)), false)), (7, 100));
        assert_eq!(numbers(Number::chosen(Sequence(20), Sequence(7), false)), (7, 20));
    }

    #[test]
    fn who_is_not_sure_tells_a_gap_wherever_an_event_can_have_been() {
        assert_eq!(numbers(Number::next(Sequence(7), None, true)), (8, 9));
        assert_eq!(numbers(Number::next(Sequence(7), Some(Sequence(100)), true)), (99, 100));
        assert_eq!(numbers(Number::chosen(Sequence(20), Sequence(7), true)), (19, 20));
        let next = Number::chosen(Sequence(8), Sequence(7), true);
        assert_eq!(numbers(next), (7, 8), "there is no number in between");
    }

    #[test]
    fn after_the_last_number_comes_none() {
        for is_unsure in [false, true] {
            let last = Sequence(u64::MAX);
            assert_eq!(Number::next(last, None, is_unsure).sequence, last);
        }
    }
}
