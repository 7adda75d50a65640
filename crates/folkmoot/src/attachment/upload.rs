//! Takes a file in, piece by piece: its bytes are reserved before the first one, its type is judged
//! by the first kilobytes, its size while it streams, and it is on disk before anybody is told that
//! it arrived.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use folkmoot_protocol::limits::UNSENT_FILES_MAX;
use folkmoot_protocol::rpc::RpcError;
use folkmoot_protocol::{ErrorCode, chat};
use futures_util::{Stream, StreamExt};
use tokio::time::Instant;

use super::objects::Object;
use super::picture::{self, Decoded, NoPicture};
use super::{Attachments, file_name, media_type, object_failure};
use crate::account::token::random_id;
use crate::chat::Identity;
use crate::chat::{control_failure, room_answer};
use crate::config::AttachmentConfig;
use crate::room::RoomCalls;
use crate::server::Server;
use crate::storage::contract::Files;
use crate::storage::{
    Attachment, AttachmentId, Begun, NewUpload, Picture, RoomId, UnixMillis, Upload,
};
use crate::wire;

/// A sender that says nothing for so long has gone.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// After that long a sender must have sent this much a second: who sends one byte now and then
/// keeps a place for ever. The slowest lines of telephones had more.
const PACE_FROM: Duration = Duration::from_secs(60);
const PACE_BYTES_PER_S: u64 = 1_024;
/// How long the rest of a refused file is read, so that its sender gets to hear why.
const DRAIN_MAX: Duration = Duration::from_secs(10);
/// Pieces on their way to the disk before the sender has to wait.
const WRITES_MAX: usize = 4;

/// What a sender says of a file.
#[derive(Debug)]
pub(crate) struct Announced {
    pub(crate) room: RoomId,
    pub(crate) name: String,
    /// Its bytes, where they are known.
    pub(crate) size: Option<u64>,
}

/// Takes a file in; answers once it is on disk and a message may name it.
///
/// # Cancel safety
/// Dropping the future does not stop the upload; its body ending does.
pub(crate) async fn receive<S, E>(
    by: &Identity,
    announced: Announced,
    body: S,
) -> Result<chat::Attachment, RpcError>
where
    S: Stream<Item = Result<Bytes, E>> + Send + 'static,
    E: std::error::Error + Send,
{
    let by = by.clone();
    // In a task of its own, which tidies up even when the connection ends in the middle.
    let receiving = tokio::spawn(async move {
        let mut body = Body::new(body, by.server.config.attachments.file_bytes_max);
        let received = admit(&by, announced, &mut body).await;
        if received.is_err() {
            body.drain().await;
        }
        received
    });
    receiving.await.unwrap_or_else(|_| Err(ErrorCode::Internal.into()))
}

async fn admit<S, E>(
    by: &Identity,
    announced: Announced,
    body: &mut Body<S>,
) -> Result<chat::Attachment, RpcError>
where
    S: Stream<Item = Result<Bytes, E>>,
    E: std::error::Error,
{
    let server = &by.server;
    let config = &server.config.attachments;
    let name = file_name::clean(&announced.name)?;
    by.count(|limits| &limits.uploads)?;
    room_answer(server.asked(announced.room).may_write(by.user).await)?;
    let size_max = announced.size.unwrap_or(config.file_bytes_max);
    if size_max > config.file_bytes_max {
        return Err(too_large(config));
    }
    let _place = server.attachments.uploading.take(by.user)?;
    let id = AttachmentId::from_u64(random_id());
    let expires_at = expiry(server);
    reserve(by, announced.room, id, size_max, expires_at).await?;
    let file = match take(server, id, name, body).await {
        Ok(file) => file,
        Err(error) => {
            give_up(server, id).await;
            return Err(error);
        }
    };
    let view = wire::attachment(&file);
    let upload = Upload { room: announced.room, by: by.user, file, expires_at };
    room_answer(server.room(announced.room).uploaded(upload).await)?;
    Ok(view)
}

fn expiry(server: &Server) -> UnixMillis {
    let unsent_ms = u64::try_from(server.config.attachments.unsent.as_millis()).unwrap_or(u64::MAX);
    UnixMillis::from_u64(server.now().as_u64().saturating_add(unsent_ms))
}

