//! What every store promises, and the values that cross it.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use althing::{ActorId, Epoch, Timestamp};

use crate::delivery::{Delivery, Mark, Posting, Reply, Settled};

/// What a store answers, when it does.
pub type Answer<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>;

/// Keeps the state of named actors. Every adapter passes [`conformance`](crate::conformance).
///
/// # Ordering
/// Each function takes its place in the order by its call, not by the first poll of its answer:
/// commits of one actor that are called one after the other take effect in that order, and an
/// `open` or `events` sees all commits called before it.
///
/// # Cancel safety
/// Dropping an answer takes nothing back.
pub trait Store: Send + Sync + 'static {
    /// Takes the actor over: from now on commits of older epochs are refused. Returns what is kept
    /// of it.
    ///
    /// # Errors
    /// `Fenced` if a later epoch has it.
    fn open(&self, id: &ActorId, epoch: Epoch) -> Answer<Kept>;

    /// Makes one turn durable: all of it, or nothing. Ready only once it would survive the end of
    /// the process and of the machine.
    ///
    /// # Errors
    /// `Fenced`, `Conflict` or `Gap`: nothing was written. `Unknown`: it may have been.
    fn commit(&self, turn: Turn) -> Answer<()>;

    /// Events of an actor's journal after that number, the oldest first, at most `limit`.
    fn events(&self, id: &ActorId, after: u64, limit: usize) -> Answer<Vec<Event>>;

    /// What is due until then, of all actors, in the order of the marks: at most `limit`, from
    /// after that mark on.
    fn due(&self, until: Timestamp, after: Option<Mark>, limit: usize) -> Answer<Vec<Delivery>>;

    /// What each of these actors has left under names before that one, in the order of actors and
    /// names: at most `limit`. It finds what was committed before the actor was last opened.
    fn left_before(&self, names: Vec<(ActorId, String)>, limit: usize) -> Answer<Vec<Delivery>>;

    /// Takes down that deliveries were taken. It needs no epoch: only what is still as it was when
    /// it was sent is changed.
    fn settle(&self, settled: Vec<Settled>) -> Answer<()>;

    /// Whether somebody delivers what turns leave with this store: a
    /// [`Courier`](crate::Courier).
    fn is_delivering(&self) -> bool {
        false
    }
}

/// What is kept of an actor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Turns committed so far; the next one is this plus one.
    pub version: u64,
    /// The last snapshot; `None` if there has been none.
    pub snapshot: Option<Snapshot>,
    /// Number of the last event in the journal; 0 if there is none.
    pub last_event: u64,
    /// Replies that are kept, the oldest first.
    pub replies: Vec<Reply>,
}

/// A state as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Which version of the state's type wrote it.
    pub schema: u32,
    /// The state.
    pub bytes: Vec<u8>,
    /// The event up to which it includes the journal; 0 without one.
    pub includes: u64,
}

/// One event of an actor's journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its place in the journal: 1, 2, 3 …
    pub number: u64,
    /// Which version of the event's type wrote it.
    pub schema: u32,
    /// The event.
    pub bytes: Vec<u8>,
}

/// What one turn has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The actor, which has a key.
    pub id: ActorId,
    /// The epoch for which it was opened.
    pub epoch: Epoch,
    /// The version before plus one.
    pub version: u64,
    /// The state, if it has changed and is kept as a whole.
    pub snapshot: Option<Snapshot>,
    /// What is added to the journal: numbers that go on from its last one.
    pub events: Vec<Event>,
    /// What is to be delivered, or no longer.
    pub postings: Vec<Posting>,
    /// Replies to keep: numbers that go on from the last one.
    pub replies: Vec<Reply>,
    /// Replies up to this number are kept no longer; 0 for none.
    pub forget_replies: u64,
    /// Whether it is the first one of this life that leaves a letter: a
    /// [`Courier`](crate::Courier) looks for what earlier lives have left.
    pub is_first_to_leave: bool,
}

impl Turn {
    /// A turn that has changed nothing yet.
    pub fn new(id: ActorId, epoch: Epoch, version: u64) -> Self {
        let (snapshot, events, postings, replies) = (None, Vec::new(), Vec::new(), Vec::new());
        let (forget_replies, is_first_to_leave) = (0, false);
        Self {
            id,
            epoch,
            version,
            snapshot,
            events,
            postings,
            replies,
            forget_replies,
            is_first_to_leave,
        }
    }

