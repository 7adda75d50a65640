//! A state that is the fold of its events, which are kept in a journal.

use std::ops::Deref;
use std::sync::Arc;

use althing::{Actor, ActorId, Commit, Epoch, Start, Wire, WireError};

use crate::post::Post;
use crate::request::RequestId;
use crate::row::Row;
use crate::saved::{LoadError, State, read};
use crate::store::{Event, Kept, Snapshot, Store};

/// Events read at once when an actor starts.
const PAGE: usize = 1_000;
/// Events after which a snapshot is taken, unless `snapshot_every` says otherwise: few enough to
/// start within a millisecond or so.
const SNAPSHOT_EVERY: u64 = 500;

/// A state that changes by events only.
///
/// The state itself is a [`State`], because snapshots of it keep starting quick; they hold nothing
/// that the events do not.
pub trait Fold: State {
    /// What can happen.
    type Event: Wire + Send + 'static;

    /// Which version of the event's type this is.
    const EVENT_SCHEMA: u32 = 1;

    /// What an event changes. It decides nothing: whether the event may happen was decided before
    /// it was recorded.
    fn apply(&mut self, event: Self::Event);

    /// Reads an event that another version of the type has written.
    ///
    /// # Errors
    /// It cannot be read; by default, no other version can.
    fn upgrade_event(schema: u32, _bytes: &[u8]) -> Result<Self::Event, WireError> {
        let own = Self::EVENT_SCHEMA;
        Err(WireError::new(format!(
            "event schema {schema}, where {own} is known and no upgrade from it"
        )))
    }
}

/// A state that a [`Store`] keeps as a journal of events, with a snapshot now and then. It can be
/// read like the state itself; it changes by [`record`](Self::record).
///
/// The actor commits it, as it does a [`Saved`](crate::Saved): `#[actor(name = "…", durable =
/// journal)]`.
///
/// ```
/// use std::sync::Arc;
///
/// use althing::{ActorError, Node, Start, Wire, actor};
/// use althing_store::{Fold, Journaled, Memory, State, Store};
///
/// #[derive(Default, Wire)]
/// struct Stock {
///     pieces: u64,
/// }
///
/// #[derive(Wire)]
/// enum Moved {
///     In(u64),
///     Out(u64),
/// }
///
/// impl State for Stock {}
///
/// impl Fold for Stock {
///     type Event = Moved;
///     fn apply(&mut self, event: Moved) {
///         match event {
///             Moved::In(pieces) => self.pieces += pieces,
///             Moved::Out(pieces) => self.pieces -= pieces,
///         }
///     }
/// }
///
/// struct Shelf {
///     journal: Journaled<Stock>,
/// }
///
/// #[actor(name = "example.shelf", durable = journal)]
/// impl Shelf {
///     async fn put(&mut self, pieces: u64) -> u64 {
///         self.journal.record(Moved::In(pieces));
///         self.journal.pieces
///     }
///
///     async fn take(&mut self, pieces: u64) -> Result<u64, String> {
///         if pieces > self.journal.pieces {
///             return Err(format!("only {} left", self.journal.pieces));
///         }
///         self.journal.record(Moved::Out(pieces));
///         Ok(self.journal.pieces)
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store: Arc<dyn Store> = Arc::new(Memory::new());
/// let open = move |start: Start<Shelf>| {
///     let store = store.clone();
///     async move { Ok::<_, ActorError>(Shelf { journal: Journaled::load(store, &start).await? }) }
/// };
/// let shelf = Node::builder("shop").actor(open).build().get::<Shelf>("tea");
/// shelf.put(10).await?;
/// assert_eq!(shelf.take(3).await?, Ok(7));
/// shelf.stop().await;
/// assert!(shelf.take(8).await?.is_err(), "it remembers");
/// # Ok(())
/// # }
/// ```
pub struct Journaled<S: Fold> {
    row: Row,
    state: S,
    /// Recorded in this turn.
    fresh: Vec<Event>,
    last_event: u64,
    /// What the last snapshot includes.
    included: u64,
    snapshot_every: u64,
}

impl<S: Fold> Journaled<S> {
    /// Takes over the journal of the actor that starts, for the epoch in which it starts, and folds
    /// it.
    ///
    /// # Errors
    /// A later epoch owns the actor, the store does not work, or what is kept cannot be read.
    pub async fn load<A: Actor>(
        store: Arc<dyn Store>,
        start: &Start<A>,
    ) -> Result<Self, LoadError> {
        let (row, kept) = Row::load(store.clone(), start).await?;
        Self::fold(&*store, row, kept).await
    }

