//! An actor's head, and the fence: which turns it lets through. No input or output here.

use althing::{ActorId, Epoch};

use super::session::Cells;
use crate::store::{StoreError, Turn, check_follows};

/// What a turn has to follow on.
///
/// `opened` is drawn anew by each open, and whenever a write of which nobody knows is to be
/// excluded. As every commit names it, nothing that was sent before can be written after.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) epoch: Epoch,
    pub(super) version: u64,
    pub(super) last_event: u64,
    /// Events up to this one are in their buckets.
    pub(super) moved: u64,
    /// `None` if the actor has no head yet.
    pub(super) opened: Option<Vec<u8>>,
    /// Names the batch that wrote this version.
    pub(super) written: Option<Vec<u8>>,
}

impl Head {
    /// In the order in which statements read it.
    pub(super) fn read(cells: &mut Cells) -> Self {
        Self {
            epoch: Epoch(cells.number()),
            version: cells.number(),
            last_event: cells.number(),
            moved: cells.number(),
            opened: cells.maybe_bytes(),
            written: cells.maybe_bytes(),
        }
    }

    /// # Errors
    /// A later epoch has it.
    pub(super) fn check_epoch(&self, id: &ActorId, yours: Epoch) -> Result<(), StoreError> {
        if yours < self.epoch {
            return Err(StoreError::Fenced { id: id.clone(), held: self.epoch, yours });
        }
        Ok(())
    }

    /// Looks at turns in the order of their calls, each on what those before it have changed;
    /// returns the head after them, and a refusal for each that does not get through.
    pub(super) fn follow<'a>(
        &self,
        turns: impl Iterator<Item = &'a Turn>,
    ) -> (Self, Vec<Option<StoreError>>) {
        let mut next = self.clone();
        let refusals = turns.map(|turn| next.add(turn).err()).collect();
        (next, refusals)
    }

    fn add(&mut self, turn: &Turn) -> Result<(), StoreError> {
        self.check_epoch(&turn.id, turn.epoch)?;
        check_follows(turn, self.version, self.last_event)?;
        self.epoch = turn.epoch;
        self.version = turn.version;
        self.last_event = turn.events.last().map_or(self.last_event, |event| event.number);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(epoch: u64, version: u64) -> Turn {
        Turn::new(ActorId::named("head", "one"), Epoch(epoch), version)
    }

    #[test]
    fn turns_that_follow_get_through_and_the_others_are_refused_by_name() {
        let head = Head { epoch: Epoch(2), version: 5, ..Head::default() };
        let turns = [turn(2, 6), turn(1, 7), turn(2, 9), turn(3, 7), turn(2, 8)];
        let (next, refusals) = head.follow(turns.iter());
        assert_eq!((next.epoch, next.version), (Epoch(3), 7));
        let fenced = |held| move |it: &StoreError| matches!(it, StoreError::Fenced { held: h, .. } if *h == held);
        assert!(refusals[0].is_none() && refusals[3].is_none());
        assert!(refusals[1].as_ref().is_some_and(fenced(Epoch(2))));
        assert!(matches!(refusals[2], Some(StoreError::Conflict { held: 6, yours: 9, .. })));
        assert!(refusals[4].as_ref().is_some_and(fenced(Epoch(3))));
    }
}
