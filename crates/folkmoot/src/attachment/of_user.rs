//! The uploads in pieces of one user, as every node reaches them: they are on the node where the
//! cluster has put this actor, so that each piece may come to another node, as behind a balancer
//! that knows nothing of users. The actor itself keeps nothing: when it moves, the uploads are
//! unknown in its new place, and their sender begins anew.

use std::sync::{Arc, Weak};
use std::time::Duration;

use althing::{ActorOptions, AskError, ReplyTo, Wire, actor};
use bytes::Bytes;
use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::chat::UploadProgress;
use folkmoot_protocol::rpc::RpcError;
use folkmoot_protocol::wire::{from_json, to_json};

use super::pieces::{self, Place};
use super::reading::PIECE_TIME_MAX;
use super::upload::Announced;
use crate::chat::{Identity, failure};
use crate::server::Server;
use crate::storage::{AttachmentId, DeviceId, UserId};

/// A piece may wait for the one before it, and the last one for the disk and its picture.
const ANSWER_MAX: Duration = PIECE_TIME_MAX.saturating_add(Duration::from_secs(60));
/// A piece that brings so much is not counted: twenty smaller ones a second are allowed, and a client
/// makes smaller ones only where its line is slower than that.
const UNCOUNTED_BYTES: usize = 64 * 1024;
/// It is made again in a moment.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// An [`UploadProgress`], as the JSON that its client gets.
type Answer = Result<String, Refused>;

/// Takes pieces of one user's files.
#[derive(Debug)]
pub(crate) struct UserUploads {
    user: UserId,
    server: Weak<Server>,
}

/// An [`RpcError`] on its way between nodes.
#[derive(Debug, Wire, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refused {
    code: u32,
    message: String,
    field: Option<String>,
    limit: Option<u64>,
    retry_after_ms: Option<u64>,
}

fn options() -> ActorOptions {
    ActorOptions::default().passivate_after(IDLE_MAX)
}

#[actor(name = "folkmoot.uploads", key = UserId, wire, options = options)]
impl UserUploads {
    /// Begins an upload.
    #[delayed]
    async fn begin(&mut self, device: DeviceId, announced: Announced, reply: ReplyTo<Answer>) {
        let user = self.user;
        self.answer(reply, move |server| async move {
            pieces::begin(&Identity::new(server, user, device), announced).await
        });
    }

    /// Whether there is such an upload: nobody has to send a piece of one that there is not.
    async fn knows(&self, id: AttachmentId) -> bool {
        let server = self.server.upgrade();
        server.is_some_and(|server| server.attachments.pieces.knows(self.user, id))
    }

    /// Takes a piece. It may wait for the one before it, which comes by this actor too.
    #[delayed]
    async fn append(
        &mut self,
        id: AttachmentId,
        place: Place,
        piece: Bytes,
        reply: ReplyTo<Answer>,
    ) {
        let user = self.user;
        self.answer(reply, move |server| async move {
            pieces::append(&server, user, id, place, piece).await
        });
    }

    /// How far an upload has come.
    #[delayed]
    async fn progress(&mut self, id: AttachmentId, reply: ReplyTo<Answer>) {
        let user = self.user;
        self.answer(reply, move |server| async move { pieces::progress(&server, user, id).await });
    }

    /// Gives an upload up.
    async fn cancel(&mut self, id: AttachmentId) -> Result<(), Refused> {
        let Some(server) = self.server.upgrade() else { return Ok(()) };
        Ok(pieces::cancel(&server, self.user, id)?)
    }
}

impl UserUploads {
    pub(crate) fn new(user: UserId, server: Weak<Server>) -> Self {
        Self { user, server }
    }

    /// Answers once the work is done, beside what comes next.
    fn answer<F>(&self, reply: ReplyTo<Answer>, work: impl FnOnce(Arc<Server>) -> F)
    where
        F: Future<Output = Result<UploadProgress, RpcError>> + Send + 'static,
    {
        // Without a server nobody waits for an answer.
        let Some(server) = self.server.upgrade() else { return };
        let work = work(server);
        tokio::spawn(async move {
            let done = work.await;
            reply.send(done.map(|progress| to_json(&progress)).map_err(Refused::from));
        });
    }
}

/// Begins an upload: its size is known and its bytes are reserved.
///
/// # Cancel safety
/// Dropping the future begins it all the same; it ends by the silence of its sender.
pub(crate) async fn begin(by: &Identity, announced: Announced) -> Result<UploadProgress, RpcError> {
    let uploads = by.server.uploads(by.user);
    told(uploads.begin(by.device, announced).timeout(ANSWER_MAX).await)
}

/// Takes the next piece, which `piece` is as it comes; with the last one it answers once the file is
/// on disk.
///
/// # Cancel safety
/// A piece is taken whole or not at all.
pub(crate) async fn append(
    by: &Identity,
    id: AttachmentId,
    place: Place,
    piece: impl Future<Output = Result<Bytes, RpcError>>,
) -> Result<UploadProgress, RpcError> {
    by.count(|limits| &limits.questions)?;
    let uploads = by.server.uploads(by.user);
    if !uploads.knows(id).await.map_err(|error| failure(&error))? {
        return Err(pieces::unknown());
    }
    let piece = by.server.attachments.reading.whole(id, place.offset, piece).await?;
    let bytes = piece.len();
    let progress = told(uploads.append(id, place, piece).timeout(ANSWER_MAX).await)?;
    // The size of its file bounds what brings a file on. One that has come may be sent once more.
    if bytes >= UNCOUNTED_BYTES && progress.attachment.is_none() {
        by.server.limits.questions.give_back(&by.user);
    }
    Ok(progress)
}

/// How far an upload has come; waits for its end when all of it is here.
pub(crate) async fn progress(by: &Identity, id: AttachmentId) -> Result<UploadProgress, RpcError> {
    told(by.server.uploads(by.user).progress(id).timeout(ANSWER_MAX).await)
}

/// Gives an upload up. A file that has arrived stays until it expires.
pub(crate) async fn cancel(by: &Identity, id: AttachmentId) -> Result<(), RpcError> {
    let cancelled = by.server.uploads(by.user).cancel(id).await;
    Ok(cancelled.map_err(|error| failure(&error))??)
}

fn told(answer: Result<Answer, AskError>) -> Result<UploadProgress, RpcError> {
    let json = answer.map_err(|error| failure(&error))??;
    from_json(&json).map_err(|_| ErrorCode::Internal.into())
}

impl From<RpcError> for Refused {
    fn from(error: RpcError) -> Self {
        let RpcError { code, message, field, limit, retry_after_ms } = error;
        Self { code: code.code(), message, field, limit, retry_after_ms }
    }
}

impl From<Refused> for RpcError {
    fn from(refused: Refused) -> Self {
        let Refused { code, message, field, limit, retry_after_ms } = refused;
        let code = ErrorCode::from_code(code).unwrap_or(ErrorCode::Internal);
        Self { code, message, field, limit, retry_after_ms }
    }
}
