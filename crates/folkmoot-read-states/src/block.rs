//! The read states of one user, packed: 20 bytes an entry, sorted by a hash of their rooms.
//!
//! The hash spreads rooms evenly, so it says about where a room's entry is, and an update reads one
//! or two cache lines of entries and none beside them. What else is known of the user lies in the
//! block itself, and so in the place of the table that leads there.
//!
//! Owner: the table of a shard. Invariant: each room is there once.

use std::cmp::Ordering;

use crate::change::Change;

/// The rooms of one user that are kept; the next one is refused by name.
pub const ROOMS_MAX: usize = u16::MAX as usize;

/// Room (2 words), last read message (2), mentions (1): words, because numbers of eight bytes would
/// leave a gap after each entry.
type Entry = [u32; 5];

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
    /// The first `len` are in use.
    entries: Box<[Entry]>,
    /// The number of the last change.
    version: u64,
    len: u16,
    flags: u8,
}

impl Block {
    /// The entries, of which there may be `ROOMS_MAX`; of two for one room the last counts.
    pub(crate) fn new(entries: &[ReadState], version: u64) -> Self {
        let mut sorted: Vec<_> = entries.iter().take(ROOMS_MAX).copied().collect();
        sorted.sort_by_key(|entry| hash(entry.room));
        let mut block = Self::empty(sorted.len(), version);
        for (n, entry) in sorted.iter().enumerate() {
            let is_last = sorted.get(n + 1).is_none_or(|next| next.room != entry.room);
            if is_last {
                block.write(block.len(), *entry);
                block.len += 1;
            }
        }
        block
    }

    fn empty(room_for: usize, version: u64) -> Self {
        let entries = vec![Entry::default(); room_for].into_boxed_slice();
        Self { entries, version, len: 0, flags: 0 }
    }

    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    #[inline]
    pub(crate) fn set_version(&mut self, version: u64) {
        self.version = version;
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.len)
    }

    #[inline]
    pub(crate) fn has(&self, flag: Flag) -> bool {
        self.flags & flag as u8 != 0
    }

    #[inline]
    pub(crate) fn set(&mut self, flag: Flag, on: bool) {
        if on {
            self.flags |= flag as u8;
        } else {
            self.flags &= !(flag as u8);
        }
    }

    /// Bytes of memory beside the block itself.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.entries)
    }

    #[inline]
    fn hash(&self, at: usize) -> u64 {
        hash(wide(&self.entries[at], 0))
    }

    /// Where a room's entry is, or would be.
    #[inline]
    fn find(&self, room: u64) -> Result<usize, usize> {
        let (wanted, len) = (hash(room), self.len());
        if len == 0 {
            return Err(0);
        }
        // Below `len`, by as much as the hash is below its largest.
        let mut at = (((wanted >> 32) * len as u64) >> 32) as usize;
        while self.hash(at) < wanted {
            at += 1;
            if at == len {
                return Err(at);
            }
        }
        loop {
            match self.hash(at).cmp(&wanted) {
                Ordering::Equal => return Ok(at),
                Ordering::Less => return Err(at + 1),
                Ordering::Greater if at == 0 => return Err(0),
                Ordering::Greater => at -= 1,
            }
        }
    }

    #[inline]
    fn read(&self, at: usize) -> ReadState {
        let entry = &self.entries[at];
        ReadState { room: wide(entry, 0), last_read: wide(entry, 2), mentions: entry[4] }
    }

    #[inline]
    fn write(&mut self, at: usize, state: ReadState) {
        let halves = |wide: u64| (wide as u32, (wide >> 32) as u32);
        let (room, last_read) = (halves(state.room), halves(state.last_read));
        self.entries[at] = [room.0, room.1, last_read.0, last_read.1, state.mentions];
    }

    /// What is known of a room.
    #[inline]
    pub(crate) fn get(&self, room: u64) -> Option<ReadState> {
        self.find(room).ok().map(|at| self.read(at))
    }

    /// Whether something can be known of a room.
    pub(crate) fn has_room_for(&self, room: u64) -> bool {
        self.len() < ROOMS_MAX || self.find(room).is_ok()
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
    fn insert(&mut self, at: usize, entry: ReadState) -> bool {
        let len = self.len();
        if len == ROOMS_MAX {
            return false;
        }
        if len == self.entries.len() {
            // An eighth more: joining rooms is rare, and the memory is there for all of them.
            let room_for = (len + 1 + len / 8).min(ROOMS_MAX);
            let mut grown = Self::empty(room_for, self.version);
            grown.entries[..len].copy_from_slice(&self.entries);
            self.entries = grown.entries;
        }
        self.entries.copy_within(at..len, at + 1);
        self.write(at, entry);
        self.len += 1;
        true
    }

    /// Forgets a room. Returns whether it was there.
    pub(crate) fn remove(&mut self, room: u64) -> bool {
        let Ok(at) = self.find(room) else { return false };
        self.entries.copy_within(at + 1..self.len(), at);
        self.len -= 1;
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

#[inline]
fn wide(entry: &Entry, at: usize) -> u64 {
    u64::from(entry[at]) | u64::from(entry[at + 1]) << 32
}

/// Spreads rooms over all numbers; no two have the same.
#[inline]
fn hash(room: u64) -> u64 {
    room.wrapping_mul(0x9e37_79b9_7f4a_7c15)
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
