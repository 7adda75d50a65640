//! The few clues a player carries, without a heap.

use super::Clue;

/// Clues a player can carry.
pub const CARRY_MAX: usize = 3;

/// A stack of clues: the last one taken is dropped first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carry {
    clues: [Option<Clue>; CARRY_MAX],
}

impl Carry {
    /// Those clues, from the bottom; what comes after a gap is left out.
    pub fn from_slots(clues: [Option<Clue>; CARRY_MAX]) -> Self {
        let mut carry = Self::default();
        for clue in clues.into_iter().map_while(|clue| clue) {
            carry = carry.with(clue).expect("as many slots as clues");
        }
        carry
    }

    /// All slots, from the bottom.
    pub fn slots(self) -> [Option<Clue>; CARRY_MAX] {
        self.clues
    }

    /// The clues, from the bottom.
    pub fn iter(self) -> impl Iterator<Item = Clue> {
        self.clues.into_iter().flatten()
    }

    /// How many there are.
    pub fn len(self) -> usize {
        self.iter().count()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.clues[0].is_none()
    }

    /// With one more on top; `None` if hands are full.
    pub fn with(mut self, clue: Clue) -> Option<Self> {
        *self.clues.iter_mut().find(|slot| slot.is_none())? = Some(clue);
        Some(self)
    }

    /// Without the topmost; `None` if there is none.
    pub fn without_top(mut self) -> Option<(Self, Clue)> {
        let top = self.clues.iter_mut().rev().find_map(Option::take)?;
        Some((self, top))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clues_come_back_in_the_opposite_order() {
        let carry = (1..=3).fold(Carry::default(), |carry, n| carry.with(Clue(n)).unwrap());
        assert!(carry.with(Clue(4)).is_none());
        let (carry, top) = carry.without_top().unwrap();
        assert_eq!((top, carry.len()), (Clue(3), 2));
        assert_eq!(Carry::from_slots(carry.slots()), carry);
        assert!(Carry::default().without_top().is_none());
    }
}
