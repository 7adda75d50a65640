//! Removes pictures that nobody shows: what a kill leaves behind between the bytes of a picture and
//! the account that was to show it, or between another picture and the bytes of the one before.
//!
//! A picture that has just come is shown by nobody yet, and a clock that steps says nothing of its
//! age: so only what nobody shows at two looks goes, which are longer apart than any request takes.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::portrait;
use crate::server::Server;
use crate::storage::PictureId;
use crate::storage::contract::Files;

/// What stays meanwhile costs some kilobytes; a look costs a list of all pictures.
const PAUSE: Duration = Duration::from_secs(60 * 60);

/// Looks now and then until the server stops.
pub(crate) async fn remove_unshown_until_stopped(server: Arc<Server>) {
    let mut stopping = server.stopping();
    let mut unshown = HashSet::new();
    loop {
        unshown = look(&server, &unshown).await;
        tokio::select! {
            _ = stopping.wait_for(|stops| *stops) => return,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

/// Removes what nobody shows and nobody showed `before`; returns what else nobody shows.
pub(super) async fn look(server: &Server, before: &HashSet<PictureId>) -> HashSet<PictureId> {
    // First the files: who shows one of them by now is then among those who are asked.
    let there = match server.attachments.objects.portraits().await {
        Ok(there) => there,
        Err(error) => {
            tracing::warn!(%error, "the pictures that people show cannot be listed");
            return HashSet::new();
        }
    };
    let shown = match server.files().shown_pictures().await {
        Ok(shown) => shown.into_iter().collect::<HashSet<_>>(),
        Err(error) => {
            tracing::debug!(%error, "nobody could say which pictures are shown");
            return HashSet::new();
        }
    };
    let unshown = there.into_iter().filter(|picture| !shown.contains(picture));
    let (lost, new): (HashSet<_>, HashSet<_>) =
        unshown.partition(|picture| before.contains(picture));
    for picture in lost {
        portrait::remove(server, picture).await;
    }
    new
}