    /// About how much room it takes.
    #[cfg(any(feature = "cassandra", feature = "postgres"))]
    pub(crate) fn bytes(&self) -> usize {
        let state = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.bytes.len());
        let events = self.events.iter().map(|event| event.bytes.len() + size_of::<Event>());
        let reply = |reply: &Reply| size_of::<Reply>() + reply.request.len() + reply.bytes.len();
        state
            + events.sum::<usize>()
            + self.replies.iter().map(reply).sum::<usize>()
            + self.postings.iter().map(Posting::bytes).sum::<usize>()
    }
}

/// Why a store did not do what was asked.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A later epoch owns the actor. Nothing was written; trying again is of no use.
    #[error("{id} was opened for {held}, after {yours}")]
    Fenced {
        /// The actor.
        id: ActorId,
        /// The epoch that owns it.
        held: Epoch,
        /// The epoch that was refused.
        yours: Epoch,
    },
    /// The commit does not follow on the last one. Nothing was written.
    #[error("{id} is at version {held}, which {yours} does not follow")]
    Conflict {
        /// The actor.
        id: ActorId,
        /// Its version in the store.
        held: u64,
        /// The version that was refused.
        yours: u64,
    },
    /// The turn's events do not go on from the last one of the journal, one by one. Nothing was
    /// written.
    #[error("the journal of {id} is at event {held}, which {yours} does not follow")]
    Gap {
        /// The actor.
        id: ActorId,
        /// The event before.
        held: u64,
        /// The event that was refused.
        yours: u64,
    },
    /// An anonymous actor has no place in a store.
    #[error("{0} has no key, so nothing of it can be kept")]
    NoKey(ActorId),
    /// The store has no room for something so large. Nothing was written; trying again is of no
    /// use.
    #[error(
        "the {what} of an actor of kind {kind} has {bytes} bytes, and the store takes {max}",
        kind = id.kind()
    )]
    TooLarge {
        /// The actor.
        id: ActorId,
        /// What of it.
        what: &'static str,
        /// Its size.
        bytes: usize,
        /// The largest size.
        max: usize,
    },
    /// The turn has more events, postings and replies than the store writes as one. Nothing was
    /// written; trying again is of no use.
    #[error("a turn of {id} makes {changes} changes, and the store takes {max}")]
    TooMany {
        /// The actor.
        id: ActorId,
        /// So many.
        changes: usize,
        /// The most.
        max: usize,
    },
    /// The store does not work now. Nothing was written; a retry may succeed.
    #[error("the store does not work: {0}")]
    Unavailable(Arc<dyn Error + Send + Sync>),
    /// The store failed on the way, and nobody knows what was written. Opening the actor anew
    /// tells.
    #[error("nobody knows what the store has written: {0}")]
    Unknown(Arc<dyn Error + Send + Sync>),
}

impl StoreError {
    /// Whether something may have been written.
    pub fn may_have_written(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }
}

/// The key by which an actor is kept.
///
/// # Errors
/// It has none.
pub(crate) fn with_key(id: &ActorId) -> Result<&str, StoreError> {
    id.key().map(|key| &**key).ok_or_else(|| StoreError::NoKey(id.clone()))
}

/// Actors in their order, those left out that have no key: they have left nothing.
pub(crate) fn in_order(mut names: Vec<(ActorId, String)>) -> Vec<(ActorId, String)> {
    names.retain(|(id, _)| id.key().is_some());
    names.sort_unstable();
    names
}

/// # Errors
/// Somebody in the turn has no key.
pub(crate) fn check_names(turn: &Turn) -> Result<(), StoreError> {
    with_key(&turn.id)?;
    for posting in &turn.postings {
        if let Posting::Put(delivery) = posting {
            with_key(&delivery.owner)?;
            with_key(&delivery.letter.to)?;
        }
    }
    Ok(())
}

/// # Errors
/// The turn does not follow on that version, or its events not on that one: they would take the
/// place of others, or leave a hole.
pub(crate) fn check_follows(turn: &Turn, version: u64, last_event: u64) -> Result<(), StoreError> {
    let id = || turn.id.clone();
    if turn.version != version + 1 {
        return Err(StoreError::Conflict { id: id(), held: version, yours: turn.version });
    }
    let mut events = (last_event..).zip(&turn.events);
    match events.find(|(held, event)| event.number != held + 1) {
        None => Ok(()),
        Some((held, event)) => Err(StoreError::Gap { id: id(), held, yours: event.number }),
    }
}
