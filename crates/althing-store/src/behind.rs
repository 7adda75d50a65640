//! Write-behind: what turns have changed waits for a while, and is then written as one.
//!
//! It waits beside its actor: whoever writes it looks here, so that nothing is written twice or out
//! of order. What an actor has not written when it ends is written when its state is dropped; a
//! crash loses it.

use std::sync::Arc;
use std::time::Duration;

use althing::{Actor, Context, Handler, Node};
use parking_lot::Mutex;

use crate::store::{Store, StoreError, Turn};

/// When a turn's changes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// With the turn: what it lets out waits until they are durable.
    Through,
    /// At most so much later, together with those of the turns in between: a crash loses the
    /// changes of that time, though their replies have left. A turn that leaves a letter, sets a
    /// reminder or keeps a reply is written through, with what waits.
    Behind(Duration),
}

/// What waits of one actor. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Behind {
    store: Arc<dyn Store>,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Default)]
struct Waiting {
    turn: Option<Turn>,
    failure: Option<StoreError>,
}

impl Behind {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, waiting: Arc::default() }
    }

    /// Has a turn wait, together with the one that waits already; `make` makes it if none does, and
    /// then it is written after `window`.
    ///
    /// # Errors
    /// What was written last has failed.
    pub(crate) fn wait(
        &self,
        node: &Node,
        window: Duration,
        make: impl FnOnce() -> Turn,
        add: impl FnOnce(&mut Turn),
    ) -> Result<(), StoreError> {
        let mut waiting = self.waiting.lock();
        if let Some(failure) = waiting.failure.take() {
            return Err(failure);
        }
        let is_first = waiting.turn.is_none();
        add(waiting.turn.get_or_insert_with(make));
        // Released before telling: the writer looks here.
        drop(waiting);
        if is_first {
            let writer = node.spawn(Writer { behind: self.clone() });
            // A new actor's mailbox has room; on a node that ends, the drop of the state writes.
            _ = writer.send(WriteAfter(window)).try_tell();
        }
        Ok(())
    }

    /// Takes what waits, to write it with more.
    pub(crate) fn take(&self) -> Option<Turn> {
        self.waiting.lock().turn.take()
    }

    /// Writes what waits, whatever comes of it: for a state that is dropped.
    pub(crate) fn write_at_last(&self) {
        if let Some(turn) = self.take() {
            // To drop the answer takes nothing back.
            drop(self.store.commit(turn));
        }
    }

    async fn write(&self) {
        let answer = {
            let mut waiting = self.waiting.lock();
            // Called under the lock: commits take effect in the order of their calls.
            let Some(turn) = waiting.turn.take() else { return };
            self.store.commit(turn)
        };
        if let Err(failure) = answer.await {
            tracing::warn!(%failure, "what was to be written behind is lost");
            self.waiting.lock().failure = Some(failure);
        }
    }
}

/// Writes once, and ends.
struct Writer {
    behind: Behind,
}

struct WriteAfter(Duration);

impl Actor for Writer {
    const NAME: &'static str = "althing.write-behind";
}

impl Handler<WriteAfter> for Writer {
    type Reply = ();

    async fn handle(&mut self, WriteAfter(window): WriteAfter, ctx: &mut Context<Self>) {
        ctx.node().sleep(window).await;
        self.behind.write().await;
        ctx.stop();
    }
}
