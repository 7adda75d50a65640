//! One part of the users, under one lock: who is in memory, what waits to be stored, who goes.
//!
//! A user is in one of four states: **loaded** (a block in the table), **leaving** (evicted with
//! changes that are not stored yet: still readable), **absent with deltas** (changed while not in
//! memory), or **absent**. Each change gets the next version, and a block carries that of its last
//! one, so that the store can refuse older blocks and the log knows what a stored block contains.
//!
//! Nothing here waits or does input or output: [`crate::ReadStates`] does, without the lock.

mod eviction;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use crate::block::{Block, Flag, ReadState, say_lost};
use crate::change::{Change, Deltas};
use crate::error::ReadStatesError;
use crate::log::Record;
use crate::replay::merge;
use crate::sizes::Sizes;
use crate::states::Clock;
use crate::store::Row;
use crate::table::Table;

/// Entries for changed users beyond two for each who is in memory, before those are dropped that
/// say nothing any more.
const DIRTY_SPARE: usize = 16;

/// How much a shard may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) bytes_max: usize,
    /// Users evicted with changes that wait for the store.
    pub(crate) leaving_max: usize,
    /// Bytes of their blocks, but for those of one more.
    pub(crate) leaving_bytes_max: usize,
    /// Changes to users who are not in memory.
    pub(crate) deltas_max: usize,
}

pub(crate) struct Shard {
    table: Table,
    limits: Limits,
    /// Of the blocks in the table.
    bytes: usize,
    /// The number of the last change.
    version: u64,
    /// Users with changes, with the time of the first one; in the order of that, because only the
    /// front is looked at. Who comes in with older changes is due at once: time 0. Who has left and
    /// come back may be here more than once.
    dirty: VecDeque<(u64, u64)>,
    leaving: HashMap<u64, Block>,
    leaving_bytes: usize,
    /// Those of them of whom no write is under way.
    leaving_due: BTreeSet<u64>,
    /// Users whose rows the store has refused, those tried last at the end. They are in none of the
    /// queues above.
    refused: VecDeque<u64>,
    deltas: HashMap<u64, Deltas>,
    /// Changes in `deltas`.
    deltas_len: usize,
    loading: HashMap<u64, Arc<Notify>>,
}

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Applied {
    /// The entry as it is now, if the user is in memory.
    pub(crate) state: Option<ReadState>,
    /// The number of the change; `None` if it changed nothing.
    pub(crate) version: Option<u64>,
}

/// Whether a change has to be admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It is refused when too much waits.
    Asked,
    /// It was admitted with others, and is made though more waits since: some may exceed the limit.
    Given,
}

/// Who may bring a user into memory.
pub(crate) enum Load {
    /// The user is there.
    There,
    /// The caller, who must end with `loaded` or `not_loaded`.
    Yours,
    /// Somebody else, who ends this.
    Others(OwnedNotified),
}

impl Shard {
    pub(crate) fn new(limits: Limits, version: u64) -> Self {
        Self {
            table: Table::new(),
            limits,
            bytes: 0,
            version,
            dirty: VecDeque::new(),
            leaving: HashMap::new(),
            leaving_bytes: 0,
            leaving_due: BTreeSet::new(),
            refused: VecDeque::new(),
            deltas: HashMap::new(),
            deltas_len: 0,
            loading: HashMap::new(),
        }
    }

    /// Whether a change to a user in a room, of which nothing may be known yet, would be made now.
    pub(crate) fn admits(&mut self, user: u64, room: u64) -> Result<(), ReadStatesError> {
        self.admits_entry(user, room)?;
        match self.table.get(user).or_else(|| self.leaving.get(&user)) {
            Some(block) if block.has_room_for(room) => Ok(()),
            Some(_) => Err(ReadStatesError::TooManyRooms { user }),
            None if self.deltas_len < self.limits.deltas_max => Ok(()),
            None => Err(ReadStatesError::Busy { waiting: self.deltas_len }),
        }
    }

