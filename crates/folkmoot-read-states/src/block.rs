//! The read states of one user, packed: 21 bytes an entry and 16 bytes for all of them.
//!
//! One allocation of half-words holds everything, so that an update touches two cache lines: one
//! with the header and a fingerprint of each room, which says where the entry is, and that of the
//! entry.
//!
//! ```text
//! 0, 1                       version: the number of the last change
//! 2                          entries (bits 0-15), room for so many (16-31)
//! 3                          flags
//! next `room_for / 4`        fingerprints of the rooms, a byte each
//! next `room_for * 5`        room (2), last read message (2), mentions (1)
//! ```
//!
//! Owner: the table of a shard. Invariant: each room is there once.

use crate::change::Change;

/// The rooms of one user that are kept; the next one is refused by name.
pub const ROOMS_MAX: usize = u16::MAX as usize;

const HEADER: usize = 4;
const COUNTS: usize = 2;
const FLAGS: usize = 3;
const ENTRY: usize = 5;
/// A byte of one in each byte, and the highest bit in each.
const ONES: u32 = 0x0101_0101;
const HIGHS: u32 = 0x8080_8080;

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
#[repr(u32)]
pub(crate) enum Flag {
    /// Used since the clock's hand last came by.
    Referenced = 1,
    /// Changed since it was last stored.
    Dirty = 2,
    /// Being written to the store.
    Writing = 4,
    /// The store did not take it by itself: it is tried again with each round, behind all others.
    Refused = 8,
}

/// See the module.
pub(crate) struct Block {
    words: Box<[u32]>,
}

impl Block {
    /// The entries; of two for one room the last counts.
    pub(crate) fn new(entries: &[ReadState], version: u64) -> Self {
        let mut block = Self::empty(entries.len().min(ROOMS_MAX), version);
        for entry in entries {
            _ = block.update(entry.room, |state| *state = *entry);
        }
        block
    }

    fn empty(room_for: usize, version: u64) -> Self {
        let words = HEADER + room_for.div_ceil(4) + room_for * ENTRY;
        let mut block = Self { words: vec![0; words].into_boxed_slice() };
        block.set_version(version);
        block.words[COUNTS] = (room_for as u32) << 16;
        block
    }

    #[inline]
    fn wide(&self, at: usize) -> u64 {
        u64::from(self.words[at]) | u64::from(self.words[at + 1]) << 32
    }

