//! Write-behind: what turns have changed waits for a while, and is then written as one.
//!
//! It waits beside its actor: whoever writes it looks here, so that nothing is written twice or out
//! of order. What an actor has not written when it ends is written then, and waited for; what the
//! store does not take is given to it once more when the state is dropped. A crash loses it.
//!
//! A turn that the store could not take is kept as it is, and so are those that were given to it
//! behind that one: they go before all else when something is written next. Until they are taken
//! changes do not wait, so no more gathers that was acknowledged.

use std::sync::Arc;
use std::time::Duration;

use althing::{Actor, ActorId, Context, Handler, Node, WeakNode};
use parking_lot::Mutex;

use crate::store::{Answer, Event, Store, StoreError, Turn};

/// Bytes of events that gather in one turn, at most: a store takes 8 MiB of one, and they wait in
/// memory. What would be more is written through.
const GATHERED_BYTES_MAX: usize = 1 << 20;

/// When a turn's changes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// With the turn: what it lets out waits until they are durable.
    Through,
    /// So much later, together with those of the turns in between: a crash loses the changes of
    /// that time, though their replies have left. A turn that leaves a letter, sets a reminder or
    /// keeps a reply is written through, behind what waits, and so is one whose events would make
    /// those that wait more than a mebibyte. What the store could not take is kept
    /// and tried again; until it is taken, changes are written through.
    Behind(Duration),
}

/// What waits of one actor. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Behind {
    id: ActorId,
    store: Arc<dyn Store>,
    node: Option<WeakNode>,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Default)]
struct Waiting {
    /// What the store was given and has not taken yet, in the order of versions.
    given: Vec<Given>,
    /// What is given to it next.
    turn: Option<Turn>,
    /// Bytes of its events.
    gathered_bytes: usize,
    failure: Option<StoreError>,
    /// Whether somebody will come to write.
    has_writer: bool,
}

/// A turn that the store was given. Nothing is added to it: its number is given out, and so may be
/// the next one.
struct Given {
    turn: Turn,
    /// Whether the store has still to answer.
    is_under_way: bool,
    was_refused: bool,
}

/// Versions of what was given to the store, with its answers.
type Answers = Vec<(u64, Answer<()>)>;

/// What the answer to a turn says of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Lost,
    /// The store has it, or is given it again.
    Goes,
}

/// Whether something is left to be written.
enum Left {
    Nothing,
    Something,
}

impl Behind {
    pub(crate) fn new(id: ActorId, store: Arc<dyn Store>, node: Option<WeakNode>) -> Self {
        Self { id, store, node, waiting: Arc::default() }
    }

    /// Whether a turn with those events may wait: nothing does that the store has refused, not even
    /// on its way to the store again, and there is room for them.
    pub(crate) fn may_wait(&self, events: &[Event]) -> bool {
        let waiting = self.waiting.lock();
        let has_room = waiting.gathered_bytes + bytes(events) <= GATHERED_BYTES_MAX;
        has_room && waiting.given.iter().all(|given| !given.was_refused)
    }

