//! A store for tests: it keeps everything in memory, and what it has acknowledged as long as it
//! lives.

use std::collections::{BTreeMap, HashMap};
use std::future::ready;
use std::ops::Bound;

use althing::{ActorId, Epoch, Timestamp};
use parking_lot::Mutex;

use crate::delivery::{Delivery, Mark, Posting, Reply, Settled};
use crate::store::{
    Answer, Event, Kept, Snapshot, Store, StoreError, Turn, check_follows, check_names, in_order,
    with_key,
};

/// Keeps state as long as it lives, and no longer.
#[derive(Debug, Default)]
pub struct Memory {
    tables: Mutex<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    rows: HashMap<ActorId, Row>,
    deliveries: BTreeMap<Mark, Delivery>,
}

#[derive(Debug, Default)]
struct Row {
    epoch: Epoch,
    version: u64,
    snapshot: Option<Snapshot>,
    journal: Vec<Event>,
    replies: Vec<Reply>,
    /// When each of its deliveries is due, by name.
    due: BTreeMap<String, Timestamp>,
}

impl Memory {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn take_over(&self, id: &ActorId, epoch: Epoch) -> Result<Kept, StoreError> {
        with_key(id)?;
        let mut tables = self.tables.lock();
        let row = tables.rows.entry(id.clone()).or_default();
        row.check_epoch(id, epoch)?;
        row.epoch = epoch;
        let last_event = row.last_event();
        let (snapshot, replies) = (row.snapshot.clone(), row.replies.clone());
        Ok(Kept { version: row.version, snapshot, last_event, replies })
    }

    fn write(&self, turn: Turn) -> Result<(), StoreError> {
        check_names(&turn)?;
        let tables = &mut *self.tables.lock();
        let row = tables.rows.entry(turn.id.clone()).or_default();
        row.check_epoch(&turn.id, turn.epoch)?;
        check_follows(&turn, row.version, row.last_event())?;
        row.epoch = turn.epoch;
        row.version = turn.version;
        if turn.snapshot.is_some() {
            row.snapshot = turn.snapshot;
        }
        row.journal.extend(turn.events);
        row.replies.extend(turn.replies);
        row.replies.retain(|reply| reply.number > turn.forget_replies);
        for posting in turn.postings {
            let name = match &posting {
                Posting::Put(delivery) => delivery.name.clone(),
                Posting::Cancel(name) => name.clone(),
            };
            if let Some(due) = row.due.remove(&name) {
                tables.deliveries.remove(&Mark { due, owner: turn.id.clone(), name });
            }
            if let Posting::Put(delivery) = posting {
                row.due.insert(delivery.name.clone(), delivery.due);
                tables.deliveries.insert(delivery.mark(), delivery);
            }
        }
        Ok(())
    }
}

impl Tables {
    fn left_by(&self, owner: &ActorId, before: &str) -> Vec<Delivery> {
        let Some(row) = self.rows.get(owner) else { return Vec::new() };
        let due = row.due.range::<str, _>((Bound::Unbounded, Bound::Excluded(before)));
        let mark = |(name, due): (&String, &Timestamp)| Mark {
            due: *due,
            owner: owner.clone(),
            name: name.clone(),
        };
        due.filter_map(|it| self.deliveries.get(&mark(it)).cloned()).collect()
    }

    fn settle(&mut self, Settled { mark, next }: Settled) {
        let Some(mut delivery) = self.deliveries.remove(&mark) else { return };
        let row = self.rows.get_mut(&mark.owner).expect("who has a delivery has a row");
        row.due.remove(&mark.name);
        if let Some(due) = next {
            row.due.insert(mark.name, due);
            delivery.due = due;
            self.deliveries.insert(delivery.mark(), delivery);
        }
    }
}

impl Row {
    fn last_event(&self) -> u64 {
        self.journal.last().map_or(0, |event| event.number)
    }

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
        let tables = self.tables.lock();
        let journal = tables.rows.get(id).map_or(&[][..], |row| &row.journal);
        let events = journal.iter().filter(|event| event.number > after).take(limit).cloned();
        Box::pin(ready(Ok(events.collect())))
    }

    fn due(&self, until: Timestamp, after: Option<Mark>, limit: usize) -> Answer<Vec<Delivery>> {
        let tables = self.tables.lock();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let range = tables.deliveries.range((from, Bound::Unbounded));
        let due = range.take_while(|(mark, _)| mark.due <= until).take(limit);
        Box::pin(ready(Ok(due.map(|(_, delivery)| delivery.clone()).collect())))
    }

    fn left_before(&self, names: Vec<(ActorId, String)>, limit: usize) -> Answer<Vec<Delivery>> {
        let tables = self.tables.lock();
        let left = in_order(names).into_iter().flat_map(|(id, name)| tables.left_by(&id, &name));
        Box::pin(ready(Ok(left.take(limit).collect())))
    }

    fn settle(&self, settled: Vec<Settled>) -> Answer<()> {
        let mut tables = self.tables.lock();
        settled.into_iter().for_each(|settled| tables.settle(settled));
        Box::pin(ready(Ok(())))
    }
}
