//! What is done for one actor after the other: it opens, commits turns that wait together as one,
//! and finds out what became of a write of which nobody knows before it tells anybody.

use std::sync::Arc;

use althing::{ActorId, Epoch};
use tokio::time::Instant;

use super::batch::{bound, last_words};
use super::due::{Announced, Minutes};
use super::head::Head;
use super::lanes::{Job, Lanes, Task};
use super::names::Names;
use super::patience::Patience;
use super::session::{Cells, Failure, Session, Values, blob, number};
use super::statements::REPLY;
use super::{CassandraError, CassandraOptions, unavailable, unknown};
use crate::delivery::Reply;
use crate::store::{Kept, Snapshot, StoreError, Turn};

#[derive(Debug)]
pub(super) struct Core {
    pub(super) session: Session,
    pub(super) lanes: Arc<Lanes>,
    pub(super) options: CassandraOptions,
    pub(super) names: Names,
    pub(super) minutes: Minutes,
}

/// What became of an attempt to write.
enum Attempt {
    Written(Head),
    /// Nothing was, and nothing will be: the head is another one.
    Passed,
}

/// Ends the store if its runtime ends while somebody is at work, or is to begin: nobody would
/// answer any more.
pub(super) struct AtWork {
    lanes: Arc<Lanes>,
    is_done: bool,
}

impl AtWork {
    pub(super) fn new(lanes: Arc<Lanes>) -> Self {
        Self { lanes, is_done: false }
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        if !self.is_done {
            self.lanes.end();
        }
    }
}

/// Works until nothing waits for the actor.
pub(super) async fn work(core: Arc<Core>, id: ActorId, mut at_work: AtWork) {
    while let Some(jobs) = core.lanes.take(&id) {
        core.run(&id, jobs).await;
    }
    at_work.is_done = true;
}

impl Core {
    pub(super) fn patience(&self, since: Instant) -> Patience {
        Patience::new(since, self.options.wait_within)
    }

    async fn run(&self, id: &ActorId, mut jobs: Vec<Job>) {
        if matches!(jobs[0].task, Task::Commit(..)) {
            self.commit(id, jobs).await;
            return;
        }
        let Some(job) = jobs.pop() else { return };
        let mut patience = self.patience(job.since);
        // Whoever asked may have gone.
        match job.task {
            Task::Open(epoch, reply) => _ = reply.send(self.open(id, epoch, &mut patience).await),
            Task::Events(after, limit, reply) => {
                let read = patience.insist(|| self.events(id, after, limit)).await;
                _ = reply.send(read);
            }
            Task::Commit(..) => unreachable!("looked at before"),
        }
    }

    async fn open(
        &self,
        id: &ActorId,
        epoch: Epoch,
        patience: &mut Patience,
    ) -> Result<Kept, StoreError> {
        let opened = self.names.next();
        patience.insist(|| self.take_over(id, epoch, &opened)).await??;
        let (head, kept) = patience.insist(|| self.kept(id)).await?;
        // Somebody else may have opened it since.
        head.check_epoch(id, epoch)?;
        self.lanes.remember(id, Some(head));
        Ok(kept)
    }

    async fn take_over(
        &self,
        id: &ActorId,
        epoch: Epoch,
        opened: &[u8],
    ) -> Result<Result<(), StoreError>, Failure> {
        let all = &self.session.statements;
        loop {
            let mut values = vec![number(epoch.0), blob(opened)];
            values.extend(self.session.owner(id));
            values.push(number(epoch.0));
            if self.session.write_if(self.session.part(id), &all.head_open, values).await? {
                return Ok(Ok(()));
            }
            let head = self.head(id).await?;
            if let Err(refused) = head.check_epoch(id, epoch) {
                return Ok(Err(refused));
            }
            if head.opened.is_none() && self.make(id, epoch, opened).await? {
                return Ok(Ok(()));
            }
        }
    }

