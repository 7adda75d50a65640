//! Deletes rooms and accounts in the background: the store says what, `room` and `account` do it in
//! small steps. Whoever asked was answered when the decision was on disk and nobody could reach the
//! room or account any more.
//!
//! Every step can be done twice, and what was begun is found again in the store: after a crash it
//! begins from the first step, which then finds nothing to do.

mod account;
mod room;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use althing::AskError;
use folkmoot_protocol::rpc::RpcError;

use self::account::AccountWork;
use self::room::RoomWork;
use crate::rounds::Looked;
use crate::search::ForgetError;
use crate::server::Server;
use crate::storage::contract::Erasure;
use crate::storage::{ControlError, Deletion, DeletionTarget, ReadError};

/// How long to wait after a failure: about what a full disk stays full at least.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Why a step was not done; it is tried again.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeletionError {
    #[error("{0}")]
    Read(#[from] ReadError),
    #[error("{0}")]
    Control(#[from] ControlError),
    #[error("{0}")]
    Ask(#[from] AskError),
    #[error("{0}")]
    Refused(#[from] RpcError),
    #[error("the search index: {0}")]
    Index(#[from] ForgetError),
    #[error("the directory of the search index: {0}")]
    Directory(#[from] std::io::Error),
}

/// Whether a deletion is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    More,
    Done,
}

/// A deletion being worked on.
#[derive(Debug)]
enum Work {
    Room(RoomWork),
    Account(AccountWork),
}

impl Work {
    fn new(deletion: Deletion) -> Self {
        match deletion.target {
            DeletionTarget::Room(room) => Self::Room(RoomWork::new(room)),
            DeletionTarget::Account { user, erase } => Self::Account(AccountWork::new(user, erase)),
        }
    }

    /// Does the next step; all of it is on disk when it returns.
    async fn step(&mut self, server: &Arc<Server>) -> Result<Progress, DeletionError> {
        match self {
            Self::Room(work) => work.step(server).await,
            Self::Account(work) => work.step(server).await,
        }
    }
}

/// Works on what is to be deleted until the server stops; begins with what an earlier run left.
pub(crate) async fn work_until_stopped(server: Arc<Server>) {
    let once = || async {
        match work(&server).await {
            true => Looked::All(None),
            false => Looked::Part(AGAIN_AFTER),
        }
    };
    server.deletions.run(server.stopping(), once).await;
}

/// Deletes all that is to be deleted; says whether nothing is left to do.
async fn work(server: &Arc<Server>) -> bool {
    loop {
        let deletions = match server.erasure().deletions().await {
            Ok(deletions) if deletions.is_empty() => return true,
            Ok(deletions) => deletions,
            Err(error) => {
                tracing::debug!(%error, "what is to be deleted could not be read");
                return false;
            }
        };
        let mut is_any_done = false;
        for deletion in deletions {
            match complete(server, deletion).await {
                Ok(()) => is_any_done = true,
                // The others need not wait for this one.
                Err(error) => tracing::warn!(?deletion, %error, "a deletion waits"),
            }
        }
        if !is_any_done {
            return false;
        }
    }
}

async fn complete(server: &Arc<Server>, deletion: Deletion) -> Result<(), DeletionError> {
    let mut work = Work::new(deletion);
    while work.step(server).await? == Progress::More {}
    tracing::info!(target = ?deletion.target, "deleted");
    Ok(())
}
