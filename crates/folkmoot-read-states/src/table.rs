//! The users of one shard, by number: open addressing, so that one cache line leads to a user's
//! block, and a clock's hand that goes round the places.
//!
//! Owner: a shard, under its lock. Invariant: no empty place lies between a user's first choice and
//! where the user is, because a removal closes the gap that it leaves.

use crate::block::Block;

/// Of so many places at most seven eighths are taken.
const PLACES_MIN: usize = 16;

/// Spreads numbers that may follow each other over all bits.
#[inline]
pub(crate) fn spread(user: u64) -> u64 {
    let mixed = (user ^ user >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

struct Place {
    user: u64,
    block: Option<Block>,
}

pub(crate) struct Table {
    places: Vec<Place>,
    len: usize,
    hand: usize,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self { places: empty(PLACES_MIN), len: 0, hand: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory, without the blocks.
    pub(crate) fn bytes(&self) -> usize {
        self.places.len() * size_of::<Place>()
    }

    /// The same once so many users more are in it, who find room after it has grown once.
    pub(crate) fn bytes_with(&self, more: usize) -> usize {
        if self.is_full_for(more) { 2 * self.bytes() } else { self.bytes() }
    }

    fn is_full_for(&self, more: usize) -> bool {
        (self.len + more) * 8 > self.places.len() * 7
    }

    #[inline]
    fn first_choice(&self, user: u64) -> usize {
        spread(user) as usize & (self.places.len() - 1)
    }

    #[inline]
    fn find(&self, user: u64) -> Option<usize> {
        let mut at = self.first_choice(user);
        loop {
            let place = &self.places[at];
            place.block.as_ref()?;
            if place.user == user {
                return Some(at);
            }
            at = (at + 1) & (self.places.len() - 1);
        }
    }

    #[inline]
    pub(crate) fn get(&self, user: u64) -> Option<&Block> {
        self.places[self.find(user)?].block.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, user: u64) -> Option<&mut Block> {
        let at = self.find(user)?;
        self.places[at].block.as_mut()
    }

    /// Puts in a user who is not there.
    pub(crate) fn insert(&mut self, user: u64, block: Block) {
        debug_assert!(self.find(user).is_none(), "a user is there once");
        if self.is_full_for(1) {
            let grown = empty(self.places.len() * 2);
            let before = std::mem::replace(&mut self.places, grown);
            self.hand = 0;
            for place in before {
                if place.block.is_some() {
                    self.put(place);
                }
            }
        }
        self.put(Place { user, block: Some(block) });
        self.len += 1;
    }

    fn put(&mut self, place: Place) {
        let mut at = self.first_choice(place.user);
        while self.places[at].block.is_some() {
            at = (at + 1) & (self.places.len() - 1);
        }
        self.places[at] = place;
    }

    pub(crate) fn remove(&mut self, user: u64) -> Option<Block> {
        let mut gap = self.find(user)?;
        let removed = self.places[gap].block.take();
        self.len -= 1;
        let mask = self.places.len() - 1;
        let mut at = (gap + 1) & mask;
        while self.places[at].block.is_some() {
            let first = self.first_choice(self.places[at].user);
            // Whoever would be found later than the gap, seen from where they belong, may fill it.
            if at.wrapping_sub(first) & mask >= at.wrapping_sub(gap) & mask {
                self.places.swap(gap, at);
                gap = at;
            }
            at = (at + 1) & mask;
        }
        removed
    }

    /// The next user on the clock's way, with the block; `None` if there is nobody.
    pub(crate) fn advance(&mut self) -> Option<(u64, &mut Block)> {
        if self.len == 0 {
            return None;
        }
        let mask = self.places.len() - 1;
        while self.places[self.hand].block.is_none() {
            self.hand = (self.hand + 1) & mask;
        }
        let at = self.hand;
        self.hand = (self.hand + 1) & mask;
        let place = &mut self.places[at];
        place.block.as_mut().map(|block| (place.user, block))
    }
}

fn empty(places: usize) -> Vec<Place> {
    std::iter::repeat_with(|| Place { user: 0, block: None }).take(places).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use proptest::prelude::*;

    use super::Table;
    use crate::block::Block;

    proptest! {
        #[test]
        fn a_table_holds_what_a_map_would(
            changes in proptest::collection::vec((0u64..60, any::<bool>()), 0..400)
        ) {
            let (mut table, mut model) = (Table::new(), HashMap::new());
            for (version, (user, goes)) in (1..).zip(changes) {
                let before = model.remove(&user);
                prop_assert_eq!(table.remove(user).map(|block| block.version()), before);
                if !goes {
                    table.insert(user, Block::new(&[], version));
                    model.insert(user, version);
                }
                prop_assert_eq!(table.len(), model.len());
                for user in 0..60 {
                    prop_assert_eq!(table.get(user).map(Block::version), model.get(&user).copied());
                }
                let round: HashSet<_> =
                    (0..model.len()).filter_map(|_| table.advance().map(|(user, _)| user)).collect();
                prop_assert_eq!(round, model.keys().copied().collect::<HashSet<_>>());
            }
        }
    }
}
