//! Files that come in pieces, each a request of its own: what is said meanwhile waits for a piece,
//! not for the file, and after a loss of the connection the next piece follows the last one.
//!
//! An upload in pieces is the upload of `upload`, whose body the pieces are: the same limits hold,
//! and the same is left behind by one that fails, which is nothing. It is known to one node, that of
//! its user's `of_user`, and to nobody but its user; after a restart its sender begins anew.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use althing::Wire;
use bytes::Bytes;
use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::chat::{Attachment, UploadProgress};
use folkmoot_protocol::rpc::RpcError;
use futures_util::{Stream, StreamExt, stream};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::body::{Body, Patience};
use super::places::Places;
use super::reading::PIECE_TIME_MAX;
use super::upload::{self, Announced};
use crate::chat::Identity;
use crate::server::Server;
use crate::storage::{AttachmentId, UserId};

/// By then a kilobyte a second must have come, pauses and all.
const PACE_FROM: Duration = Duration::from_secs(15 * 60);
/// How long a piece waits for the one before it: as long as that one may take to come.
const AHEAD_MAX: Duration = PIECE_TIME_MAX;
/// How long the end of an upload is known to who did not hear it.
const END_KEPT: Duration = Duration::from_secs(5 * 60);
/// Pieces that wait for the disk; the next one is taken when there is room.
const WAITING_MAX: usize = 1;

/// Where a piece belongs.
#[derive(Debug, Clone, Copy, Wire)]
pub(crate) struct Place {
    /// Of its first byte in the file.
    pub(crate) offset: u64,
    /// The piece before it is on its way too, and is waited for.
    pub(crate) is_ahead: bool,
}

/// The uploads that come in pieces, until some time after their end.
#[derive(Debug)]
pub(crate) struct Pieces {
    places: Places,
    uploads: Mutex<HashMap<AttachmentId, Arc<Coming>>>,
}

impl Default for Pieces {
    fn default() -> Self {
        Self { places: Places::of_pieces(), uploads: Mutex::default() }
    }
}

#[derive(Debug)]
struct Coming {
    id: AttachmentId,
    by: UserId,
    size: u64,
    /// Where the next piece begins, for pieces that are ahead.
    reached: watch::Sender<u64>,
    /// Counts the pieces that came ahead: one waits, and a later one in its place.
    ahead: watch::Sender<u64>,
    feed: tokio::sync::Mutex<Feed>,
    end: watch::Receiver<Option<End>>,
}

/// Where pieces go. Dropping it before all has come makes the upload fail.
#[derive(Debug)]
struct Feed {
    offset: u64,
    /// Absent once all has come.
    to: Option<mpsc::Sender<Bytes>>,
}

#[derive(Debug, Clone)]
struct End {
    at: Instant,
    result: Result<Attachment, RpcError>,
}

/// Begins an upload: its size is known and its bytes are reserved.
///
/// # Cancel safety
/// Dropping the future begins it all the same; it ends by the silence of its sender.
pub(super) async fn begin(by: &Identity, announced: Announced) -> Result<UploadProgress, RpcError> {
    let by = by.clone();
    let beginning = tokio::spawn(async move { admit(&by, announced).await });
    beginning.await.unwrap_or_else(|_| Err(ErrorCode::Internal.into()))
}

async fn admit(by: &Identity, announced: Announced) -> Result<UploadProgress, RpcError> {
    let size = match announced.size {
        Some(0) => return Err(RpcError::invalid("file", "is empty")),
        Some(size) => size,
        None => return Err(RpcError::invalid("size", "is missing")),
    };
    let server = by.server.clone();
    let pieces = &server.attachments.pieces;
    let admitted = upload::admit(by, announced, &pieces.places).await?;
    let id = admitted.id;
    let (to, from) = mpsc::channel(WAITING_MAX);
    let (ending, end) = watch::channel(None);
    let feed = Feed { offset: 0, to: Some(to) };
    let (reached, ahead) = (watch::Sender::new(0), watch::Sender::new(0));
    let coming = Coming { id, by: by.user, size, reached, ahead, feed: feed.into(), end };
    pieces.insert(coming);
    let bytes = until_stopped(&server, from);
    let silence_max = server.config.attachments.piece_silence;
    let patience = Patience { silence_max, pace_from: PACE_FROM };
    tokio::spawn(async move {
        let mut body = Body::new(bytes, 0, patience);
        let result = upload::complete(&server, admitted, &mut body).await;
        // Nobody is to hear of what nobody sends any more: it is begun anew.
        if result.as_ref().is_err_and(|error| error.code == ErrorCode::BadRequest) {
            server.attachments.pieces.forget(id);
        }
        ending.send_replace(Some(End { at: Instant::now(), result }));
    });
    Ok(UploadProgress { id, offset: 0, attachment: None })
}

/// What comes, and no more once the server stops: the upload is then given up.
fn until_stopped(
    server: &Server,
    from: mpsc::Receiver<Bytes>,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
    let pieces = stream::unfold((from, server.stopping()), |(mut from, mut stopping)| async {
        let piece = tokio::select! {
            piece = from.recv() => piece,
            _ = stopping.wait_for(|stops| *stops) => None,
        };
        piece.map(|piece| (Ok(piece), (from, stopping)))
    });
    // A file that ends within its first kilobytes is asked for more once again.
    pieces.fuse()
}

/// Takes the next piece; with the last one it answers once the file is on disk.
///
/// # Cancel safety
/// A piece is taken whole or not at all.
pub(super) async fn append(
    server: &Server,
    by: UserId,
    id: AttachmentId,
    place: Place,
    piece: Bytes,
) -> Result<UploadProgress, RpcError> {
    let pieces = &server.attachments.pieces;
    let coming = pieces.of(by, id)?;
    if place.is_ahead {
        coming.wait_for(place.offset).await;
    }
    let taken = coming.take(place.offset, piece).await;
    pieces.told(id, taken)
}