    /// Refuses another entry of a user in memory where there is no room for it and nobody can be evicted: the store
    /// is away.
    #[inline]
    fn admits_entry(&mut self, user: u64, room: u64) -> Result<(), ReadStatesError> {
        if self.is_swamped() { self.admits_entry_swamped(user, room) } else { Ok(()) }
    }

    #[cold]
    #[inline(never)]
    fn admits_entry_swamped(&mut self, user: u64, room: u64) -> Result<(), ReadStatesError> {
        let known = self.table.get(user).or_else(|| self.leaving.get(&user));
        if known.is_none_or(|block| block.get(room).is_some()) {
            return Ok(());
        }
        _ = self.make_room(0, 0);
        match self.is_swamped() {
            true => Err(ReadStatesError::Busy { waiting: self.leaving.len() }),
            false => Ok(()),
        }
    }

    /// Whether there is as much in memory as may be, with those who leave.
    #[inline]
    fn is_swamped(&self) -> bool {
        let Limits { bytes_max, leaving_bytes_max, .. } = self.limits;
        self.bytes + self.table.bytes() + self.leaving_bytes > bytes_max + leaving_bytes_max
    }

    /// Applies a change, to memory or to what will be merged when the user is loaded.
    #[inline]
    pub(crate) fn change(
        &mut self,
        user: u64,
        room: u64,
        change: Change,
        admission: Admission,
        clock: &Clock,
    ) -> Result<Applied, ReadStatesError> {
        if admission == Admission::Asked && change != Change::Forget {
            self.admits_entry(user, room)?;
        }
        self.apply(user, room, change, admission, clock)
    }

    #[inline]
    fn apply(
        &mut self,
        user: u64,
        room: u64,
        change: Change,
        admission: Admission,
        clock: &Clock,
    ) -> Result<Applied, ReadStatesError> {
        let version = self.version + 1;
        let Some(block) = self.table.get_mut(user) else {
            return self.change_absent(user, room, change, admission, clock);
        };
        let bytes_before = block.bytes();
        let (state, changed) = if let Change::Forget = change {
            (ReadState { room, ..ReadState::default() }, block.remove(room))
        } else {
            match block.update(room, |state| change.apply(state)) {
                Some(updated) => updated,
                None if admission == Admission::Asked => {
                    return Err(ReadStatesError::TooManyRooms { user });
                }
                // One of many who are mentioned, and was in fewer rooms when that was admitted.
                None => {
                    say_lost(user, 1);
                    (ReadState { room, ..ReadState::default() }, false)
                }
            }
        };
        block.set(Flag::Referenced, true);
        if !changed {
            return Ok(Applied { state: Some(state), version: None });
        }
        block.set_version(version);
        let bytes = block.bytes();
        if !block.has(Flag::Dirty) {
            block.set(Flag::Dirty, true);
            self.dirty.push_back((user, clock.now_ms()));
        }
        self.version = version;
        if bytes > bytes_before {
            self.bytes += bytes - bytes_before;
            // While nobody can be evicted, those who are there stay.
            _ = self.make_room(0, 0);
        }
        Ok(Applied { state: Some(state), version: Some(version) })
    }

    #[cold]
    fn change_absent(
        &mut self,
        user: u64,
        room: u64,
        change: Change,
        admission: Admission,
        clock: &Clock,
    ) -> Result<Applied, ReadStatesError> {
        if self.come_back(user) {
            return self.apply(user, room, change, admission, clock);
        }
        if admission == Admission::Asked && self.deltas_len >= self.limits.deltas_max {
            return Err(ReadStatesError::Busy { waiting: self.deltas_len });
        }
        self.version += 1;
        let deltas = self.deltas.entry(user).or_default();
        let before = deltas.len();
        if before == 0 {
            deltas.since_ms = clock.now_ms();
        }
        deltas.push(room, change, self.version);
        self.deltas_len += deltas.len() - before;
        Ok(Applied { state: None, version: Some(self.version) })
    }

