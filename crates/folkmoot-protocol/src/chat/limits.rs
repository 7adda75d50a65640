//! What this server allows, as its administrator set it; the limits of the protocol itself are
//! constants.

use serde::{Deserialize, Serialize};

/// Answer of `GET /api/v1/limits`: what a client can say before somebody runs into it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ServerLimits {
    /// Files in messages.
    pub attachments: AttachmentLimits,
}

/// Limits of files in messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct AttachmentLimits {
    /// Bytes of one file.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub file_bytes_max: u64,
    /// Files of one message.
    pub files_per_message_max: u32,
    /// Bytes of all files of the caller.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub user_bytes_max: u64,
    /// Bytes that the caller's files take now.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub user_bytes: u64,
    /// Pixels of one image: width times height.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub image_pixels_max: u64,
    /// Media types that are taken, `*` at the end stands for any rest.
    pub types: Vec<String>,
    /// Seconds after which an uploaded file is removed that no message names.
    pub unsent_s: u32,
}
