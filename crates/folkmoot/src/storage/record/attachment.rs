//! A file of a message as its record holds it: all that its viewers need, so that showing a message
//! reads nothing else.

use super::wire::WireAttachment;
use serde::{Deserialize, Serialize};

use crate::storage::ids::AttachmentId;

/// A file sent with a message. Its bytes are in the attachment store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// Its id; also the name of its bytes.
    pub id: AttachmentId,
    /// File name, cleaned of what could mislead.
    pub name: String,
    /// Media type, by content.
    pub media_type: String,
    /// Bytes.
    pub size: u64,
    /// An image that could be decoded; it has a thumbnail.
    pub picture: Option<Picture>,
}

/// Pixels of an image as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    /// Across.
    pub width: u32,
    /// Down.
    pub height: u32,
}

pub(super) fn to_wire(attachment: &Attachment) -> WireAttachment {
    WireAttachment {
        id: attachment.id.as_u64(),
        name: attachment.name.clone(),
        media_type: attachment.media_type.clone(),
        size: attachment.size,
        width: attachment.picture.map_or(0, |picture| picture.width),
        height: attachment.picture.map_or(0, |picture| picture.height),
    }
}

pub(super) fn from_wire(wire: WireAttachment) -> Attachment {
    let WireAttachment { id, name, media_type, size, width, height } = wire;
    Attachment {
        id: AttachmentId::from_u64(id),
        name,
        media_type,
        size,
        picture: (width > 0 && height > 0).then_some(Picture { width, height }),
    }
}
