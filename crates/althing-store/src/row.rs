//! The row of one activation: which store has it, for which epoch it was opened, and at which
//! version it is. What the turn at hand has changed goes through here, and through nothing else.

use std::sync::Arc;
use std::time::Duration;

use althing::{Actor, ActorError, ActorId, Commit, Epoch, Node, Start, WeakNode};

use crate::behind::{Behind, Writes};
use crate::post::Post;
use crate::saved::{LoadError, State};
use crate::store::{Event, Kept, Snapshot, Store, Turn};

pub(crate) struct Row {
    store: Arc<dyn Store>,
    id: ActorId,
    epoch: Epoch,
    version: u64,
    writes: Writes,
    behind: Behind,
    pub(crate) post: Post,
}

impl Row {
    /// Takes over the row of the actor that starts, for the epoch in which it starts.
    ///
    /// # Errors
    /// A later epoch owns the actor, or the store does not work.
    pub(crate) async fn load<A: Actor>(
        store: Arc<dyn Store>,
        start: &Start<A>,
    ) -> Result<(Self, Kept), LoadError> {
        let activation = start.activation();
        let clock = Some(start.node().downgrade());
        Self::take_over(store, activation.id, activation.epoch, clock).await
    }

    /// As `load`, without a life.
    ///
    /// # Errors
    /// As `load`.
    pub(crate) async fn open(
        store: Arc<dyn Store>,
        id: ActorId,
        epoch: Epoch,
    ) -> Result<(Self, Kept), LoadError> {
        Self::take_over(store, id, epoch, None).await
    }

    async fn take_over(
        store: Arc<dyn Store>,
        id: ActorId,
        epoch: Epoch,
        clock: Option<WeakNode>,
    ) -> Result<(Self, Kept), LoadError> {
        let mut kept = store.open(&id, epoch).await?;
        let (version, replies) = (kept.version, std::mem::take(&mut kept.replies));
        let behind = Behind::new(id.clone(), store.clone(), clock.clone());
        let post = Post::new(id.clone(), clock, store.is_delivering(), version + 1, replies);
        let writes = Writes::Through;
        Ok((Self { store, id, epoch, version, writes, behind, post }, kept))
    }

    /// Sets what the state's type declares.
    pub(crate) fn declare<S: State>(&mut self) {
        self.writes = S::WRITES;
        self.post.retain(S::REPLIES);
    }

    pub(crate) fn id(&self) -> &ActorId {
        &self.id
    }

    /// Commits so far, those on their way included.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Commits what the turn has changed, with what it leaves and the replies it keeps; nothing if
    /// there is nothing.
    pub(crate) fn commit(&mut self, snapshot: Option<Snapshot>, events: Vec<Event>) -> Commit {
        let is_posting = self.post.is_changed();
        if snapshot.is_none() && events.is_empty() && !is_posting {
            return Commit::unchanged();
        }
        if let Writes::Behind(window) = self.writes
            && !is_posting
            && self.behind.may_wait(&events)
            && let Some(node) = self.post.node()
        {
            return self.wait(&node, window, snapshot, events);
        }
        // By itself: if this turn fails, what was acknowledged before is kept without it.
        let earlier = self.behind.give();
        let mut turn = self.next_turn();
        add(&mut turn, snapshot, events);
        self.post.hand_over(&mut turn);
        // Called here and not in the future: commits take effect in the order of their calls.
        let answer = self.store.commit(turn);
        Commit::when(async {
            if let Some(earlier) = earlier {
                earlier.await.map_err(ActorError::from)?;
            }
            answer.await.map_err(ActorError::from)
        })
    }

    /// Commits what waits; ready once it and all that is on its way is decided.
    pub(crate) fn commit_rest(&self) -> Commit {
        if self.behind.is_empty() {
            return Commit::unchanged();
        }
        let rest = self.behind.give();
        // Answered after all commits that were called before it, whoever hears of those.
        let decided = self.store.events(&self.id, 0, 1);
        Commit::when(async {
            if let Some(rest) = rest {
                rest.await.map_err(ActorError::from)?;
            }
            decided.await.map(drop).map_err(ActorError::from)
        })
    }

    fn wait(
        &mut self,
        node: &Node,
        window: Duration,
        snapshot: Option<Snapshot>,
        events: Vec<Event>,
    ) -> Commit {
        let behind = self.behind.clone();
        let waits =
            behind.wait(node, window, || self.next_turn(), |turn| add(turn, snapshot, events));
        match waits {
            Ok(()) => Commit::unchanged(),
            Err(failure) => Commit::when(async { Err(ActorError::from(failure)) }),
        }
    }

    fn next_turn(&mut self) -> Turn {
        self.version += 1;
        Turn::new(self.id.clone(), self.epoch, self.version)
    }
}

/// Adds the changes of one turn to those of the turns before it that are written with it.
fn add(turn: &mut Turn, snapshot: Option<Snapshot>, events: Vec<Event>) {
    turn.snapshot = snapshot.or(turn.snapshot.take());
    turn.events.extend(events);
}

impl Drop for Row {
    fn drop(&mut self) {
        self.behind.write_at_last();
    }
}
