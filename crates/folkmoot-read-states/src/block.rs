//! The read states of one user, packed: 20 bytes an entry and 16 bytes for all of them.
//!
//! One allocation of words holds everything, so that an update touches two or three cache lines:
//!
//! ```text
//! word 0                    version: the number of the last change
//! word 1                    entries (bits 0-15), room for so many (16-31), flags (32-)
//! next `room_for` words     rooms, sorted
//! next `room_for` words     last read messages
//! last `room_for / 2` words mention counts, two a word
//! ```
//!
//! Owner: the table of a shard. Invariant: rooms are sorted and each is there once; unused places
//! are zero.

/// The rooms of one user that are kept; the next one is refused by name.
pub const ROOMS_MAX: usize = u16::MAX as usize;

const HEADER_WORDS: usize = 2;
const VERSION: usize = 0;
const ABOUT: usize = 1;

/// How far one user has read in one room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadState {
    /// The room.
    pub room: u64,
    /// The last message that was read: 0 before the first.
    pub last_read: u64,
    /// Mentions after it; stops at `u32::MAX`.
    pub mentions: u32,
}

/// What a shard keeps about a user beside the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Flag {
    /// Used since the clock's hand last came by.
    Referenced = 32,
    /// Changed since it was last stored.
    Dirty = 33,
    /// Being written to the store.
    Writing = 34,
}

/// See the module.
pub(crate) struct Block {
    words: Box<[u64]>,
}

impl Block {
    /// The entries, in any order; of two for one room the last counts.
    pub(crate) fn new(entries: &[ReadState], version: u64) -> Self {
        let mut sorted = entries.to_vec();
        sorted.sort_by_key(|entry| entry.room);
        sorted.dedup_by(|later, earlier| {
            let same = later.room == earlier.room;
            if same {
                *earlier = *later;
            }
            same
        });
        sorted.truncate(ROOMS_MAX);
        let mut block = Self::empty(sorted.len(), version);
        for (at, entry) in sorted.iter().enumerate() {
            block.write(at, *entry);
        }
        block.set_len(sorted.len());
        block
    }