/// How far an upload has come; waits for its end when all of it is here.
pub(super) async fn progress(
    server: &Server,
    by: UserId,
    id: AttachmentId,
) -> Result<UploadProgress, RpcError> {
    let pieces = &server.attachments.pieces;
    let coming = pieces.of(by, id)?;
    pieces.told(id, coming.progress().await)
}

/// Gives an upload up. A file that has arrived stays until it expires.
pub(super) fn cancel(server: &Server, by: UserId, id: AttachmentId) -> Result<(), RpcError> {
    let pieces = &server.attachments.pieces;
    pieces.of(by, id)?;
    pieces.forget(id);
    Ok(())
}

impl Pieces {
    fn insert(&self, coming: Coming) {
        let mut uploads = self.uploads.lock();
        uploads.retain(|_, other| !other.is_long_over());
        uploads.insert(coming.id, Arc::new(coming));
    }

    pub(super) fn knows(&self, by: UserId, id: AttachmentId) -> bool {
        self.of(by, id).is_ok()
    }

    /// The upload, if it is this user's: to others it does not exist.
    fn of(&self, by: UserId, id: AttachmentId) -> Result<Arc<Coming>, RpcError> {
        let found = self.uploads.lock().get(&id).filter(|coming| coming.by == by).cloned();
        found.ok_or_else(unknown)
    }

    fn forget(&self, id: AttachmentId) {
        let forgotten = self.uploads.lock().remove(&id);
        // A piece that waits would keep the upload until it gives up waiting.
        if let Some(coming) = forgotten {
            coming.ahead.send_modify(|count| *count += 1);
        }
    }

    /// What failed for good is told once.
    fn told(
        &self,
        id: AttachmentId,
        told: Result<UploadProgress, Wrong>,
    ) -> Result<UploadProgress, RpcError> {
        told.map_err(|wrong| match wrong {
            Wrong::Piece(error) => error,
            Wrong::Upload(error) => {
                self.forget(id);
                error
            }
        })
    }
}

/// This user has no such upload here.
pub(super) fn unknown() -> RpcError {
    RpcError::new(ErrorCode::NotFound, "no such upload; begin it anew")
}

/// What is wrong: with a piece, and the upload goes on, or with the upload, which has ended.
enum Wrong {
    Piece(RpcError),
    Upload(RpcError),
}

impl Coming {
    fn is_long_over(&self) -> bool {
        self.end.borrow().as_ref().is_some_and(|end| end.at.elapsed() >= END_KEPT)
    }

    /// Waits until all before `offset` has come, for as long as that may take. What then follows
    /// nothing is refused like any other piece.
    async fn wait_for(&self, offset: u64) {
        let mut mine = 0;
        let (mut reached, mut ahead, mut end) =
            (self.reached.subscribe(), self.ahead.subscribe(), self.end.clone());
        self.ahead.send_modify(|count| {
            *count += 1;
            mine = *count;
        });
        let waiting = async {
            tokio::select! {
                _ = reached.wait_for(|reached| *reached >= offset) => {}
                _ = ahead.wait_for(|count| *count != mine) => {}
                _ = end.wait_for(Option::is_some) => {}
            }
        };
        // What is not there by then does not come.
        let _ = tokio::time::timeout(AHEAD_MAX, waiting).await;
    }

    async fn take(&self, offset: u64, piece: Bytes) -> Result<UploadProgress, Wrong> {
        let mut feed = self.feed.lock().await;
        if let Some(end) = self.end.borrow().clone() {
            return self.ended(end);
        }
        if offset != feed.offset {
            let expected = feed.offset;
            let error = RpcError::invalid("offset", format!("must be {expected}"));
            return Err(Wrong::Piece(RpcError { limit: Some(expected), ..error }));
        }
        let length = piece.len() as u64;
        if length == 0 {
            return Err(Wrong::Piece(RpcError::invalid("piece", "is empty")));
        }
        if length > self.size - feed.offset {
            let size = usize::try_from(self.size).unwrap_or(usize::MAX);
            return Err(Wrong::Piece(RpcError::too_large("file", size, "announced bytes")));
        }
        let is_taken = match &feed.to {
            Some(to) => to.send(piece).await.is_ok(),
            None => false,
        };
        if is_taken {
            feed.offset += length;
            self.reached.send_replace(feed.offset);
        }
        if is_taken && feed.offset < self.size {
            return Ok(self.at(feed.offset));
        }
        // All is here, or the upload was refused.
        feed.to = None;
        drop(feed);
        self.end().await
    }

    async fn progress(&self) -> Result<UploadProgress, Wrong> {
        let feed = self.feed.lock().await;
        if feed.to.is_some() && self.end.borrow().is_none() {
            return Ok(self.at(feed.offset));
        }
        drop(feed);
        self.end().await
    }

    fn at(&self, offset: u64) -> UploadProgress {
        UploadProgress { id: self.id, offset, attachment: None }
    }

    /// Waits for the end.
    async fn end(&self) -> Result<UploadProgress, Wrong> {
        let mut end = self.end.clone();
        let ended = end.wait_for(Option::is_some).await.map(|end| end.clone());
        match ended {
            Ok(Some(end)) => self.ended(end),
            _ => Err(Wrong::Upload(ErrorCode::Internal.into())),
        }
    }

    fn ended(&self, end: End) -> Result<UploadProgress, Wrong> {
        let attachment = Some(end.result.map_err(Wrong::Upload)?);
        Ok(UploadProgress { id: self.id, offset: self.size, attachment })
    }
}