    /// Whether the store has all that it shall have.
    pub(crate) fn is_empty(&self) -> bool {
        let waiting = self.waiting.lock();
        waiting.given.is_empty() && waiting.turn.is_none()
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
        let turn = waiting.turn.get_or_insert_with(make);
        let gathered = turn.events.len();
        add(turn);
        let more = bytes(&turn.events[gathered..]);
        waiting.gathered_bytes += more;
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

    /// Gives the store what it has not taken, and then what waits; `None` if there is nothing.
    pub(crate) fn give(&self) -> Option<Answer<()>> {
        let answers = self.give_all();
        if answers.is_empty() {
            return None;
        }
        let behind = self.clone();
        Some(Box::pin(async move { behind.hear(answers).await }))
    }

    fn give_all(&self) -> Answers {
        // Kept while the store is called: commits take effect in the order of their calls.
        let waiting = &mut *self.waiting.lock();
        waiting.given.extend(waiting.turn.take().map(Given::new));
        waiting.gathered_bytes = 0;
        let kept = waiting.given.iter_mut().filter(|given| !given.is_under_way);
        kept.map(|given| {
            given.is_under_way = true;
            (given.turn.version, self.store.commit(given.turn.clone()))
        })
        .collect()
    }

    /// Hears all answers.
    ///
    /// # Errors
    /// The first one that is an error.
    async fn hear(&self, answers: Answers) -> Result<(), StoreError> {
        let mut outcome = Ok(());
        for (version, answer) in answers {
            let answered = answer.await;
            if self.waiting.lock().settle(version, &answered) == Fate::Lost
                && let Some(node) = self.node.as_ref().and_then(WeakNode::upgrade)
            {
                node.count_lost(&self.id);
            }
            outcome = outcome.and(answered);
        }
        outcome
    }

    /// Writes what waits, for a state that is dropped; what is lost is said in the log, and counted.
    pub(crate) fn write_at_last(&self) {
        let mut waiting = self.waiting.lock();
        // Those under way, too: they may be refused yet, and none is written twice.
        let given = std::mem::take(&mut waiting.given).into_iter().map(|given| given.turn);
        let turns = given.chain(waiting.turn.take());
        let answers: Answers = turns.map(|turn| (turn.version, self.store.commit(turn))).collect();
        // Released before telling: a writer looks here.
        drop(waiting);
        let node = self.node.as_ref().and_then(WeakNode::upgrade);
        let Some(node) = node.filter(|_| !answers.is_empty()) else { return };
        let hearing = node.spawn(LastAnswers { id: self.id.clone() });
        // On a node that ends nobody hears; to drop the answers takes nothing back.
        _ = hearing.send(Hear(answers)).try_tell();
    }

    /// Writes what the store has not taken, and then what waits.
    async fn write(&self) -> Left {
        // What has failed is kept, or told to the next change.
        _ = self.hear(self.give_all()).await;
        self.waiting.lock().end_round()
    }
}

impl Given {
    fn new(turn: Turn) -> Self {
        Self { turn, is_under_way: false, was_refused: false }
    }
}

impl Waiting {
    fn settle(&mut self, version: u64, answered: &Result<(), StoreError>) -> Fate {
        let place = self.given.iter().position(|given| given.turn.version == version);
        // None: the state was dropped, and it was given to the store once more.
        let Some(place) = place else { return Fate::Goes };
        if let Err(why) = answered
            && may_be_taken_yet(why)
        {
            tracing::warn!(%why, "what was to be written behind is tried again");
            let given = &mut self.given[place];
            (given.is_under_way, given.was_refused) = (false, true);
            return Fate::Goes;
        }
        self.given.remove(place);
        let Err(failure) = answered else { return Fate::Goes };
        tracing::warn!(%failure, "what was to be written behind is lost");
        self.failure = Some(failure.clone());
        Fate::Lost
    }

    fn end_round(&mut self) -> Left {
        let is_left = !self.given.is_empty() || self.turn.is_some();
        // After a failure the next change ends the actor, and nothing is written before that.
        self.has_writer = is_left && self.failure.is_none();
        match self.has_writer {
            true => Left::Something,
            false => Left::Nothing,
        }
    }
}

/// Whether the store was away, or has not taken what comes before.
fn may_be_taken_yet(refused: &StoreError) -> bool {
    match refused {
        StoreError::Unavailable(_) => true,
        StoreError::Conflict { held, yours, .. } => held < yours,
        _ => false,
    }
}

fn bytes(events: &[Event]) -> usize {
    events.iter().map(|event| event.bytes.len() + size_of::<Event>()).sum()
}

/// Hears what became of the last that an actor has given to the store, and ends.
struct LastAnswers {
    id: ActorId,
}

struct Hear(Answers);

impl Actor for LastAnswers {
    const NAME: &'static str = "althing.write-behind-last";
}

impl Handler<Hear> for LastAnswers {
    type Reply = ();

    async fn handle(&mut self, Hear(answers): Hear, ctx: &mut Context<Self>) {
        for (version, answer) in answers {
            match answer.await {
                Ok(()) => {}
                // It was given twice.
                Err(StoreError::Conflict { held, yours, .. }) if held >= yours => {}
                Err(why) => {
                    let id = &self.id;
                    tracing::error!(%id, version, %why, "changes written behind are lost");
                    ctx.node().count_lost(id);
                }
            }
        }
        ctx.stop();
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