    /// Makes the head; `false` if it is there already.
    async fn make(&self, id: &ActorId, epoch: Epoch, opened: &[u8]) -> Result<bool, Failure> {
        let mut values = self.session.owner(id);
        values.extend([number(epoch.0), blob(opened)]);
        let part = self.session.part(id);
        self.session.write_if(part, &self.session.statements.head_make, values).await
    }

    /// The head as the last write has left it, that of others included.
    async fn head(&self, id: &ActorId) -> Result<Head, Failure> {
        let read = self.session.rows(&self.session.statements.head_serial, self.session.owner(id));
        let rows = self.session.alone(self.session.part(id), read).await?;
        Ok(rows.into_iter().next().map(|mut cells| Head::read(&mut cells)).unwrap_or_default())
    }

    async fn kept(&self, id: &ActorId) -> Result<(Head, Kept), Failure> {
        let rows =
            self.session.rows(&self.session.statements.kept_read, self.session.owner(id)).await?;
        let (mut head, mut kept) = (Head::default(), Kept::default());
        for mut cells in rows {
            if cells.sort() == REPLY {
                kept.replies.push(reply(&mut cells));
                continue;
            }
            cells.number();
            let (schema, bytes) = (cells.number() as u32, cells.maybe_bytes());
            let includes = cells.number();
            cells.maybe_bytes();
            head = Head::read(&mut cells);
            kept.snapshot = bytes.map(|bytes| Snapshot { schema, bytes, includes });
        }
        (kept.version, kept.last_event) = (head.version, head.last_event);
        Ok((head, kept))
    }

    async fn commit(&self, id: &ActorId, jobs: Vec<Job>) {
        let mut patience = self.patience(jobs[0].since);
        let turns: Vec<_> = jobs.iter().map(turn_of).collect();
        let mut known = self.lanes.head(id);
        let (outcome, refusals) = loop {
            let is_known = known.is_some();
            let head = match known.take() {
                Some(head) => Ok(head),
                None => patience.insist(|| self.head(id)).await,
            };
            let head = match head {
                Ok(head) => head,
                Err(error) => break (Err(error), vec![None; turns.len()]),
            };
            let (next, refusals) = head.follow(turns.iter().copied());
            let through = turns.iter().zip(&refusals).filter(|(_, refusal)| refusal.is_none());
            let through: Vec<_> = through.map(|(turn, _)| *turn).collect();
            if through.is_empty() {
                if is_known {
                    // It may have changed since it was remembered.
                    continue;
                }
                break (Ok(head), refusals);
            }
            match self.attempt(id, &head, next, &through, &mut patience).await {
                Ok(Attempt::Written(next)) => break (Ok(next), refusals),
                Ok(Attempt::Passed) => {}
                Err(error) => break (Err(error), refusals),
            }
        };
        self.lanes.remember(id, outcome.as_ref().ok().filter(|it| it.opened.is_some()).cloned());
        if is_of_the_batch(&outcome) && jobs.len() > 1 {
            // One of them is to blame, and shall take nothing of the others along.
            for job in jobs {
                Box::pin(self.commit(id, vec![job])).await;
            }
            return;
        }
        for (job, refusal) in jobs.into_iter().zip(refusals) {
            job.answer(refusal.map_or_else(|| outcome.clone().map(drop), Err));
        }
        if let Ok(head) = outcome {
            self.move_events(id, head).await;
        }
    }

