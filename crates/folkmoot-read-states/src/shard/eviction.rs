//! Who goes when memory is full: a clock's hand picks somebody who was not used of late, best without changes. Who goes
//! with changes stays readable until the store has them.

use super::Shard;
use crate::block::{Block, Flag};
use crate::error::ReadStatesError;

/// Users that the clock's hand passes in search of one without changes before it takes one with
/// changes.
const PASSES_FOR_CLEAN: usize = 64;
/// Users that it passes at most: the lock is held meanwhile.
const PASSES_MAX: usize = 512;

impl Shard {
    /// Evicts until blocks of so many bytes more, of so many users more, may be taken in. A table that would grow
    /// beyond what there is stays as it is.
    pub(super) fn make_room(&mut self, bytes: usize, users: usize) -> Result<(), ReadStatesError> {
        while self.bytes + self.table.bytes_with(users) + bytes > self.limits.bytes_max
            && self.table.len() > 0
        {
            let Some(user) = self.victim() else {
                return Err(ReadStatesError::Busy { waiting: self.leaving.len() });
            };
            let Some(block) = self.table.remove(user) else { break };
            self.bytes -= block.bytes();
            if block.has(Flag::Dirty) {
                if !block.has(Flag::Writing) && !block.has(Flag::Refused) {
                    self.leaving_due.insert(user);
                }
                self.put_leaving(user, block);
            }
        }
        Ok(())
    }

    pub(super) fn put_leaving(&mut self, user: u64, block: Block) {
        self.leaving_bytes += block.bytes();
        self.leaving.insert(user, block);
    }

    pub(super) fn take_leaving(&mut self, user: u64) -> Option<Block> {
        let block = self.leaving.remove(&user)?;
        self.leaving_bytes -= block.bytes();
        Some(block)
    }

    /// Who is to go: somebody who was not used since the hand last came by, best without changes.
    fn victim(&mut self) -> Option<u64> {
        let may_leave_dirty = self.leaving.len() < self.limits.leaving_max
            && self.leaving_bytes < self.limits.leaving_bytes_max;
        let (mut with_changes, mut used) = (None, None);
        for pass in 0..PASSES_MAX {
            if pass >= PASSES_FOR_CLEAN && with_changes.is_some() {
                break;
            }
            let (user, block) = self.table.advance()?;
            let is_dirty = block.has(Flag::Dirty);
            let was_used = block.has(Flag::Referenced);
            block.set(Flag::Referenced, false);
            match (was_used, is_dirty) {
                (false, false) => return Some(user),
                (false, true) if may_leave_dirty => {
                    with_changes.get_or_insert(user);
                }
                (true, false) => used = Some(user),
                (_, true) => {}
            }
        }
        with_changes.or(used)
    }
}
