//! What a client sees of nodes and actors.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::ClientError;
use super::connection::Connection;
use super::protocol::{Condition, Seen, Sight, Whereabouts};
use crate::member::{State, View};

/// How a node is, as it says itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeStatus {
    /// What it may do at present.
    pub state: State,
    /// The view that it knows.
    pub view: u64,
    /// Actors that have their state in memory.
    pub live: u64,
    /// Messages that wait in mailboxes.
    pub waiting: u64,
    /// Clients that are connected.
    pub clients: u64,
}

impl From<Condition> for NodeStatus {
    fn from(condition: Condition) -> Self {
        let Condition { state, view, live, waiting, clients } = condition;
        Self { state: state.into(), view, live, waiting, clients }
    }
}

/// An actor in the memory of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundActor {
    /// Kind and key.
    pub name: String,
    /// Messages that wait.
    pub depth: u64,
    /// How long it has not taken a message that waits; zero if none waits.
    pub oldest: Duration,
    /// Whether it has its state in memory.
    pub is_active: bool,
    /// Messages it has taken since it began, modulo 2^32.
    pub handled: u64,
}

impl From<Seen> for FoundActor {
    fn from(seen: Seen) -> Self {
        let Seen { name, depth, oldest_s, is_active, handled } = seen;
        Self { name, depth, oldest: Duration::from_secs(oldest_s), is_active, handled }
    }
}

/// Actors of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listed {
    /// Some of them, by name.
    pub actors: Vec<FoundActor>,
    /// Actors that would have been listed too, had there been room.
    pub left: u64,
}

impl Listed {
    pub(super) fn new(actors: Vec<Seen>, left: u64) -> Self {
        Self { actors: actors.into_iter().map(Into::into).collect(), left }
    }
}

/// Where an actor lives.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// The node that owns its bucket; `None` while nobody does.
    pub node: Option<String>,
    /// The node that its bucket is on the way to.
    pub going_to: Option<String>,
    /// Its bucket, one of 4,096, or a higher number where its kind asks for labels.
    pub bucket: u32,
    /// The epoch in which the bucket belongs to that node.
    pub epoch: u64,
    /// What it does; `None` if it is not in memory.
    pub actor: Option<FoundActor>,
}

impl From<Whereabouts> for Found {
    fn from(found: Whereabouts) -> Self {
        let Whereabouts { bucket, epoch, owner, going_to, actor, is_here: _ } = found;
        Self { node: owner, going_to, bucket, epoch, actor: actor.map(Into::into) }
    }
}

/// Views of a cluster, one after the other.
pub struct Changes {
    at: Arc<Connection>,
    views: watch::Receiver<Option<Arc<Sight>>>,
}

impl Changes {
    pub(super) fn new(at: Arc<Connection>) -> Self {
        let views = at.views();
        Self { at, views }
    }

    /// The present view at first, then the next one; where several come at once, the latest.
    ///
    /// # Errors
    /// `Lost` when the connection ends; [`Client::changes`](super::Client::changes) begins anew.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping the future.
    pub async fn next(&mut self) -> Result<View, ClientError> {
        tokio::select! {
            biased;
            changed = self.views.changed() => {
                if changed.is_ok() && let Some(sight) = &*self.views.borrow_and_update() {
                    return Ok(Sight::clone(sight).into());
                }
            }
            () = self.at.ended() => {}
        }
        Err(ClientError::Lost(self.at.name.clone()))
    }
}
