//! A state that is committed with the turns that change it.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use althing::{Actor, ActorId, Commit, Epoch, Start, Wire, WireError};

use crate::behind::Writes;
use crate::post::{Post, Retention};
use crate::request::RequestId;
use crate::row::Row;
use crate::store::{Kept, Snapshot, Store, StoreError};

/// What an actor keeps, as a whole, after each turn that has changed it.
///
/// It is written by its `Wire`: fields may be added at the end, and are read as their default from
/// what was written before. For changes beyond that, count [`SCHEMA`](Self::SCHEMA) up and say in
/// [`upgrade`](Self::upgrade) how what older versions wrote is read.
pub trait State: Wire + Default + Send + 'static {
    /// Which version of the type this is.
    const SCHEMA: u32 = 1;

    /// For how long replies are kept for requests that come again.
    const REPLIES: Retention = Retention::DEFAULT;

    /// When changes are written.
    const WRITES: Writes = Writes::Through;

    /// Reads what another version of the type has written.
    ///
    /// # Errors
    /// It cannot be read; by default, no other version can.
    fn upgrade(schema: u32, _bytes: &[u8]) -> Result<Self, WireError> {
        let own = Self::SCHEMA;
        Err(WireError::new(format!("schema {schema}, where {own} is known and no upgrade from it")))
    }
}

/// A state that a [`Store`] keeps. It is used like the state itself; to change it marks it as
/// changed.
///
/// The actor commits it: `const TURNS: Turns = Turns::Held` and `fn commit(..) {
/// self.saved.commit() }`, and the same with `commit_rest` for changes that wait.
pub struct Saved<S: State> {
    row: Row,
    is_changed: bool,
    state: S,
}

/// Why an actor's state could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What is kept cannot be read.
    #[error("what is kept of {id} cannot be read: {error}")]
    Unreadable {
        /// The actor.
        id: ActorId,
        /// Why.
        error: WireError,
    },
    /// The store has lost an event: the state would be another one without it.
    #[error("the journal of {id} lacks event {event}")]
    Lacking {
        /// The actor.
        id: ActorId,
        /// The first one that is missing.
        event: u64,
    },
}

impl<S: State> Saved<S> {
    /// Takes over what is kept of the actor that starts, for the epoch in which it starts; a new
    /// actor has the default state.
    ///
    /// # Errors
    /// A later epoch owns the actor, the store does not work, or what is kept cannot be read.
    pub async fn load<A: Actor>(
        store: Arc<dyn Store>,
        start: &Start<A>,
    ) -> Result<Self, LoadError> {
        let (row, kept) = Row::load(store, start).await?;
        Self::of(row, &kept)
    }

    /// As `load`, for an actor that is not about to start: a tool, or a test.
    ///
    /// # Errors
    /// As `load`.
    pub async fn open(store: Arc<dyn Store>, id: ActorId, epoch: Epoch) -> Result<Self, LoadError> {
        let (row, kept) = Row::open(store, id, epoch).await?;
        Self::of(row, &kept)
    }

    fn of(mut row: Row, kept: &Kept) -> Result<Self, LoadError> {
        row.declare::<S>();
        let state = kept.snapshot.as_ref().map_or_else(|| Ok(S::default()), read);
        let state = state.map_err(|error| LoadError::Unreadable { id: row.id().clone(), error })?;
        Ok(Self { row, is_changed: false, state })
    }

    /// Does what a request asks for, unless an earlier turn has: then its reply is given again. So
    /// a request has its effect once, however often it comes, for as long as replies are kept
    /// ([`State::REPLIES`]).
    ///
    /// For a handler that waits in between: [`Post::replied`] and [`Post::reply`].
    ///
    /// # Panics
    /// The reply that is kept is of another type: see [`Post::replied`].
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

    /// Commits what has changed since the last time, together with what the turn leaves to be
    /// delivered. The copy is taken now; a state that has not changed costs nothing.
    pub fn commit(&mut self) -> Commit {
        let snapshot = std::mem::take(&mut self.is_changed).then(|| {
            let mut bytes = Vec::new();
            self.state.encode(&mut bytes);
            Snapshot { schema: S::SCHEMA, bytes, includes: 0 }
        });
        self.row.commit(snapshot, Vec::new())
    }

    /// Commits the changes that wait ([`Writes::Behind`]), before the actor ends.
    pub fn commit_rest(&mut self) -> Commit {
        self.row.commit_rest()
    }

    /// Commits of this actor so far, those on their way included.
    pub fn version(&self) -> u64 {
        self.row.version()
    }
}

/// Reads a snapshot, whichever version of the type wrote it.
///
/// # Errors
/// It cannot be read.
pub(crate) fn read<S: State>(snapshot: &Snapshot) -> Result<S, WireError> {
    if snapshot.schema == S::SCHEMA {
        S::decode(&snapshot.bytes)
    } else {
        S::upgrade(snapshot.schema, &snapshot.bytes)
    }
}

impl<S: State> Deref for Saved<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.state
    }
}

impl<S: State> DerefMut for Saved<S> {
    fn deref_mut(&mut self) -> &mut S {
        self.is_changed = true;
        &mut self.state
    }
}

impl<S: State> std::fmt::Debug for Saved<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Saved")
            .field("id", self.row.id())
            .field("version", &self.row.version())
            .finish()
    }
}