    /// Writes turns that follow on a head.
    async fn attempt(
        &self,
        id: &ActorId,
        head: &Head,
        mut next: Head,
        turns: &[&Turn],
        patience: &mut Patience,
    ) -> Result<Attempt, StoreError> {
        if head.opened.is_none() {
            let opened = self.names.next();
            patience.insist(|| self.make(id, turns[0].epoch, &opened)).await?;
            return Ok(Attempt::Passed);
        }
        let postings = last_words(turns);
        let announced = self.announced(&postings);
        let replaced = patience.insist(|| self.announce(id, &postings, &announced)).await?;
        next.written = Some(self.names.next());
        let attempt = self.write(id, (head, next), turns, &announced, patience).await;
        // What is left over is found stale when it is due.
        match &attempt {
            Ok(Attempt::Written(_)) => self.withdraw(id, &replaced).await,
            Ok(Attempt::Passed) => self.withdraw(id, &announced).await,
            Err(_) => {}
        }
        attempt
    }

    async fn write(
        &self,
        id: &ActorId,
        (head, next): (&Head, Head),
        turns: &[&Turn],
        announced: &[Announced],
        patience: &mut Patience,
    ) -> Result<Attempt, StoreError> {
        let all = &self.session.statements;
        let (part, owner) = (self.session.part(id), self.session.owner(id));
        let bytes = turns.iter().map(|turn| turn.bytes()).sum();
        loop {
            let bound = bound(all, &owner, (head, &next), turns, announced);
            match self.session.write_together(part, bound, bytes).await {
                Ok(true) => return Ok(Attempt::Written(next)),
                Ok(false) => {
                    let found = patience.insist(|| self.head(id)).await.map_err(into_unknown)?;
                    let is_ours = found.written == next.written;
                    return Ok(if is_ours { Attempt::Written(found) } else { Attempt::Passed });
                }
                Err(Failure::Refused(cause)) => return Err(unavailable(cause)),
                Err(Failure::NotWritten(cause)) => {
                    patience.pause(&cause).await.map_err(unavailable)?;
                }
                Err(Failure::Unknown(cause) | Failure::Unreadable(cause)) => {
                    return self.find_out(id, (head, &next), cause, patience).await;
                }
            }
        }
    }

    /// Excludes that a write of which nobody knows takes effect from now on, and looks whether it
    /// has.
    async fn find_out(
        &self,
        id: &ActorId,
        (head, next): (&Head, &Head),
        mut cause: Arc<CassandraError>,
        patience: &mut Patience,
    ) -> Result<Attempt, StoreError> {
        let mut values: Values = vec![blob(&self.names.next())];
        values.extend(self.session.owner(id));
        values.push(head.opened.as_deref().and_then(blob));
        let exclude = &self.session.statements.head_exclude;
        loop {
            patience.pause(&cause).await.map_err(unknown)?;
            // If its condition does not hold, somebody else has excluded it.
            match self.session.write_if(self.session.part(id), exclude, values.clone()).await {
                Ok(_) => break,
                Err(failure) => cause = failure.cause().clone(),
            }
        }
        let found = patience.insist(|| self.head(id)).await.map_err(into_unknown)?;
        if found.written == next.written {
            return Ok(Attempt::Written(found));
        }
        if found.version == head.version {
            return Ok(Attempt::Passed);
        }
        // Others have gone on, perhaps from here.
        Err(unknown(cause))
    }
}

fn turn_of(job: &Job) -> &Turn {
    let Task::Commit(turn, _) = &job.task else { unreachable!("lanes do not mix them") };
    turn
}

/// In the order in which they are read, behind their sort.
fn reply(cells: &mut Cells) -> Reply {
    let number = cells.number();
    cells.number();
    let bytes = cells.bytes();
    let at = althing::Timestamp(cells.number());
    Reply { number, request: cells.text(), at, bytes }
}

/// Whether the server refused what was asked of it, as opposed to not working.
fn is_of_the_batch(outcome: &Result<Head, StoreError>) -> bool {
    let Err(StoreError::Unavailable(cause)) = outcome else { return false };
    matches!(cause.downcast_ref(), Some(CassandraError::Server(_)))
}

fn into_unknown(error: StoreError) -> StoreError {
    match error {
        StoreError::Unavailable(cause) => StoreError::Unknown(cause),
        other => other,
    }
}
