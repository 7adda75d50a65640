//! A store for tests: it keeps everything in memory, and what it has acknowledged as long as it
//! lives.

use std::collections::HashMap;
use std::future::ready;

use althing::{ActorId, Epoch};
use parking_lot::Mutex;

use crate::store::{
    Answer, Event, Kept, Snapshot, Store, StoreError, Turn, check_version, with_key,
};

/// Keeps state as long as it lives, and no longer.
#[derive(Debug, Default)]
pub struct Memory {
    rows: Mutex<HashMap<ActorId, Row>>,
}

#[derive(Debug, Default)]
struct Row {
    epoch: Epoch,
    version: u64,
    snapshot: Option<Snapshot>,
    journal: Vec<Event>,
}

impl Memory {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn take_over(&self, id: &ActorId, epoch: Epoch) -> Result<Kept, StoreError> {
        with_key(id)?;
        let mut rows = self.rows.lock();
        let row = rows.entry(id.clone()).or_default();
        row.check_epoch(id, epoch)?;
        row.epoch = epoch;
        let last_event = row.journal.last().map_or(0, |event| event.number);
        Ok(Kept { version: row.version, snapshot: row.snapshot.clone(), last_event })
    }

    fn write(&self, turn: Turn) -> Result<(), StoreError> {
        with_key(&turn.id)?;
        let mut rows = self.rows.lock();
        let row = rows.entry(turn.id.clone()).or_default();
        row.check_epoch(&turn.id, turn.epoch)?;
        check_version(&turn, row.version)?;
        row.epoch = turn.epoch;
        row.version = turn.version;
        if turn.snapshot.is_some() {
            row.snapshot = turn.snapshot;
        }
        row.journal.extend(turn.events);
        Ok(())
    }
}

impl Row {
    fn check_epoch(&self, id: &ActorId, yours: Epoch) -> Result<(), StoreError> {
        if yours < self.epoch {
            return Err(StoreError::Fenced { id: id.clone(), held: self.epoch, yours });
        }
        Ok(())
    }
}

impl Store for Memory {
    fn open(&self, id: &ActorId, epoch: Epoch) -> Answer<Kept> {
        Box::pin(ready(self.take_over(id, epoch)))
    }

    fn commit(&self, turn: Turn) -> Answer<()> {
        Box::pin(ready(self.write(turn)))
    }

    fn events(&self, id: &ActorId, after: u64, limit: usize) -> Answer<Vec<Event>> {
        let rows = self.rows.lock();
        let journal = rows.get(id).map_or(&[][..], |row| &row.journal);
        let events = journal.iter().filter(|event| event.number > after).take(limit).cloned();
        Box::pin(ready(Ok(events.collect())))
    }
}
