//! Removes files that nobody keeps: uploads that no message named in time, files of deleted
//! messages, half an upload that a crash left behind. Bytes go first and the row last, so that a
//! sweep that is cut short is done again.

use std::sync::Arc;
use std::time::Duration;

use super::kept::may_remove;
use crate::server::Server;
use crate::storage::AttachmentId;
use crate::storage::contract::Files;

/// Expiry needs no more precision than this; deletions ask for a sweep by themselves.
const PAUSE: Duration = Duration::from_secs(60);
/// Files removed between two looks at the clock and at whether the server stops.
const BATCH: u32 = 256;

/// Sweeps now and then until the server stops.
pub(crate) async fn sweep_until_stopped(server: Arc<Server>) {
    let mut stopping = server.stopping();
    loop {
        sweep(&server).await;
        tokio::select! {
            _ = stopping.wait_for(|stops| *stops) => return,
            () = server.attachments.to_sweep.notified() => {}
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

/// Removes all that is to be removed now.
pub(super) async fn sweep(server: &Server) {
    loop {
        let directory = &server.config.attachments.directory;
        let _removing = match may_remove(directory) {
            Ok(Some(removing)) => removing,
            Ok(None) => {
                tracing::debug!("files are kept for a backup; the next sweep removes them");
                return;
            }
            Err(error) => {
                let directory = directory.display();
                tracing::warn!(%directory, %error, "no file can be removed: locking failed");
                return;
            }
        };
        let found = match server.files().expired_attachments(server.now(), BATCH).await {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(%error, "expired files could not be looked for");
                return;
            }
        };
        let is_all = found.len() < BATCH as usize;
        let removed = remove(server, found).await;
        // What could not be removed would be found again at once.
        if is_all || removed == 0 {
            return;
        }
    }
}

async fn remove(server: &Server, ids: Vec<AttachmentId>) -> usize {
    let mut gone = Vec::new();
    for id in ids {
        match server.attachments.objects.remove(id).await {
            Ok(()) => gone.push(id),
            Err(error) => tracing::warn!(%id, %error, "a file could not be removed"),
        }
    }
    let count = gone.len();
    if count == 0 {
        return 0;
    }
    match server.files().forget_attachments(gone).await {
        Ok(()) => count,
        Err(error) => {
            tracing::debug!(%error, "removed files are still known; the next sweep forgets them");
            0
        }
    }
}
