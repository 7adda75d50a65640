//! Actors that share a partition: what has a condition there is sent one after the other, because
//! at once they would keep each other from being agreed upon, and commits that wait meanwhile are
//! sent as one.
//!
//! Each commit keeps its own condition, on its own actor's head. A batch is written if all of them
//! hold, and not at all otherwise; then each is sent alone and hears of its own. So nothing about
//! the fence depends on who shares a batch, or a partition.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use scylla::statement::prepared::PreparedStatement;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{MutexGuard, oneshot};
use tokio::time::timeout;

use super::CassandraError;
use super::session::{Bound, Failure, Session, Values, is_applied};

/// Actors whose turns are in one batch, at most: the server keeps it in memory several times while
/// it is agreed upon.
const TOGETHER_MAX: usize = 128;
/// Bytes of them together, unless a single actor has more.
const BYTES_MAX: usize = 1 << 20;

/// A partition of `althing_actors`.
pub(super) type Part = i32;

/// What waits, by partition. Whoever has the turn of one sends.
#[derive(Default)]
pub(super) struct Partitions {
    queues: Mutex<HashMap<Part, Arc<Queue>>>,
    last: AtomicU64,
}

#[derive(Default)]
struct Queue {
    turn: tokio::sync::Mutex<()>,
    waiting: Mutex<VecDeque<Waiting>>,
}

/// One actor's commit.
struct Waiting {
    number: u64,
    statements: Vec<(PreparedStatement, Values)>,
    bytes: usize,
    answer: oneshot::Sender<Result<bool, Failure>>,
}

/// Somebody who uses a queue, which is forgotten when nobody does.
struct User<'a> {
    partitions: &'a Partitions,
    part: Part,
    queue: Arc<Queue>,
}

impl Partitions {
    fn enter(&self, part: Part) -> User<'_> {
        let queue = self.queues.lock().entry(part).or_default().clone();
        User { partitions: self, part, queue }
    }
}

impl Drop for User<'_> {
    fn drop(&mut self) {
        let mut queues = self.partitions.queues.lock();
        // The map has one, and this is the other: more are made under the lock only.
        if Arc::strong_count(&self.queue) == 2 {
            queues.remove(&self.part);
        }
    }
}

impl Queue {
    async fn turn(&self, within: Duration) -> Result<MutexGuard<'_, ()>, Failure> {
        let turn = timeout(within, self.turn.lock()).await;
        turn.map_err(|_| Failure::NotWritten(Arc::new(CassandraError::NoAnswer(within))))
    }

    /// Takes one out again; `false` if it is on its way.
    fn give_up(&self, number: u64) -> bool {
        let mut waiting = self.waiting.lock();
        let before = waiting.len();
        waiting.retain(|it| it.number != number);
        waiting.len() < before
    }

    fn take(&self) -> Vec<Waiting> {
        let mut waiting = self.waiting.lock();
        let (mut group, mut bytes) = (Vec::new(), 0);
        while let Some(next) = waiting.front() {
            bytes += next.bytes;
            if !group.is_empty() && (group.len() == TOGETHER_MAX || bytes > BYTES_MAX) {
                break;
            }
            group.extend(waiting.pop_front());
        }
        group
    }
}

impl Session {
    /// Does something with a condition, when nobody else does in that partition.
    pub(super) async fn alone<T>(
        &self,
        part: Part,
        request: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let user = self.partitions.enter(part);
        let _turn = user.queue.turn(self.answer_within).await?;
        request.await
    }

    /// Writes one actor's statements as one, of which the first has a condition; returns whether
    /// that held. Others of the partition that wait at the same time are in the same batch.
    pub(super) async fn write_together(
        &self,
        part: Part,
        bound: Vec<Bound<'_>>,
        bytes: usize,
    ) -> Result<bool, Failure> {
        let user = self.partitions.enter(part);
        let number = self.partitions.last.fetch_add(1, Ordering::Relaxed);
        let statements = bound.into_iter().map(|(it, values)| (it.clone(), values)).collect();
        let (answer, mut answered) = oneshot::channel();
        user.queue.waiting.lock().push_back(Waiting { number, statements, bytes, answer });
        let turn = tokio::select! {
            biased;
            outcome = &mut answered => return outcome.unwrap_or_else(left_alone),
            turn = user.queue.turn(self.answer_within) => turn,
        };
        let _turn = match turn {
            Ok(turn) => turn,
            Err(late) if user.queue.give_up(number) => return Err(late),
            Err(_) => return answered.await.unwrap_or_else(left_alone),
        };
        loop {
            match answered.try_recv() {
                Ok(outcome) => return outcome,
                Err(TryRecvError::Closed) => return left_alone(TryRecvError::Closed),
                Err(TryRecvError::Empty) => self.send(user.queue.take()).await,
            }
        }
    }

    async fn send(&self, group: Vec<Waiting>) {
        let outcome = self.write_waiting(&group).await;
        let is_of_one = matches!(outcome, Ok(false) | Err(Failure::Refused(_)));
        if !is_of_one || group.len() == 1 {
            for waiting in group {
                // Whoever waited may have gone.
                _ = waiting.answer.send(outcome.clone());
            }
            return;
        }
        for waiting in group {
            let waiting = [waiting];
            let outcome = self.write_waiting(&waiting).await;
            let [waiting] = waiting;
            _ = waiting.answer.send(outcome);
        }
    }

    async fn write_waiting(&self, group: &[Waiting]) -> Result<bool, Failure> {
        if let [Waiting { statements, .. }] = group
            && let [(statement, values)] = &statements[..]
        {
            // Without the work that a batch of one is to the server.
            return is_applied(self.execute(statement, values.clone()).await?);
        }
        let statements = group.iter().flat_map(|waiting| &waiting.statements);
        is_applied(self.batch(statements.map(|(it, values)| (it, values))).await?)
    }
}

/// Whoever sent it was dropped amid that: the runtime ends.
fn left_alone<E>(_: E) -> Result<bool, Failure> {
    Err(Failure::Unknown(Arc::new(CassandraError::Ended)))
}
