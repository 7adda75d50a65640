//! Hands a file out, to those who may read it. To everybody else it does not exist.

use bytes::Bytes;
use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::rpc::RpcError;
use futures_util::Stream;

use super::media_type;
use super::objects::Object;
use crate::chat::Identity;
use crate::chat::{read_failure, room_answer};
use crate::room::RoomError;
use crate::storage::contract::Files;
use crate::storage::{Attachment, AttachmentId};

/// A file that `by` may read: a member of the room whose message names it, or its uploader before
/// that.
pub(crate) async fn readable(by: &Identity, id: AttachmentId) -> Result<Attachment, RpcError> {
    let server = &by.server;
    let missing = || RpcError::new(ErrorCode::NotFound, "no such file");
    let found = server.files().attachment(id, server.now()).await;
    let found = found.map_err(|error| read_failure(&error))?.ok_or_else(missing)?;
    // Also for one's own files: who has left a room has left its files too.
    let is_member = match server.asked(found.room).readable(by.user).await {
        Ok(Err(RoomError::NoSuchRoom | RoomError::Refused(_))) => false,
        answer => {
            room_answer(answer)?;
            true
        }
    };
    match is_member && (found.is_sent || found.by == by.user) {
        true => Ok(found.file),
        false => Err(missing()),
    }
}

/// A part of a file's bytes, as they come from the disk.
pub(crate) async fn bytes(
    by: &Identity,
    id: AttachmentId,
    range: std::ops::Range<u64>,
) -> Result<impl Stream<Item = object_store::Result<Bytes>> + Send + 'static, RpcError> {
    let bytes = by.server.attachments.objects.read(Object::File(id), range).await;
    bytes.map_err(|error| unreadable(&error))
}

/// The thumbnail of an image and its type.
pub(crate) async fn thumbnail(
    by: &Identity,
    id: AttachmentId,
) -> Result<(&'static str, Bytes), RpcError> {
    let file = readable(by, id).await?;
    if file.picture.is_none() {
        return Err(RpcError::new(ErrorCode::NotFound, "this file has no thumbnail"));
    }
    let bytes = by.server.attachments.objects.bytes(Object::Thumbnail(id)).await;
    let bytes = bytes.map_err(|error| unreadable(&error))?;
    Ok((media_type::of(&bytes), bytes))
}

/// The log has the store's words, the client what it can do.
fn unreadable(error: &object_store::Error) -> RpcError {
    tracing::error!(%error, "a file cannot be read");
    match error {
        object_store::Error::NotFound { .. } => {
            RpcError::new(ErrorCode::NotFound, "the file is missing on the server's disk")
        }
        _ => RpcError::new(ErrorCode::StoreUnavailable, "the file cannot be read; try again later"),
    }
}
