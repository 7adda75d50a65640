//! Files of messages. `upload` takes one in, also one that comes in `pieces` (`reading`, `of_user`);
//! `download` hands it out; `sweep` removes what nobody keeps. Rows are in the store, bytes in
//! `objects`, and who may use a file in a message is the room's to decide. Pictures that people show
//! are a `portrait` each, and one that nobody shows is `unshown`.
//!
//! A file is shown in the page only if this server decoded it as an image; everything else is only
//! ever saved.

mod body;
pub(crate) mod download;
mod file_name;
mod kept;
pub(crate) mod media_type;
mod objects;
pub(crate) mod of_user;
mod picture;
pub(crate) mod pieces;
mod places;
pub(crate) mod portrait;
mod reading;
mod sweep;
#[cfg(test)]
mod tests;
mod unshown;
pub(crate) mod upload;

use std::io;

use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::chat::{AttachmentLimits, ServerLimits};
use folkmoot_protocol::rpc::RpcError;
use tokio::sync::{Notify, Semaphore};

pub(crate) use file_name::disposition;
pub(crate) use kept::Kept;
pub(crate) use objects::Object;
pub(crate) use sweep::sweep_until_stopped;
pub(crate) use unshown::remove_unshown_until_stopped;

use crate::chat::Identity;
use crate::chat::read_failure;
use crate::config::AttachmentConfig;
use crate::storage::contract::Files;
use crate::wire;
use objects::Objects;
use pieces::Pieces;
use places::Places;
use reading::Reading;

/// Images decoded at once: each may take hundreds of megabytes while it is.
const DECODING_MAX: usize = 1;

/// Where the bytes of files are, and how many may be worked on.
#[derive(Debug)]
pub(crate) struct Attachments {
    objects: Objects,
    decoding: Semaphore,
    uploading: Places,
    pieces: Pieces,
    reading: Reading,
    to_sweep: Notify,
}

impl Attachments {
    /// Opens the directory of files. Blocks.
    pub(crate) fn open(config: &AttachmentConfig) -> io::Result<Self> {
        Ok(Self {
            objects: Objects::open(&config.directory, config.is_shared)?,
            decoding: Semaphore::new(DECODING_MAX),
            uploading: Places::of_whole_files(),
            pieces: Pieces::default(),
            reading: Reading::default(),
            to_sweep: Notify::new(),
        })
    }

    /// Files may have to be removed: does not wait for it.
    pub(crate) fn sweep_soon(&self) {
        self.to_sweep.notify_one();
    }
}

/// What `by` may upload, and how much is taken already.
pub(crate) async fn limits(by: &Identity) -> Result<ServerLimits, RpcError> {
    let config = &by.server.config.attachments;
    let user_bytes = by.server.files().attachment_bytes(by.user).await;
    Ok(ServerLimits {
        attachments: AttachmentLimits {
            file_bytes_max: config.file_bytes_max,
            files_per_message_max: wire::count(config.files_per_message_max),
            user_bytes_max: config.user_bytes_max,
            user_bytes: user_bytes.map_err(|error| read_failure(&error))?,
            image_pixels_max: config.image_pixels_max,
            types: config.types.clone(),
            unsent_s: wire::count(config.unsent.as_secs()),
        },
    })
}

/// The attachment store failed: the log has its words, the client what it can do.
fn object_failure(error: &object_store::Error) -> RpcError {
    tracing::error!(%error, "the attachment store failed");
    let reason = if objects::is_full(error) { "the disk is full" } else { "try again later" };
    RpcError::new(ErrorCode::StoreUnavailable, format!("the file could not be stored: {reason}"))
}
