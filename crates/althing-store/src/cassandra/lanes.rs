//! What waits, by actor: the calls of one actor are done one after the other, those of different
//! actors at once. Bounded by calls and by bytes, those that are under way included.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use althing::{ActorId, Epoch};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::head::Head;
use super::{CassandraError, unavailable};
use crate::store::{Event, Kept, StoreError, Turn};

/// Turns of one actor in one batch, at most.
const BATCH_TURNS_MAX: usize = 128;
/// Bytes in one batch, unless a single turn has more: the server keeps a batch in memory several
/// times while it is agreed upon.
const BATCH_BYTES_MAX: usize = 1 << 20;
/// Heads that are remembered, about 200 bytes each. Whoever is not among them is read before its
/// next commit.
const HEADS_MAX: usize = 65_536;

/// Where an answer goes.
pub(super) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

#[derive(Debug)]
pub(super) enum Task {
    Open(Epoch, Reply<Kept>),
    Commit(Box<Turn>, Reply<()>),
    Events(u64, usize, Reply<Vec<Event>>),
}

/// A task that waits, or is under way.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) task: Task,
    pub(super) since: Instant,
    bytes: usize,
    /// Given back when it was answered.
    _room: Option<Room>,
}

/// What has been let in, and makes room again when it is dropped.
#[derive(Debug)]
pub(super) struct Room {
    lanes: Arc<Lanes>,
    bytes: usize,
}

#[derive(Debug)]
pub(super) struct Lanes {
    state: Mutex<State>,
    calls_max: usize,
    pub(super) bytes_max: usize,
}

#[derive(Debug, Default)]
struct State {
    /// Of the actors for which somebody is at work.
    waiting: HashMap<ActorId, VecDeque<Job>>,
    heads: HashMap<ActorId, Head>,
    calls: usize,
    bytes: usize,
    is_ended: bool,
}

/// Whether somebody has to begin with the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    Idle,
    AtWork,
}

impl Job {
    pub(super) fn new(task: Task, bytes: usize) -> Self {
        Self { task, since: Instant::now(), bytes: bytes + size_of::<Self>(), _room: None }
    }

    /// Answers a commit.
    pub(super) fn answer(self, outcome: Result<(), StoreError>) {
        let Task::Commit(_, reply) = self.task else { unreachable!("others have more to tell") };
        // Before the answer: whoever hears it may ask for the room at once.
        drop(self._room);
        // Whoever asked may have gone.
        _ = reply.send(outcome);
    }

    // Whoever asked may have gone.
    pub(super) fn refuse(self, error: StoreError) {
        match self.task {
            Task::Open(_, reply) => _ = reply.send(Err(error)),
            Task::Commit(_, reply) => _ = reply.send(Err(error)),
            Task::Events(_, _, reply) => _ = reply.send(Err(error)),
        }
    }
}

impl Lanes {
    pub(super) fn new(calls_max: usize, bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), calls_max, bytes_max })
    }

    /// Lets something in, if there is room.
    ///
    /// # Errors
    /// It is full, or nobody is at work any more.
    pub(super) fn enter(self: &Arc<Self>, bytes: usize) -> Result<Room, CassandraError> {
        let mut state = self.state.lock();
        if state.is_ended {
            return Err(CassandraError::Ended);
        }
        let (calls, held) = (state.calls, state.bytes);
        // A turn of the largest size has to fit in when nothing else is there.
        if calls >= self.calls_max || (calls > 0 && held + bytes > self.bytes_max) {
            return Err(CassandraError::QueueFull { calls, bytes: held });
        }
        state.calls += 1;
        state.bytes += bytes;
        Ok(Room { lanes: self.clone(), bytes })
    }

    /// # Errors
    /// As `enter`.
    pub(super) fn push(
        self: &Arc<Self>,
        id: &ActorId,
        mut job: Job,
    ) -> Result<Lane, CassandraError> {
        job._room = Some(self.enter(job.bytes)?);
        match self.state.lock().waiting.entry(id.clone()) {
            Entry::Occupied(mut lane) => {
                lane.get_mut().push_back(job);
                Ok(Lane::AtWork)
            }
            Entry::Vacant(lane) => {
                lane.insert(VecDeque::from([job]));
                Ok(Lane::Idle)
            }
        }
    }

    /// Takes what is done at once: commits that follow on each other, or a single other call.
    /// `None` once nothing waits; then the lane is idle.
    pub(super) fn take(&self, id: &ActorId) -> Option<Vec<Job>> {
        let mut state = self.state.lock();
        let lane = state.waiting.get_mut(id)?;
        let mut jobs: Vec<_> = lane.pop_front().into_iter().collect();
        let mut bytes = jobs.first().map_or(0, |job| job.bytes);
        if matches!(jobs.first().map(|job| &job.task), Some(Task::Commit(..))) {
            while let Some(next) = lane.front() {
                bytes += next.bytes;
                let has_room = jobs.len() < BATCH_TURNS_MAX && bytes <= BATCH_BYTES_MAX;
                if !has_room || !matches!(next.task, Task::Commit(..)) {
                    break;
                }
                jobs.extend(lane.pop_front());
            }
        }
        if jobs.is_empty() {
            state.waiting.remove(id);
            return None;
        }
        Some(jobs)
    }

    pub(super) fn head(&self, id: &ActorId) -> Option<Head> {
        self.state.lock().heads.get(id).cloned()
    }

    /// Remembers a head, or forgets it.
    pub(super) fn remember(&self, id: &ActorId, head: Option<Head>) {
        let heads = &mut self.state.lock().heads;
        let Some(head) = head else {
            heads.remove(id);
            return;
        };
        if heads.len() >= HEADS_MAX && !heads.contains_key(id) {
            heads.clear();
        }
        heads.insert(id.clone(), head);
    }

    /// Takes no more, and lets go of what waits.
    pub(super) fn end(&self) {
        let waiting = {
            let mut state = self.state.lock();
            state.is_ended = true;
            std::mem::take(&mut state.waiting)
        };
        let jobs = waiting.into_values().flatten();
        jobs.for_each(|job| job.refuse(unavailable(CassandraError::Ended)));
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut state = self.lanes.state.lock();
        state.calls -= 1;
        state.bytes -= self.bytes;
    }
}
