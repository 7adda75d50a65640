//! Takes a file in, piece by piece: its bytes are reserved before the first one, its type is judged
//! by the first kilobytes, its size while it streams, and it is on disk before anybody is told that
//! it arrived.

use std::sync::Arc;

use althing::Wire;
use bytes::Bytes;
use folkmoot_protocol::limits::UNSENT_FILES_MAX;
use folkmoot_protocol::rpc::RpcError;
use folkmoot_protocol::{ErrorCode, chat};
use futures_util::Stream;

use super::body::{Body, Patience};
use super::objects::Object;
use super::picture::{self, Decoded, NoPicture};
use super::places::{Place, Places};
use super::{Attachments, file_name, media_type, object_failure};
use crate::account::token::random_id;
use crate::chat::Identity;
use crate::chat::{control_failure, room_answer};
use crate::config::AttachmentConfig;
use crate::room::RoomCalls;
use crate::server::Server;
use crate::storage::contract::Files;
use crate::storage::{
    Attachment, AttachmentId, Begun, NewUpload, Picture, RoomId, UnixMillis, Upload, UserId,
};
use crate::wire;

/// Pieces on their way to the disk before the sender has to wait.
const WRITES_MAX: usize = 4;

/// What a sender says of a file.
#[derive(Debug, Wire)]
pub(crate) struct Announced {
    pub(crate) room: RoomId,
    pub(crate) name: String,
    /// Its bytes, where they are known.
    pub(crate) size: Option<u64>,
}

/// A file that may come: its bytes are reserved.
#[derive(Debug)]
pub(super) struct Admitted {
    pub(super) id: AttachmentId,
    room: RoomId,
    by: UserId,
    name: String,
    size: Option<u64>,
    expires_at: UnixMillis,
    _place: Place,
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
        let (config, server) = (&by.server.config.attachments, &by.server);
        let mut body = Body::new(body, config.file_bytes_max, Patience::WITH_A_REQUEST);
        let received = match admit(&by, announced, &server.attachments.uploading).await {
            Ok(admitted) => complete(server, admitted, &mut body).await,
            Err(error) => Err(error),
        };
        if received.is_err() {
            body.drain().await;
        }
        received
    });
    receiving.await.unwrap_or_else(|_| Err(ErrorCode::Internal.into()))
}

/// Looks whether a file may come, and reserves its bytes. What is admitted has to be completed,
/// which gives the bytes back if it fails.
pub(super) async fn admit(
    by: &Identity,
    announced: Announced,
    places: &Places,
) -> Result<Admitted, RpcError> {
    let server = &by.server;
    let config = &server.config.attachments;
    let name = file_name::clean(&announced.name)?;
    by.count(|limits| &limits.uploads)?;
    let Announced { room, size, .. } = announced;
    room_answer(server.asked(room).may_write(by.user).await)?;
    let size_max = size.unwrap_or(config.file_bytes_max);
    if size_max > config.file_bytes_max {
        return Err(too_large(config));
    }
    let place = places.take(by.user)?;
    let id = AttachmentId::from_u64(random_id());
    let expires_at = expiry(server);
    reserve(by, room, id, size_max, expires_at).await?;
    Ok(Admitted { id, room, by: by.user, name, size, expires_at, _place: place })
}

/// Takes the bytes of a file in, and hands it to its room; leaves nothing behind if that fails.
pub(super) async fn complete<S, E>(
    server: &Arc<Server>,
    admitted: Admitted,
    body: &mut Body<S>,
) -> Result<chat::Attachment, RpcError>
where
    S: Stream<Item = Result<Bytes, E>>,
    E: std::error::Error,
{
    let (id, room, by, expires_at) = (admitted.id, admitted.room, admitted.by, admitted.expires_at);
    let file = match take(server, &admitted, body).await {
        Ok(file) => file,
        Err(error) => {
            give_up(server, id).await;
            return Err(error);
        }
    };
    let view = wire::attachment(&file);
    room_answer(server.room(room).uploaded(Upload { room, by, file, expires_at }).await)?;
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
    admitted: &Admitted,
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
    let size = write(&server.attachments, admitted, head, body, config).await?;
    let (id, name) = (admitted.id, admitted.name.clone());
    let picture = decode(server, id, media_type).await?;
    let file = Attachment { id, name, media_type: media_type.to_owned(), size, picture };
    let finished = server.files().finish_upload(file.clone()).await;
    finished.map_err(|error| control_failure(&error))?;
    Ok(file)
}

/// Writes a file and syncs it; returns its size.
async fn write<S, E>(
    attachments: &Attachments,
    admitted: &Admitted,
    head: Bytes,
    body: &mut Body<S>,
    config: &AttachmentConfig,
) -> Result<u64, RpcError>
where
    S: Stream<Item = Result<Bytes, E>>,
    E: std::error::Error,
{
    let failed = |error| object_failure(&error);
    let mut file = attachments.objects.begin(Object::File(admitted.id)).await.map_err(failed)?;
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
    // A file that comes in pieces ends where its sender gives it up.
    if admitted.size.is_some_and(|announced| announced != size) {
        let text = format!("the file ended early: after {size} bytes");
        return Err(RpcError::new(ErrorCode::BadRequest, text));
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