    /// Takes back a user who was about to leave.
    fn come_back(&mut self, user: u64) -> bool {
        let Some(mut block) = self.take_leaving(user) else { return false };
        self.leaving_due.remove(&user);
        block.set(Flag::Referenced, true);
        // While nobody can be evicted, all have to fit in.
        _ = self.make_room(block.bytes(), 1);
        self.bytes += block.bytes();
        if !block.has(Flag::Refused) {
            self.dirty.push_front((user, 0));
        }
        self.table.insert(user, block);
        self.tidy_dirty();
        true
    }

    /// Drops what `dirty` has twice, or of those who are not in memory: while the store is away
    /// nobody takes from it, and users come and go.
    fn tidy_dirty(&mut self) {
        if self.dirty.len() <= DIRTY_SPARE + 2 * self.table.len() {
            return;
        }
        let (table, mut seen) = (&self.table, HashSet::new());
        self.dirty.retain(|(user, _)| {
            table.get(*user).is_some_and(|block| block.has(Flag::Dirty)) && seen.insert(*user)
        });
    }

    /// What is known of a user; `None` if the store has to be asked.
    pub(crate) fn read(&mut self, user: u64) -> Option<Vec<ReadState>> {
        if let Some(block) = self.table.get_mut(user) {
            block.set(Flag::Referenced, true);
            return Some(block.entries().collect());
        }
        self.leaving.get(&user).map(|block| block.entries().collect())
    }

    /// What is known of a user in one room: `None` if the store has to be asked.
    pub(crate) fn read_one(&mut self, user: u64, room: u64) -> Option<Option<ReadState>> {
        let block = match self.table.get_mut(user) {
            Some(block) => {
                block.set(Flag::Referenced, true);
                &*block
            }
            None => self.leaving.get(&user)?,
        };
        Some(block.get(room))
    }

    pub(crate) fn begin_load(&mut self, user: u64) -> Load {
        if self.table.get(user).is_some() || self.come_back(user) {
            return Load::There;
        }
        if let Some(others) = self.loading.get(&user) {
            return Load::Others(others.clone().notified_owned());
        }
        self.loading.insert(user, Arc::default());
        Load::Yours
    }

    /// Ends a load that failed.
    pub(crate) fn not_loaded(&mut self, user: u64) {
        if let Some(waiting) = self.loading.remove(&user) {
            waiting.notify_waiters();
        }
    }

    /// Ends a load: takes the user in with what the store had, and merges what happened meanwhile.
    pub(crate) fn loaded(&mut self, user: u64, row: Option<Row>) -> Result<(), ReadStatesError> {
        self.not_loaded(user);
        let row = row.unwrap_or_else(|| Row { user, version: 0, entries: Vec::new() });
        let mut block = Block::new(&row.entries, row.version);
        self.make_room(block.bytes(), 1)?;
        if let Some(deltas) = self.deltas.remove(&user) {
            self.deltas_len -= deltas.len();
            block.catch_up(user, deltas.iter());
            block.set_version(deltas.version);
            block.set(Flag::Dirty, true);
            self.dirty.push_front((user, 0));
        }
        self.bytes += block.bytes();
        self.table.insert(user, block);
        self.tidy_dirty();
        Ok(())
    }

    /// Applies what the log has to a user who waits for the store; `false` if the user does not.
    pub(crate) fn catch_up(&mut self, user: u64, records: &[Record]) -> bool {
        let Some(mut block) = self.take_leaving(user) else { return false };
        merge(&mut block, user, records);
        self.put_leaving(user, block);
        true
    }

    /// Takes in a user who is not in memory, with changes, until the store has them.
    pub(crate) fn leave(&mut self, user: u64, mut block: Block) {
        block.set(Flag::Dirty, true);
        self.leaving_due.insert(user);
        self.put_leaving(user, block);
    }

