//! Files that were uploaded to a room and wait for a message that names them. Pure, like the rules
//! that ask it.
//!
//! A file is used once: the message that takes it is the only one that can, whatever was under way
//! at the same time.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::command::Refusal;
use crate::storage::{Attachment, AttachmentId, UnixMillis, Upload, UserId};

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Uploads(HashMap<AttachmentId, Upload>);

impl Uploads {
    /// Takes a complete file in.
    pub(crate) fn add(&mut self, upload: Upload, now: UnixMillis) {
        // Expired ones are of no use to anybody; here is where they leave memory.
        self.0.retain(|_, other| other.expires_at > now);
        self.0.insert(upload.file.id, upload);
    }

    /// The files that `by` names in a message at `now`, in that order.
    pub(crate) fn named(
        &self,
        by: UserId,
        ids: &[AttachmentId],
        now: UnixMillis,
    ) -> Result<Vec<Attachment>, Refusal> {
        let named = ids.iter().map(|id| {
            let upload = self.0.get(id).filter(|upload| upload.by == by && upload.expires_at > now);
            upload.map(|upload| upload.file.clone()).ok_or(Refusal::NoUpload(*id))
        });
        named.collect()
    }

    /// A message has them now.
    pub(crate) fn remove(&mut self, files: &[Attachment]) {
        for file in files {
            self.0.remove(&file.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::RoomId;

    const ANNA: UserId = UserId::from_u64(1);
    const NOON: UnixMillis = UnixMillis::from_u64(1_000);

    fn file(id: u64) -> Attachment {
        let (name, media_type) = ("a.txt".to_owned(), "text/plain".to_owned());
        Attachment { id: AttachmentId::from_u64(id), name, media_type, size: 1, picture: None }
    }

    fn waiting() -> Uploads {
        let mut uploads = Uploads::default();
        for id in [1, 2] {
            let (room, by, expires_at) = (RoomId::from_u64(9), ANNA, NOON);
            uploads.add(Upload { room, by, file: file(id), expires_at }, UnixMillis::from_u64(0));
        }
        uploads
    }

    fn named(uploads: &Uploads, by: UserId, ids: &[u64], now: u64) -> Result<usize, Refusal> {
        let ids: Vec<_> = ids.iter().map(|id| AttachmentId::from_u64(*id)).collect();
        uploads.named(by, &ids, UnixMillis::from_u64(now)).map(|files| files.len())
    }

    #[test]
    fn only_its_uploader_may_send_a_file_and_only_while_it_waits() {
        let uploads = waiting();
        assert_eq!(named(&uploads, ANNA, &[2, 1], 999), Ok(2));
        let refused = |id| Err(Refusal::NoUpload(AttachmentId::from_u64(id)));
        assert_eq!(named(&uploads, UserId::from_u64(2), &[1], 0), refused(1));
        assert_eq!(named(&uploads, ANNA, &[1, 3], 0), refused(3));
        assert_eq!(named(&uploads, ANNA, &[1], 1_000), refused(1));
    }

    #[test]
    fn a_file_is_sent_once() {
        let mut uploads = waiting();
        uploads.remove(&[file(1)]);
        assert!(named(&uploads, ANNA, &[1], 0).is_err());
        assert_eq!(named(&uploads, ANNA, &[2], 0), Ok(1));
    }

    #[test]
    fn what_has_expired_leaves_memory_with_the_next_file() {
        let mut uploads = waiting();
        let (room, by, expires_at) = (RoomId::from_u64(9), ANNA, UnixMillis::from_u64(9_000));
        uploads.add(Upload { room, by, file: file(3), expires_at }, NOON);
        assert_eq!(uploads.0.len(), 1);
    }
}
