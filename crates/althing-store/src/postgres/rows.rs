//! The rows that one transaction has locked: which jobs the fence lets through, and what is to be
//! written. No input or output here.
//!
//! Jobs are looked at in the order of their calls, each on what those before it have changed.

use std::collections::BTreeMap;

use althing::{ActorId, Epoch};

use super::queue::Task;
use crate::delivery::{Delivery, Posting, Reply, Settled};
use crate::store::{Event, Kept, Snapshot, StoreError, Turn, check_follows, with_key};

/// Kind and key as bytes, because text of PostgreSQL cannot hold every key: it has no NUL.
///
/// Their order is the one in which rows are locked, so that two writers never wait for each other
/// in a circle.
pub(super) type Name<'a> = (&'a [u8], &'a [u8]);

/// A row, as the database has it and as the jobs leave it.
#[derive(Debug, Default)]
pub(super) struct Row<'a> {
    pub(super) epoch: Epoch,
    pub(super) version: u64,
    pub(super) last_event: u64,
    /// Read only if it is needed.
    pub(super) stored: Option<Snapshot>,
    /// What replaces it.
    pub(super) written: Option<&'a Snapshot>,
    pub(super) is_changed: bool,
    /// Whether it is made if it is not there.
    pub(super) is_made: bool,
    /// Whether its snapshot and its replies are needed.
    pub(super) is_read: bool,
    /// Read only if they are needed.
    pub(super) replies: Vec<Reply>,
}

/// All rows of a transaction, and what is written beside them.
#[derive(Debug, Default)]
pub(super) struct Rows<'a> {
    pub(super) rows: BTreeMap<Name<'a>, Row<'a>>,
    pub(super) events: Vec<(Name<'a>, &'a Event)>,
    /// The last word on each delivery: `None` cancels it.
    pub(super) postings: BTreeMap<(Name<'a>, &'a str), Option<&'a Delivery>>,
    pub(super) settled: Vec<&'a Settled>,
    pub(super) kept: Vec<(Name<'a>, &'a Reply)>,
    /// Up to which number replies are forgotten.
    pub(super) forgotten: BTreeMap<Name<'a>, u64>,
}

/// What a job comes to if the transaction is committed.
#[derive(Debug)]
pub(super) enum Outcome {
    Open(Result<Kept, StoreError>),
    Commit(Result<(), StoreError>),
    Events(Vec<Event>),
    Due(Vec<Delivery>),
    LeftBefore(Vec<Delivery>),
    Settled,
}

pub(super) fn name(id: &ActorId) -> Name<'_> {
    let key = with_key(id).expect("looked at before the job was made");
    (id.kind().as_str().as_bytes(), key.as_bytes())
}

impl<'a> Rows<'a> {
    /// The rows that the tasks need.
    pub(super) fn of(tasks: impl Iterator<Item = &'a Task>) -> Self {
        let mut rows = Self::default();
        for task in tasks {
            match task {
                Task::Open(id, ..) => {
                    let row = rows.rows.entry(name(id)).or_default();
                    (row.is_made, row.is_read) = (true, true);
                }
                // A row that is not there is at version 0, which only the first version follows.
                Task::Commit(turn, _) => {
                    rows.rows.entry(name(&turn.id)).or_default().is_made |= turn.version == 1;
                }
                Task::Events(..) | Task::Due(..) | Task::LeftBefore(..) | Task::Settle(..) => {}
            }
        }
        rows
    }

    pub(super) fn apply(&mut self, task: &'a Task) -> Outcome {
        match task {
            Task::Open(id, epoch, _) => Outcome::Open(self.open(id, *epoch)),
            Task::Commit(turn, _) => Outcome::Commit(self.commit(turn)),
            Task::Settle(settled, _) => {
                self.settled.extend(settled);
                Outcome::Settled
            }
            Task::Events(..) | Task::Due(..) | Task::LeftBefore(..) => {
                unreachable!("read outside of transactions")
            }
        }
    }

    fn open(&mut self, id: &'a ActorId, epoch: Epoch) -> Result<Kept, StoreError> {
        let row = self.row(id, epoch)?;
        row.is_changed |= row.epoch != epoch;
        row.epoch = epoch;
        let snapshot = row.written.or(row.stored.as_ref()).cloned();
        let replies = row.replies.clone();
        Ok(Kept { version: row.version, snapshot, last_event: row.last_event, replies })
    }

    fn commit(&mut self, turn: &'a Turn) -> Result<(), StoreError> {
        let row = self.row(&turn.id, turn.epoch)?;
        check_follows(turn, row.version, row.last_event)?;
        row.epoch = turn.epoch;
        row.version = turn.version;
        row.last_event = turn.events.last().map_or(row.last_event, |event| event.number);
        row.written = turn.snapshot.as_ref().or(row.written);
        row.is_changed = true;
        if row.is_read {
            row.replies.extend(turn.replies.iter().cloned());
            row.replies.retain(|reply| reply.number > turn.forget_replies);
        }
        let name = name(&turn.id);
        self.events.extend(turn.events.iter().map(|event| (name, event)));
        self.kept.extend(turn.replies.iter().map(|reply| (name, reply)));
        if turn.forget_replies > 0 {
            self.forgotten.insert(name, turn.forget_replies);
        }
        for posting in &turn.postings {
            let (own, delivery) = match posting {
                Posting::Put(delivery) => (&delivery.name, Some(delivery)),
                Posting::Cancel(name) => (name, None),
            };
            self.postings.insert((name, own), delivery);
        }
        Ok(())
    }

    fn row(&mut self, id: &'a ActorId, yours: Epoch) -> Result<&mut Row<'a>, StoreError> {
        let row = self.rows.get_mut(&name(id)).expect("collected from the same jobs");
        if yours < row.epoch {
            return Err(StoreError::Fenced { id: id.clone(), held: row.epoch, yours });
        }
        Ok(row)
    }

    pub(super) fn changed(&self) -> impl Iterator<Item = (&Name<'a>, &Row<'a>)> {
        self.rows.iter().filter(|(_, row)| row.is_changed)
    }
}