    /// Rows for the store: all that leave, then those changed before `before_ms`, at most `max`.
    /// Each must be answered with `stored` or `not_stored`.
    pub(crate) fn take_due(&mut self, before_ms: u64, max: usize) -> Vec<Row> {
        let mut rows = Vec::new();
        while rows.len() < max {
            let Some(user) = self.leaving_due.pop_first() else { break };
            let Some(block) = self.leaving.get_mut(&user) else { continue };
            block.set(Flag::Writing, true);
            rows.push(row(user, block));
        }
        while rows.len() < max && self.dirty.front().is_some_and(|(_, since)| *since < before_ms) {
            let Some((user, _)) = self.dirty.pop_front() else { break };
            // Those who have left since are among the leaving.
            let Some(block) = self.table.get_mut(user) else { continue };
            let is_due = block.has(Flag::Dirty) && !block.has(Flag::Refused);
            if is_due && !block.has(Flag::Writing) {
                block.set(Flag::Writing, true);
                rows.push(row(user, block));
            }
        }
        rows
    }

    /// As `take_due`, of those whose rows were refused before.
    pub(crate) fn take_refused(&mut self, max: usize) -> Vec<Row> {
        let users: Vec<u64> = self.refused.drain(..max.min(self.refused.len())).collect();
        users.into_iter().filter_map(|user| self.take(user)).collect()
    }

    /// The row of a user as it is now, of which a write is under way from here on.
    pub(crate) fn take(&mut self, user: u64) -> Option<Row> {
        let block = self.block_mut(user)?;
        block.set(Flag::Writing, true);
        Some(row(user, block))
    }

    fn block_mut(&mut self, user: u64) -> Option<&mut Block> {
        self.table.get_mut(user).or_else(|| self.leaving.get_mut(&user))
    }

    /// Users who are not in memory and were changed before `before_ms`.
    pub(crate) fn due_deltas(&self, before_ms: u64) -> Vec<u64> {
        let due = self.deltas.iter().filter(|(_, deltas)| deltas.since_ms < before_ms);
        due.map(|(user, _)| *user).collect()
    }

    /// The store has a user's row of that version.
    pub(crate) fn stored(&mut self, user: u64, version: u64, now_ms: u64) {
        let Some(block) = self.block_mut(user) else { return };
        block.set(Flag::Writing, false);
        block.set(Flag::Refused, false);
        let is_newest = block.version() == version;
        if is_newest {
            block.set(Flag::Dirty, false);
        }
        match (self.leaving.contains_key(&user), is_newest) {
            (true, true) => _ = self.take_leaving(user),
            (true, false) => _ = self.leaving_due.insert(user),
            (false, true) => {}
            (false, false) => self.dirty.push_back((user, now_ms)),
        }
    }

    /// The store was not there for a user's row.
    pub(crate) fn not_stored(&mut self, user: u64) {
        let Some(block) = self.block_mut(user) else { return };
        block.set(Flag::Writing, false);
        if block.has(Flag::Refused) {
            self.refused.push_back(user);
        } else if self.leaving.contains_key(&user) {
            self.leaving_due.insert(user);
        } else {
            self.dirty.push_front((user, 0));
        }
    }

    /// The store is there, and did not take a user's row.
    pub(crate) fn refused(&mut self, user: u64) {
        let Some(block) = self.block_mut(user) else { return };
        block.set(Flag::Refused, true);
        self.not_stored(user);
    }

    pub(crate) fn refused_len(&self) -> usize {
        self.refused.len()
    }

    /// Users who leave, and of whom no write is under way.
    pub(crate) fn leaving_due_len(&self) -> usize {
        self.leaving_due.len()
    }

    pub(crate) fn is_full_of_leaving(&self) -> bool {
        self.leaving.len() > self.limits.leaving_max
    }

    /// Users in memory, their entries' bytes with the table's, and users with changes to store.
    pub(crate) fn sizes(&self) -> Sizes {
        Sizes {
            users: self.table.len(),
            bytes: self.bytes + self.table.bytes(),
            waiting: self.dirty.len() + self.refused.len() + self.leaving.len() + self.deltas.len(),
            waiting_bytes: self.leaving_bytes,
            refused: self.refused.len(),
            log_bytes: 0,
        }
    }
}

pub(crate) fn row(user: u64, block: &Block) -> Row {
    Row { user, version: block.version(), entries: block.entries().collect() }
}
