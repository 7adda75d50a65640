//! Search: `query` says what is wanted, `index` finds where it may stand, the store says who may
//! read it, `highlight` shows it.
//!
//! ```text
//! log ─▶ SQLite ─▶ follower ─▶ index (data/search)          written behind, never waited for
//! query ─▶ index ─▶ places ─▶ SQLite: text of now, member? ─▶ highlight ─▶ hits
//! ```
//! The index is derived from the store and can be deleted while the server is stopped.

mod follower;
pub(crate) mod highlight;
pub(crate) mod index;
mod newest;
mod place;
pub(crate) mod query;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use althing::{ActorRef, AskError, Node};

pub(crate) use follower::{Follower, FollowerCalls};
pub(crate) use index::{Index, IndexError, Lookup};
pub(crate) use newest::Bounds;
pub(crate) use place::Place;

pub(crate) use crate::text;

use follower::Progress;

use crate::ports::Feed;
use crate::storage::contract::{ChangeFeed, StreamLog};
use crate::storage::{Lsn, RoomId};

/// How long a search waits for the index to take in what was just sent; after that it answers with
/// what is there and says how far behind that is.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the index may take to forget a room: a commit, behind what it has to take in just then.
const FORGET_TIMEOUT: Duration = Duration::from_secs(60);

/// Why the index has not forgotten a room; a retry is safe.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ForgetError {
    #[error("{0}")]
    Ask(#[from] AskError),
    #[error("{0}")]
    Index(#[from] Arc<IndexError>),
}

/// The index of a server and the actor that keeps it.
#[derive(Debug)]
pub(crate) struct Search {
    pub(crate) index: Arc<Index>,
    follower: ActorRef<Follower>,
}

impl Search {
    /// Opens the index of a store; blocks.
    pub(crate) fn open(
        data: &Path,
        store: &(impl ChangeFeed + StreamLog),
        heap_bytes: usize,
    ) -> Result<Index, IndexError> {
        let applied = store.stats().applied_lsn;
        Index::open(&data.join("search"), store.stream_epoch(), applied, heap_bytes)
    }

    /// Starts to follow the store.
    pub(crate) fn start(node: &Node, feed: Feed, index: Index) -> Self {
        let index = Arc::new(index);
        let of_actor = index.clone();
        let follower = node.spawn_with(move |_| {
            let follower = Follower::new(feed.clone(), of_actor.clone());
            async move { Ok(follower?) }
        });
        Self { index, follower }
    }

    /// Takes a room out of the index whose messages are gone from the store.
    pub(crate) async fn forget_room(&self, room: RoomId) -> Result<(), ForgetError> {
        Ok(self.follower.forget_room(room).timeout(FORGET_TIMEOUT).await??)
    }

    /// Takes messages of a room out of the index that are gone from the store.
    pub(crate) async fn forget_messages(
        &self,
        room: RoomId,
        seqs: Range<u64>,
    ) -> Result<(), ForgetError> {
        Ok(self.follower.forget_messages(room, seqs).timeout(FORGET_TIMEOUT).await??)
    }

    /// Removes the index of a server that keeps none: it would have words that are erased
    /// everywhere else, and is made anew when it is wanted again. Blocks.
    pub(crate) fn discard(data: &Path) -> std::io::Result<()> {
        match std::fs::remove_dir_all(data.join("search")) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Has the index take in the log up to `to`; returns how many records it lacks.
    pub(crate) async fn catch_up(&self, to: Lsn) -> u64 {
        // In whatever time there is not, the index is as it is, and the caller is told.
        let _ = tokio::time::timeout(CATCH_UP_TIMEOUT, self.take_in(to)).await;
        to.0.saturating_sub(self.index.mark().0)
    }

    /// Has the index take in the log up to `to`, or as far as it can.
    async fn take_in(&self, to: Lsn) {
        while self.index.mark() < to {
            match self.follower.catch_up(to).await {
                Ok(Progress::Behind) => {}
                Ok(Progress::CaughtUp | Progress::Failing) | Err(_) => return,
            }
        }
    }
}