    /// As `load`, for an actor that is not about to start: a tool, or a test.
    ///
    /// # Errors
    /// As `load`.
    pub async fn open(store: Arc<dyn Store>, id: ActorId, epoch: Epoch) -> Result<Self, LoadError> {
        let (row, kept) = Row::open(store.clone(), id, epoch).await?;
        Self::fold(&*store, row, kept).await
    }

    async fn fold(store: &dyn Store, mut row: Row, kept: Kept) -> Result<Self, LoadError> {
        row.declare::<S>();
        let id = row.id().clone();
        let unreadable = |error| LoadError::Unreadable { id: id.clone(), error };
        let (mut state, included) = match kept.snapshot {
            None => (S::default(), 0),
            Some(snapshot) => (read::<S>(&snapshot).map_err(unreadable)?, snapshot.includes),
        };
        let lacking = |event| LoadError::Lacking { id: id.clone(), event };
        let mut last_event = included;
        loop {
            let page = store.events(&id, last_event, PAGE).await?;
            for event in &page {
                if event.number != last_event + 1 {
                    return Err(lacking(last_event + 1));
                }
                state.apply(read_event::<S>(event).map_err(unreadable)?);
                last_event = event.number;
            }
            if page.len() < PAGE {
                break;
            }
        }
        if last_event < kept.last_event {
            return Err(lacking(last_event + 1));
        }
        let (fresh, snapshot_every) = (Vec::new(), SNAPSHOT_EVERY);
        Ok(Self { row, state, fresh, last_event, included, snapshot_every })
    }

    /// Sets after how many events a snapshot is taken; 500 unless said.
    #[must_use]
    pub fn snapshot_every(mut self, events: u64) -> Self {
        self.snapshot_every = events.max(1);
        self
    }

    /// Lets an event happen: the state changes now, and the journal with this turn's commit.
    pub fn record(&mut self, event: S::Event) {
        let mut bytes = Vec::new();
        event.encode(&mut bytes);
        self.last_event += 1;
        self.fresh.push(Event { number: self.last_event, schema: S::EVENT_SCHEMA, bytes });
        self.state.apply(event);
    }

    /// As [`Saved::once`](crate::Saved::once).
    pub fn once<R: Wire>(&mut self, request: &RequestId, work: impl FnOnce(&mut Self) -> R) -> R {
        if let Some(reply) = self.row.post.replied(request) {
            return reply;
        }
        let reply = work(self);
        self.row.post.reply(request, &reply);
        reply
    }

    /// What this turn leaves to be delivered, and the replies of earlier ones.
    pub fn post(&mut self) -> &mut Post {
        &mut self.row.post
    }

    /// Commits what has been recorded since the last time, together with what the turn leaves to be
    /// delivered.
    pub fn commit(&mut self) -> Commit {
        let snapshot = if self.fresh.is_empty() { None } else { self.due_snapshot() };
        let events = std::mem::take(&mut self.fresh);
        self.row.commit(snapshot, events)
    }

    /// As [`Saved::commit_rest`](crate::Saved::commit_rest).
    pub fn commit_rest(&mut self) -> Commit {
        self.row.commit_rest()
    }

    fn due_snapshot(&mut self) -> Option<Snapshot> {
        if self.last_event - self.included < self.snapshot_every {
            return None;
        }
        self.included = self.last_event;
        let mut bytes = Vec::new();
        self.state.encode(&mut bytes);
        Some(Snapshot { schema: S::SCHEMA, bytes, includes: self.included })
    }

    /// Number of the last event, those of this turn included.
    pub fn last_event(&self) -> u64 {
        self.last_event
    }
}

fn read_event<S: Fold>(event: &Event) -> Result<S::Event, WireError> {
    if event.schema == S::EVENT_SCHEMA {
        S::Event::decode(&event.bytes)
    } else {
        S::upgrade_event(event.schema, &event.bytes)
    }
}

impl<S: Fold> Deref for Journaled<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.state
    }
}

impl<S: Fold> std::fmt::Debug for Journaled<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journaled")
            .field("id", self.row.id())
            .field("events", &self.last_event)
            .finish()
    }
}
