//! Pictures that users show beside their names: judged by their content, cut square, made small and
//! encoded anew, so that nothing of what was sent is handed out, neither where it was taken nor a
//! second meaning of its bytes.
//!
//! A picture never changes: another one has another id, which is why it may be kept for ever by
//! whoever got it. Its id is the permission to see it, so that browsers can fetch it like any
//! image: only who sees the user learns it.

use std::sync::Arc;

use bytes::Bytes;
use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::rpc::RpcError;

use super::objects::Object;
use super::picture::{self, NoPicture};
use super::{media_type, object_failure};
use crate::account::token::random_id;
use crate::server::Server;
use crate::storage::PictureId;

/// Makes a picture of what was sent, and stores it under a new id.
pub(crate) async fn store(server: &Arc<Server>, sent: Bytes) -> Result<PictureId, RpcError> {
    let made = make(server, sent).await?;
    let id = PictureId::from_u64(random_id());
    let stored = server.attachments.objects.put(Object::Portrait(id), made).await;
    stored.map_err(|error| object_failure(&error))?;
    Ok(id)
}

/// Makes a picture of what was sent: PNG or JPEG.
pub(crate) async fn make(server: &Server, sent: Bytes) -> Result<Vec<u8>, RpcError> {
    let media_type = media_type::of(&sent);
    let format = media_type::image_format(media_type).ok_or_else(|| {
        let rule = format!("is {media_type} by its content, not PNG, JPEG, GIF or WebP");
        RpcError::invalid("picture", rule)
    })?;
    let attachments = &server.attachments;
    // Never closed, so a permit always comes.
    let _place = attachments.decoding.acquire().await.map_err(|_| ErrorCode::Internal)?;
    let pixels_max = server.config.attachments.image_pixels_max;
    let made = server.node().blocking(move || picture::portrait(&sent, format, pixels_max)).await;
    made.map_err(|error| match error {
        NoPicture::TooManyPixels => {
            let limit = usize::try_from(pixels_max).unwrap_or(usize::MAX);
            RpcError::too_large("picture", limit, "pixels")
        }
        NoPicture::Undecodable => RpcError::invalid("picture", "is damaged"),
    })
}

/// A picture's bytes and their type.
pub(crate) async fn read(
    server: &Server,
    id: PictureId,
) -> Result<(&'static str, Bytes), RpcError> {
    match server.attachments.objects.bytes(Object::Portrait(id)).await {
        Ok(bytes) => Ok((media_type::of(&bytes), bytes)),
        Err(object_store::Error::NotFound { .. }) => {
            Err(RpcError::new(ErrorCode::NotFound, "no such picture"))
        }
        Err(error) => Err(object_failure(&error)),
    }
}

/// Erases a picture; one that is gone already counts as erased.
pub(crate) async fn erase(server: &Server, id: PictureId) -> Result<(), RpcError> {
    let erased = server.attachments.objects.remove_one(Object::Portrait(id)).await;
    erased.map_err(|error| object_failure(&error))
}

/// Removes a picture that nobody shows any more. One that stays costs some kilobytes, nothing else.
pub(crate) async fn remove(server: &Server, id: PictureId) {
    if let Err(error) = erase(server, id).await {
        tracing::warn!(%id, %error, "a picture that nobody shows stays on the disk");
    }
}
