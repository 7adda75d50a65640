//! A state that is committed with the turns that change it.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use althing::{Actor, ActorError, ActorId, Commit, Epoch, Start, Wire, WireError};

use crate::store::{Snapshot, Store, StoreError, Turn};

/// What an actor keeps, as a whole, after each turn that has changed it.
///
/// It is written by its `Wire`: fields may be added at the end, and are read as their default from
/// what was written before. For changes beyond that, count [`SCHEMA`](Self::SCHEMA) up and say in
/// [`upgrade`](Self::upgrade) how what older versions wrote is read.
pub trait State: Wire + Default + Send + 'static {
    /// Which version of the type this is.
    const SCHEMA: u32 = 1;

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
/// self.saved.commit() }`.
pub struct Saved<S: State> {
    store: Arc<dyn Store>,
    id: ActorId,
    epoch: Epoch,
    version: u64,
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
        let activation = start.activation();
        Self::open(store, activation.id, activation.epoch).await
    }

    /// As `load`, for an actor that is not about to start: a tool, or a test.
    ///
    /// # Errors
    /// As `load`.
    pub async fn open(store: Arc<dyn Store>, id: ActorId, epoch: Epoch) -> Result<Self, LoadError> {
        let kept = store.open(&id, epoch).await?;
        let state = match kept.snapshot {
            None => S::default(),
            Some(snapshot) => {
                read(&snapshot).map_err(|error| LoadError::Unreadable { id: id.clone(), error })?
            }
        };
        Ok(Self { store, id, epoch, version: kept.version, is_changed: false, state })
    }

    /// Commits what has changed since the last time. The copy is taken now; a state that has not
    /// changed costs nothing.
    pub fn commit(&mut self) -> Commit {
        if !std::mem::take(&mut self.is_changed) {
            return Commit::unchanged();
        }
        self.version += 1;
        let mut bytes = Vec::new();
        self.state.encode(&mut bytes);
        let turn = Turn {
            id: self.id.clone(),
            epoch: self.epoch,
            version: self.version,
            snapshot: Some(Snapshot { schema: S::SCHEMA, bytes, includes: 0 }),
            events: Vec::new(),
        };
        // Called here and not in the future: commits take effect in the order of their calls.
        let answer = self.store.commit(turn);
        Commit::when(async { answer.await.map_err(ActorError::from) })
    }

    /// Commits of this actor so far, those on their way included.
    pub fn version(&self) -> u64 {
        self.version
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
        f.debug_struct("Saved").field("id", &self.id).field("version", &self.version).finish()
    }
}