    #[inline]
    fn set_wide(&mut self, at: usize, value: u64) {
        self.words[at] = value as u32;
        self.words[at + 1] = (value >> 32) as u32;
    }

    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.wide(0)
    }

    #[inline]
    pub(crate) fn set_version(&mut self, version: u64) {
        self.set_wide(0, version);
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        (self.words[COUNTS] & 0xffff) as usize
    }

    #[inline]
    fn room_for(&self) -> usize {
        (self.words[COUNTS] >> 16) as usize
    }

    fn set_len(&mut self, len: usize) {
        self.words[COUNTS] = self.words[COUNTS] & !0xffff | len as u32;
    }

    #[inline]
    pub(crate) fn has(&self, flag: Flag) -> bool {
        self.words[FLAGS] & flag as u32 != 0
    }

    #[inline]
    pub(crate) fn set(&mut self, flag: Flag, on: bool) {
        if on {
            self.words[FLAGS] |= flag as u32;
        } else {
            self.words[FLAGS] &= !(flag as u32);
        }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.words)
    }

    #[inline]
    fn entry(&self, at: usize) -> usize {
        HEADER + self.room_for().div_ceil(4) + at * ENTRY
    }

    /// Where a room's entry is.
    #[inline]
    fn find(&self, room: u64) -> Option<usize> {
        let wanted = u32::from(fingerprint(room)) * ONES;
        let (len, entries) = (self.len(), self.entry(0));
        for (word, fingerprints) in self.words[HEADER..entries].iter().enumerate() {
            let differs = fingerprints ^ wanted;
            // A high bit for each byte that is zero, and perhaps for one above such a byte.
            let mut alike = differs.wrapping_sub(ONES) & !differs & HIGHS;
            while alike != 0 {
                let at = word * 4 + alike.trailing_zeros() as usize / 8;
                if at < len && self.wide(entries + at * ENTRY) == room {
                    return Some(at);
                }
                alike &= alike - 1;
            }
        }
        None
    }

    #[inline]
    fn read(&self, at: usize) -> ReadState {
        let entry = self.entry(at);
        ReadState {
            room: self.wide(entry),
            last_read: self.wide(entry + 2),
            mentions: self.words[entry + 4],
        }
    }

    #[inline]
    fn write(&mut self, at: usize, state: ReadState) {
        let entry = self.entry(at);
        self.set_wide(entry, state.room);
        self.set_wide(entry + 2, state.last_read);
        self.words[entry + 4] = state.mentions;
    }

    fn set_fingerprint(&mut self, at: usize, room: u64) {
        let (word, shift) = (HEADER + at / 4, at % 4 * 8);
        let others = self.words[word] & !(0xff << shift);
        self.words[word] = others | u32::from(fingerprint(room)) << shift;
    }

    /// What is known of a room.
    #[inline]
    pub(crate) fn get(&self, room: u64) -> Option<ReadState> {
        self.find(room).map(|at| self.read(at))
    }

    /// Whether something can be known of a room.
    pub(crate) fn has_room_for(&self, room: u64) -> bool {
        self.len() < ROOMS_MAX || self.find(room).is_some()
    }

    /// All entries, in no particular order.
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
        let Some(at) = self.find(room) else {
            let mut entry = ReadState { room, ..ReadState::default() };
            change(&mut entry);
            return self.push(entry).then_some((entry, true));
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

    /// Applies changes that were acknowledged before it was known what there is. Who is in too many
    /// rooms by then keeps those.
    pub(crate) fn catch_up(&mut self, user: u64, changes: impl Iterator<Item = (u64, Change)>) {
        let mut lost = 0_usize;
        for (room, change) in changes {
            if let Change::Forget = change {
                self.remove(room);
            } else if self.update(room, |state| change.apply(state)).is_none() {
                lost += 1;
            }
        }
        if lost > 0 {
            say_lost(user, lost);
        }
    }

    #[cold]
    fn push(&mut self, entry: ReadState) -> bool {
        let len = self.len();
        if len == ROOMS_MAX {
            return false;
        }
        if len == self.room_for() {
            // An eighth more: joining rooms is rare, and the memory is there for all of them.
            let room_for = (len + 1 + len / 8).min(ROOMS_MAX);
            let mut grown = Self::empty(room_for, self.version());
            grown.words[FLAGS] = self.words[FLAGS];
            for (at, entry) in self.entries().enumerate() {
                grown.write(at, entry);
                grown.set_fingerprint(at, entry.room);
            }
            *self = grown;
        }
        self.write(len, entry);
        self.set_fingerprint(len, entry.room);
        self.set_len(len + 1);
        true
    }

    /// Forgets a room. Returns whether it was there.
    pub(crate) fn remove(&mut self, room: u64) -> bool {
        let Some(at) = self.find(room) else { return false };
        let last = self.len() - 1;
        let moved = self.read(last);
        self.write(at, moved);
        self.set_fingerprint(at, moved.room);
        self.set_len(last);
        true
    }
}

/// Says that changes in rooms beyond the limit are lost.
pub(crate) fn say_lost(user: u64, changes: usize) {
    tracing::error!(
        user,
        changes,
        "changes are lost: a user has read states of {ROOMS_MAX} rooms at most"
    );
}

/// Eight bits of a room that differ between most rooms.
#[inline]
fn fingerprint(room: u64) -> u8 {
    (room.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::{Block, Flag, ReadState};

    proptest! {
        #[test]
        fn a_block_holds_what_a_map_would(
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
                let mut entries: Vec<_> = block.entries().collect();
                entries.sort_unstable_by_key(|entry| entry.room);
                prop_assert_eq!(entries, model.values().copied().collect::<Vec<_>>());
                prop_assert!(block.has(Flag::Dirty) && !block.has(Flag::Referenced));
            }
        }
    }

    #[test]
    fn forty_entries_take_at_most_22_bytes_each() {
        let entries: Vec<_> =
            (0..40).map(|room| ReadState { room, ..ReadState::default() }).collect();
        assert!(Block::new(&entries, 0).bytes() <= 40 * 22);
    }

    #[test]
    fn of_two_entries_for_one_room_the_last_counts() {
        let entry = |last_read| ReadState { room: 7, last_read, mentions: 0 };
        let block = Block::new(&[entry(1), entry(2)], 9);
        assert_eq!(block.entries().collect::<Vec<_>>(), [entry(2)]);
        assert_eq!(block.version(), 9);
    }
}
