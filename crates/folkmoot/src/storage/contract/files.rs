//! What is known of the files in messages; their bytes are elsewhere.

use super::contract;
use crate::storage::{
    Attachment, AttachmentId, Begun, ControlError, NewUpload, PictureId, ReadError, Store,
    StoredAttachment, UnixMillis, UserId,
};

contract! {
    /// Files from the first byte that is reserved for them to the last one that is gone.
    pub trait Files {
        /// Reserves what a file may come to, before its first byte.
        async fn begin_upload(new: NewUpload) -> Result<Begun, ControlError>;

        /// All of it has arrived.
        async fn finish_upload(file: Attachment) -> Result<(), ControlError>;

        /// It is not to come any more.
        async fn cancel_upload(id: AttachmentId) -> Result<(), ControlError>;

        /// The same for all that an earlier run of the server did not finish.
        async fn cancel_unfinished_uploads() -> Result<(), ControlError>;

        /// A file that has arrived and has not expired.
        async fn attachment(
            id: AttachmentId,
            now: UnixMillis,
        ) -> Result<Option<StoredAttachment>, ReadError>;

        /// Bytes of all files of a user.
        async fn attachment_bytes(user: UserId) -> Result<u64, ReadError>;

        /// Files whose bytes are to be removed.
        async fn expired_attachments(
            now: UnixMillis,
            limit: u32,
        ) -> Result<Vec<AttachmentId>, ReadError>;

        /// Their bytes are gone.
        async fn forget_attachments(ids: Vec<AttachmentId>) -> Result<(), ControlError>;

        /// The pictures that people show.
        async fn shown_pictures() -> Result<Vec<PictureId>, ReadError>;
    }
}