async fn reserve(
    by: &Identity,
    room: RoomId,
    id: AttachmentId,
    size_max: u64,
    expires_at: UnixMillis,
) -> Result<(), RpcError> {
    let user_bytes_max = by.server.config.attachments.user_bytes_max;
    let unsent_max = UNSENT_FILES_MAX;
    let new = NewUpload { id, room, by: by.user, size_max, expires_at, user_bytes_max, unsent_max };
    let begun = by.server.files().begin_upload(new).await;
    match begun.map_err(|error| control_failure(&error))? {
        Begun::Yes => Ok(()),
        Begun::OverQuota { left } => {
            let message = format!(
                "file is over what is left of your limit of {user_bytes_max} bytes: {left} bytes"
            );
            let (field, limit) = (Some("file".to_owned()), Some(user_bytes_max));
            Err(RpcError { field, limit, ..RpcError::new(ErrorCode::TooLarge, message) })
        }
        Begun::TooManyUnsent => {
            let message =
                format!("more than {UNSENT_FILES_MAX} of your files wait to be sent; send some");
            let limit = Some(UNSENT_FILES_MAX as u64);
            Err(RpcError { limit, ..RpcError::new(ErrorCode::LimitExceeded, message) })
        }
    }
}

/// Stores the bytes, then what they turned out to be.
async fn take<S, E>(
    server: &Arc<Server>,
    id: AttachmentId,
    name: String,
    body: &mut Body<S>,
) -> Result<Attachment, RpcError>
where
    S: Stream<Item = Result<Bytes, E>>,
    E: std::error::Error,
{
    let config = &server.config.attachments;
    let head = body.head().await?;
    if head.is_empty() {
        return Err(RpcError::invalid("file", "is empty"));
    }
    let media_type = media_type::of(&head);
    if !media_type::is_among(media_type, &config.types) {
        let allowed = config.types.join(", ");
        let rule = format!("is {media_type} by its content, which is not among {allowed}");
        return Err(RpcError::invalid("file", rule));
    }
    let size = write(&server.attachments, id, head, body, config).await?;
    let picture = decode(server, id, media_type).await?;
    let file = Attachment { id, name, media_type: media_type.to_owned(), size, picture };
    let finished = server.files().finish_upload(file.clone()).await;
    finished.map_err(|error| control_failure(&error))?;
    Ok(file)
}

/// Writes a file and syncs it; returns its size.
async fn write<S, E>(
    attachments: &Attachments,
    id: AttachmentId,
    head: Bytes,
    body: &mut Body<S>,
    config: &AttachmentConfig,
) -> Result<u64, RpcError>
where
    S: Stream<Item = Result<Bytes, E>>,
    E: std::error::Error,
{
    let failed = |error| object_failure(&error);
    let mut file = attachments.objects.begin(Object::File(id)).await.map_err(failed)?;
    let mut size = 0;
    let mut next = Some(head);
    // Leaving early drops what was written: the store removes it.
    while let Some(piece) = next {
        size += piece.len() as u64;
        if size > config.file_bytes_max {
            return Err(too_large(config));
        }
        file.wait_for_capacity(WRITES_MAX).await.map_err(failed)?;
        file.put(piece);
        next = body.next().await?;
    }
    file.finish().await.map_err(failed)?;
    Ok(size)
}

/// Makes the thumbnail of an image. One that cannot be decoded is a file like any other.
async fn decode(
    server: &Arc<Server>,
    id: AttachmentId,
    media_type: &str,
) -> Result<Option<Picture>, RpcError> {
    let Some(format) = media_type::image_format(media_type) else { return Ok(None) };
    let attachments = &server.attachments;
    // Never closed, so a permit always comes.
    let _place = attachments.decoding.acquire().await.map_err(|_| ErrorCode::Internal)?;
    let bytes = attachments.objects.bytes(Object::File(id)).await;
    let bytes = bytes.map_err(|error| object_failure(&error))?;
    let pixels_max = server.config.attachments.image_pixels_max;
    let decoding = server.node().blocking(move || picture::decode(&bytes, format, pixels_max));
    match decoding.await {
        Ok(Decoded { picture, thumbnail }) => {
            let stored = attachments.objects.put(Object::Thumbnail(id), thumbnail).await;
            stored.map_err(|error| object_failure(&error))?;
            Ok(Some(picture))
        }
        Err(NoPicture::TooManyPixels) => {
            let limit = usize::try_from(pixels_max).unwrap_or(usize::MAX);
            Err(RpcError::too_large("file", limit, "pixels"))
        }
        Err(NoPicture::Undecodable) => Ok(None),
    }
}