    fn empty(room_for: usize, version: u64) -> Self {
        let words = HEADER_WORDS + 2 * room_for + room_for.div_ceil(2);
        let mut words = vec![0; words].into_boxed_slice();
        words[VERSION] = version;
        words[ABOUT] = (room_for as u64) << 16;
        Self { words }
    }

    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.words[VERSION]
    }

    #[inline]
    pub(crate) fn set_version(&mut self, version: u64) {
        self.words[VERSION] = version;
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        (self.words[ABOUT] & 0xffff) as usize
    }

    #[inline]
    fn room_for(&self) -> usize {
        (self.words[ABOUT] >> 16 & 0xffff) as usize
    }

    fn set_len(&mut self, len: usize) {
        self.words[ABOUT] = self.words[ABOUT] & !0xffff | len as u64;
    }

    #[inline]
    pub(crate) fn has(&self, flag: Flag) -> bool {
        self.words[ABOUT] >> flag as u8 & 1 == 1
    }

    #[inline]
    pub(crate) fn set(&mut self, flag: Flag, on: bool) {
        let bit = 1 << flag as u8;
        if on {
            self.words[ABOUT] |= bit;
        } else {
            self.words[ABOUT] &= !bit;
        }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.words)
    }

    #[inline]
    fn rooms(&self) -> &[u64] {
        &self.words[HEADER_WORDS..HEADER_WORDS + self.len()]
    }

    /// Where the room is, or would be.
    #[inline]
    fn find(&self, room: u64) -> Result<usize, usize> {
        self.rooms().binary_search(&room)
    }

    #[inline]
    fn mentions_at(&self, at: usize) -> (usize, u32) {
        (HEADER_WORDS + 2 * self.room_for() + at / 2, (at % 2) as u32 * 32)
    }

    #[inline]
    fn read(&self, at: usize) -> ReadState {
        let room_for = self.room_for();
        let (word, shift) = self.mentions_at(at);
        ReadState {
            room: self.words[HEADER_WORDS + at],
            last_read: self.words[HEADER_WORDS + room_for + at],
            mentions: (self.words[word] >> shift) as u32,
        }
    }

    #[inline]
    fn write(&mut self, at: usize, entry: ReadState) {
        let room_for = self.room_for();
        let (word, shift) = self.mentions_at(at);
        self.words[HEADER_WORDS + at] = entry.room;
        self.words[HEADER_WORDS + room_for + at] = entry.last_read;
        let others = self.words[word] & !(0xffff_ffff << shift);
        self.words[word] = others | u64::from(entry.mentions) << shift;
    }

    /// What is known of a room.
    pub(crate) fn get(&self, room: u64) -> Option<ReadState> {
        self.find(room).ok().map(|at| self.read(at))
    }

    /// All entries, by room.
    pub(crate) fn entries(&self) -> impl ExactSizeIterator<Item = ReadState> {
        (0..self.len()).map(|at| self.read(at))
    }

    /// Changes what is known of a room, of which nothing may be known yet. Returns what it has
    /// become, and whether that is something else; `None` if there is no room for another entry.
    #[inline]
    pub(crate) fn update(
        &mut self,
        room: u64,
        change: impl FnOnce(&mut ReadState),
    ) -> Option<(ReadState, bool)> {
        let at = match self.find(room) {
            Ok(at) => at,
            Err(at) => {
                let mut entry = ReadState { room, ..ReadState::default() };
                change(&mut entry);
                return self.insert(at, entry).then_some((entry, true));
            }
        };
        let before = self.read(at);
        let mut entry = before;
        change(&mut entry);
        debug_assert_eq!(entry.room, room, "an entry stays with its room");
        if entry != before {
            self.write(at, entry);
        }
        Some((entry, entry != before))
    }

    #[cold]
    fn insert(&mut self, at: usize, entry: ReadState) -> bool {
        let len = self.len();
        if len == ROOMS_MAX {
            return false;
        }
        if len == self.room_for() {
            // An eighth more: joining rooms is rare, and the memory is there for all of them.
            let room_for = (len + 1 + len / 8).min(ROOMS_MAX);
            let mut grown = Self::empty(room_for, self.version());
            grown.words[ABOUT] |= self.words[ABOUT] & !0xffff_ffff;
            for (at, entry) in self.entries().enumerate() {
                grown.write(at, entry);
            }
            *self = grown;
        }
        for from in (at..len).rev() {
            let moved = self.read(from);
            self.write(from + 1, moved);
        }
        self.write(at, entry);
        self.set_len(len + 1);
        true
    }

    /// Forgets a room. Returns whether it was there.
    pub(crate) fn remove(&mut self, room: u64) -> bool {
        let Ok(at) = self.find(room) else { return false };
        let len = self.len();
        for to in at..len - 1 {
            let moved = self.read(to + 1);
            self.write(to, moved);
        }
        self.write(len - 1, ReadState::default());
        self.set_len(len - 1);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::{Block, Flag, ReadState};

    proptest! {
        #[test]
        fn a_block_holds_what_a_sorted_map_would(
            changes in proptest::collection::vec((0u64..40, 0u64..9, any::<u32>(), any::<bool>()), 0..300)
        ) {
            let mut block = Block::new(&[], 0);
            block.set(Flag::Dirty, true);
            let mut model = BTreeMap::new();
            for (room, last_read, mentions, goes) in changes {
                if goes {
                    prop_assert_eq!(block.remove(room), model.remove(&room).is_some());
                } else {
                    let entry = ReadState { room, last_read, mentions };
                    let before = model.insert(room, entry);
                    let (after, changed) = block.update(room, |state| *state = entry).unwrap();
                    prop_assert_eq!((after, changed), (entry, before != Some(entry)));
                }
                prop_assert_eq!(block.entries().collect::<Vec<_>>(), model.values().copied().collect::<Vec<_>>());
                prop_assert!(block.has(Flag::Dirty) && !block.has(Flag::Referenced));
            }
        }
    }

    #[test]
    fn forty_entries_take_at_most_21_bytes_each() {
        let entries: Vec<_> =
            (0..40).map(|room| ReadState { room, ..ReadState::default() }).collect();
        assert!(Block::new(&entries, 0).bytes() <= 40 * 21);
    }

    #[test]
    fn of_two_entries_for_one_room_the_last_counts() {
        let entry = |last_read| ReadState { room: 7, last_read, mentions: 0 };
        let block = Block::new(&[entry(1), entry(2)], 9);
        assert_eq!(block.entries().collect::<Vec<_>>(), [entry(2)]);
        assert_eq!(block.version(), 9);
    }
}
