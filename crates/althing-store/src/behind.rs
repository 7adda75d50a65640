//! Write-behind: what turns have changed waits for a while, and is then written as one.
//!
//! It waits beside its actor: whoever writes it looks here, so that nothing is written twice or out
//! of order. What an actor has not written when it ends is written when its state is dropped; a
//! crash loses it.
//!
//! A turn that the store could not take is kept as it is, and goes before all else when something
//! is written next. Until then changes do not wait: a crash loses those of one window.

use std::sync::Arc;
use std::time::Duration;

use althing::{Actor, Context, Handler, Node};
use parking_lot::Mutex;

use crate::store::{Answer, Store, StoreError, Turn};

/// When a turn's changes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// With the turn: what it lets out waits until they are durable.
    Through,
    /// So much later, together with those of the turns in between: a crash loses the changes of
    /// that time, though their replies have left. A turn that leaves a letter, sets a reminder or
    /// keeps a reply is written through, with what waits. What the store could not take is kept and
    /// tried again; until it is taken, changes are written through.
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
    /// What the store was given and has not taken. Nothing is added to it: its number is given out,
    /// and so may be the next one.
    refused: Option<Turn>,
    turn: Option<Turn>,
    failure: Option<StoreError>,
    /// Whether somebody will come to write.
    has_writer: bool,
    /// Whether the state was dropped.
    is_over: bool,
}

/// What waited, for one who writes it with more.
pub(crate) struct Earlier {
    /// The store's answer to what it has not taken before, and was given again.
    pub(crate) again: Option<Answer<()>>,
    /// What was to be written next.
    pub(crate) turn: Option<Turn>,
}

/// Whether something is left to be written.
enum Left {
    Nothing,
    Something,
}

impl Behind {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, waiting: Arc::default() }
    }

    /// Whether changes may wait: nothing does that the store has not taken.
    pub(crate) fn may_wait(&self) -> bool {
        self.waiting.lock().refused.is_none()
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
        add(waiting.turn.get_or_insert_with(make));
        let has_writer = std::mem::replace(&mut waiting.has_writer, true);
        // Released before telling: the writer looks here.
        drop(waiting);
        if !has_writer {
            self.write_after(node, window);
        }
        Ok(())
    }

    fn write_after(&self, node: &Node, window: Duration) {
        let writer = node.spawn(Writer { behind: self.clone() });
        // A new actor's mailbox has room; on a node that ends, the drop of the state writes.
        _ = writer.send(WriteAfter(window)).try_tell();
    }

    /// Takes what waits, to write it with more. What the store has not taken goes to it at once.
    pub(crate) fn take(&self) -> Earlier {
        let mut waiting = self.waiting.lock();
        let turn = waiting.turn.take();
        let again = waiting.refused.take().map(|refused| self.commit_again(refused));
        Earlier { again, turn }
    }

    fn commit_again(&self, refused: Turn) -> Answer<()> {
        let (behind, answer) = (self.clone(), self.store.commit(refused.clone()));
        Box::pin(async move {
            let answered = answer.await;
            if let Err(StoreError::Unavailable(_)) = answered {
                behind.waiting.lock().refused = Some(refused);
            }
            answered
        })
    }

    /// Writes what waits, whatever comes of it: for a state that is dropped.
    pub(crate) fn write_at_last(&self) {
        let mut waiting = self.waiting.lock();
        waiting.is_over = true;
        for turn in [waiting.refused.take(), waiting.turn.take()].into_iter().flatten() {
            // To drop the answer takes nothing back.
            drop(self.store.commit(turn));
        }
    }

    /// Writes what the store has not taken, and then what waits.
    async fn write(&self) -> Left {
        loop {
            let (is_again, turn, answer) = {
                let mut waiting = self.waiting.lock();
                let refused = waiting.refused.take();
                let is_again = refused.is_some();
                let Some(turn) = refused.or_else(|| waiting.turn.take()) else {
                    return waiting.end_round();
                };
                // Called under the lock: commits take effect in the order of their calls.
                (is_again, turn.clone(), self.store.commit(turn))
            };
            let answered = answer.await;
            let mut waiting = self.waiting.lock();
            match answered {
                Ok(()) if is_again => {}
                Ok(()) => return waiting.end_round(),
                Err(StoreError::Unavailable(why)) if !waiting.is_over => {
                    tracing::warn!(%why, "what was to be written behind is tried again");
                    waiting.refused = Some(turn);
                    return waiting.end_round();
                }
                Err(failure) => {
                    tracing::warn!(%failure, "what was to be written behind is lost");
                    waiting.failure = Some(failure);
                    return waiting.end_round();
                }
            }
        }
    }
}

impl Waiting {
    fn end_round(&mut self) -> Left {
        self.has_writer = self.refused.is_some() || self.turn.is_some();
        match self.has_writer {
            true => Left::Something,
            false => Left::Nothing,
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
        if let Left::Something = self.behind.write().await {
            self.behind.write_after(&ctx.node(), window);
        }
        ctx.stop();
    }
}