async fn give_up(server: &Server, id: AttachmentId) {
    if let Err(error) = server.files().cancel_upload(id).await {
        tracing::warn!(%id, %error, "an upload that failed is kept until it expires");
    }
    server.attachments.sweep_soon();
}

fn too_large(config: &AttachmentConfig) -> RpcError {
    let limit = usize::try_from(config.file_bytes_max).unwrap_or(usize::MAX);
    RpcError::too_large("file", limit, "bytes")
}

/// A body that is read piece by piece, with an end to patience.
struct Body<S> {
    stream: std::pin::Pin<Box<S>>,
    is_over: bool,
    drain_bytes_max: u64,
    begun: Instant,
    bytes: u64,
}

/// Whether a sender is too slow to be waited for.
fn is_too_slow(elapsed: Duration, bytes: u64) -> bool {
    elapsed >= PACE_FROM && bytes < elapsed.as_secs() * PACE_BYTES_PER_S
}

impl<S, E> Body<S>
where
    S: Stream<Item = Result<Bytes, E>>,
    E: std::error::Error,
{
    fn new(stream: S, drain_bytes_max: u64) -> Self {
        let (stream, begun) = (Box::pin(stream), Instant::now());
        Self { stream, is_over: false, drain_bytes_max, begun, bytes: 0 }
    }

    /// The next piece; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, RpcError> {
        let piece = tokio::time::timeout(SILENCE_MAX, self.stream.next()).await;
        let ended = |reason: String| {
            RpcError::new(ErrorCode::BadRequest, format!("the file ended early: {reason}"))
        };
        match piece {
            Ok(Some(Ok(piece))) => {
                self.bytes += piece.len() as u64;
                if is_too_slow(self.begun.elapsed(), self.bytes) {
                    self.is_over = true;
                    return Err(ended(format!("less than {PACE_BYTES_PER_S} bytes a second")));
                }
                Ok(Some(piece))
            }
            Ok(None) => {
                self.is_over = true;
                Ok(None)
            }
            Ok(Some(Err(error))) => {
                self.is_over = true;
                Err(ended(error.to_string()))
            }
            Err(_) => {
                self.is_over = true;
                Err(ended(format!("nothing came for {} s", SILENCE_MAX.as_secs())))
            }
        }
    }

    /// As much of the beginning as tells what it is.
    async fn head(&mut self) -> Result<Bytes, RpcError> {
        let mut head = BytesMut::new();
        while head.len() < media_type::HEAD_LEN {
            let Some(piece) = self.next().await? else { break };
            head.extend_from_slice(&piece);
        }
        Ok(head.freeze())
    }

    /// Reads on after a refusal: a sender whose connection is closed in the middle never sees the
    /// answer.
    async fn drain(mut self) {
        let mut left = self.drain_bytes_max;
        let mut reading = pin!(async {
            while !self.is_over && left > 0 {
                match self.next().await {
                    Ok(Some(piece)) => left = left.saturating_sub(piece.len() as u64),
                    Ok(None) | Err(_) => break,
                }
            }
        });
        let _ = tokio::time::timeout(DRAIN_MAX, &mut reading).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sends_a_byte_now_and_then_is_not_waited_for() {
        let second = Duration::from_secs(1);
        assert!(!is_too_slow(59 * second, 1), "it may only have begun");
        assert!(is_too_slow(60 * second, 60 * 1_024 - 1));
        assert!(!is_too_slow(60 * second, 60 * 1_024));
        assert!(is_too_slow(3_600 * second, 1 << 20));
    }
}
