//! Deletes messages that are kept no longer, in the background: the store says which, each room
//! deletes its own in batches, so that its memory, its pages of history and its stream agree.
//!
//! Every batch is one record of a room's log: it is there whole or not at all, and what a crash cut
//! off is due again at the next look. Words leave the index of the search last; the store knows of
//! which messages they still have to.

mod task;

use std::sync::Arc;
use std::time::Duration;

use althing::AskError;

use crate::room::{RoomCalls, RoomError};
use crate::rounds::Looked;
use crate::search::{ForgetError, Search};
use crate::server::Server;
use crate::storage::contract::Keeping;
use crate::storage::{ControlError, Due, ReadError, RoomId, Unindexed};
use crate::user::UserCalls;

pub use task::{Retained, RetentionError, RetentionFlags, retain};

/// Between two looks of a server that nobody asks to.
const LOOK_EVERY: Duration = Duration::from_secs(60 * 60);
/// How long to wait after a failure: about what a full disk stays full at least.
const AGAIN_AFTER: Duration = Duration::from_secs(60);
/// Messages whose words leave the index with one commit of it.
const FORGOTTEN_AT_ONCE: u64 = 20_000;

/// Why something that is due is still there; it is tried again.
#[derive(Debug, thiserror::Error)]
enum KeepError {
    #[error("{0}")]
    Read(#[from] ReadError),
    #[error("{0}")]
    Control(#[from] ControlError),
    #[error("{0}")]
    Ask(#[from] AskError),
    #[error("{0}")]
    Room(#[from] RoomError),
    #[error("the search index: {0}")]
    Index(#[from] ForgetError),
    #[error("the directory of the search index: {0}")]
    Directory(#[from] std::io::Error),
}

/// Deletes what is due until the server stops: at its start, every hour, and when it is woken.
pub(crate) async fn work_until_stopped(server: Arc<Server>) {
    let once = || async {
        match look(&server).await {
            Ok(()) => Looked::All(Some(LOOK_EVERY)),
            Err(error) => {
                tracing::warn!(%error, "messages that are due wait for the next look");
                Looked::Part(AGAIN_AFTER)
            }
        }
    };
    server.keeper.run(server.stopping(), once).await;
}

/// Deletes all that is due now. A room that fails holds up no other.
async fn look(server: &Arc<Server>) -> Result<(), KeepError> {
    let (mut after, mut failed) = (None, None);
    loop {
        let page = server.keeping().rooms_with_due(after, server.now()).await?;
        for room in page.rooms {
            if let Err(error) = empty(server, room).await {
                failed = Some(error);
            }
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    forget_words(server).await?;
    failed.map_or(Ok(()), Err)
}

/// Deletes all that is due in a room, a batch after the other.
async fn empty(server: &Arc<Server>, room: RoomId) -> Result<(), KeepError> {
    let mut messages = 0;
    while let Some(due) = server.keeping().due(room, server.now()).await? {
        messages += due.messages;
        expire(server, due).await?;
    }
    if messages > 0 {
        tracing::info!(%room, messages, "deleted what is kept no longer");
        server.attachments.sweep_soon();
    }
    Ok(())
}

async fn expire(server: &Arc<Server>, due: Due) -> Result<(), KeepError> {
    let Due { room, up_to, mentions, .. } = due;
    let mut outcome = match server.room(room).expire(up_to).await {
        Ok(Ok(_)) => Ok(()),
        // Deleted meanwhile, with all that was said in it.
        Ok(Err(RoomError::NoSuchRoom)) => return Ok(()),
        Ok(Err(error)) => return Err(error.into()),
        // It may be done all the same, and is not due again then.
        Err(error) => Err(error),
    };
    for (user, seq) in mentions {
        let user = server.user(user);
        // Who is not in memory finds it gone in the store.
        if server.may_be_active(&user) {
            outcome = user.unmentioned(room, seq).await.and(outcome);
        }
    }
    Ok(outcome?)
}

/// Takes the words of what is gone out of the index.
async fn forget_words(server: &Arc<Server>) -> Result<(), KeepError> {
    loop {
        let left = server.keeping().unindexed().await?;
        if left.is_empty() {
            return Ok(());
        }
        for Unindexed { room, from, until } in left {
            match &server.search {
                Some(search) => {
                    let mut from = from.as_u64();
                    while from < until.as_u64() {
                        let to = until.as_u64().min(from + FORGOTTEN_AT_ONCE);
                        search.forget_messages(room, from..to).await?;
                        from = to;
                    }
                }
                None => {
                    let data = server.config.data.clone();
                    server.node().blocking(move || Search::discard(&data)).await?;
                }
            }
            server.keeping().note_indexed_from(room, until).await?;
        }
    }
}
