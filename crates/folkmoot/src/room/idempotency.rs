//! Remembers the keys of a room's sends, so that a retry is answered with the first number.
//!
//! A key is kept until it is both older than 24 hours and not among the last 10,000 messages, or
//! until 100,000 newer ones came: memory stays bounded however fast a room talks.

use std::collections::{HashMap, VecDeque};

use sha2::{Digest, Sha256};

use crate::storage::{AttachmentId, Offset, Seq, UnixMillis, UserId};

/// A phone that was offline for a night still retries within this time.
pub(crate) const KEEP_MS: u64 = 24 * 60 * 60 * 1000;
/// Kept regardless of age: a quiet room's keys cost nothing.
pub(crate) const KEEP_LEN: usize = 10_000;
/// About 10 MiB in the busiest room.
pub(crate) const KEEP_LEN_MAX: usize = 100_000;

/// What the first send with a key led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FirstSend {
    pub(crate) content: ContentHash,
    pub(crate) seq: Seq,
    pub(crate) offset: Offset,
    pub(crate) at: UnixMillis,
}

/// Fingerprint of everything a sender chose about a message; stored beside it, because an edit
/// changes the body but not what the key stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentHash(pub(crate) u64);

impl ContentHash {
    pub(crate) fn of(body: &str, reply_to: Option<Seq>, attachments: &[AttachmentId]) -> Self {
        let mut hash = Sha256::new();
        hash.update(reply_to.map_or(0, |seq| seq.as_u64()).to_le_bytes());
        hash.update(body.as_bytes());
        for id in attachments {
            // No text contains U+0000, so files cannot be mistaken for more of the body.
            hash.update([0]);
            hash.update(id.as_u64().to_le_bytes());
        }
        let digest = hash.finalize();
        let mut first = [0; 8];
        first.copy_from_slice(&digest[..8]);
        Self(u64::from_le_bytes(first))
    }
}

/// The keys of one room, oldest first.
#[derive(Debug, Default)]
pub(crate) struct SeenKeys {
    first: HashMap<(UserId, Box<str>), FirstSend>,
    order: VecDeque<(UserId, Box<str>)>,
}

impl SeenKeys {
    /// Nothing is known of an empty key: it says that the sender will not repeat the send.
    pub(crate) fn get(&self, user: UserId, key: &str) -> Option<FirstSend> {
        if key.is_empty() {
            return None;
        }
        // The tuple key needs an owned string; a send allocates one anyway when it is recorded.
        self.first.get(&(user, Box::from(key))).copied()
    }

    /// Records a send. The first one with a key wins; a second is ignored, and so is a send
    /// without a key.
    pub(crate) fn record(&mut self, user: UserId, key: &str, send: FirstSend) {
        if key.is_empty() {
            return;
        }
        let owned = (user, Box::<str>::from(key));
        if self.first.contains_key(&owned) {
            return;
        }
        self.first.insert(owned.clone(), send);
        self.order.push_back(owned);
        self.forget_old(send.at);
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    fn forget_old(&mut self, now: UnixMillis) {
        while self.order.len() > KEEP_LEN {
            let Some(oldest) = self.order.front() else { return };
            let is_young = self
                .first
                .get(oldest)
                .is_some_and(|send| now.as_u64().saturating_sub(send.at.as_u64()) < KEEP_MS);
            if is_young && self.order.len() <= KEEP_LEN_MAX {
                return;
            }
            self.first.remove(oldest);
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANNA: UserId = UserId::from_u64(1);

    fn send(seq: u64, at: u64) -> FirstSend {
        FirstSend {
            content: ContentHash::of("hi", None, &[]),
            seq: Seq::from_u64(seq),
            offset: Offset::from_u64(seq),
            at: UnixMillis::from_u64(at),
        }
    }

    #[test]
    fn the_first_send_of_a_key_is_remembered_per_user() {
        let mut seen = SeenKeys::default();
        seen.record(ANNA, "k", send(1, 0));
        seen.record(ANNA, "k", send(2, 0));
        seen.record(UserId::from_u64(2), "k", send(3, 0));
        assert_eq!(seen.get(ANNA, "k").map(|first| first.seq.as_u64()), Some(1));
        assert_eq!(seen.get(UserId::from_u64(2), "k").map(|first| first.seq.as_u64()), Some(3));
        assert_eq!(seen.get(UserId::from_u64(3), "k"), None);
    }

    #[test]
    fn sends_without_a_key_are_never_taken_for_repeats() {
        let mut seen = SeenKeys::default();
        seen.record(ANNA, "", send(1, 0));
        assert_eq!(seen.get(ANNA, ""), None);
        assert_eq!(seen.len(), 0);
    }

    #[test]
    fn content_differs_by_body_by_reply_and_by_files() {
        let file = AttachmentId::from_u64(7);
        let plain = ContentHash::of("hi", None, &[]);
        assert_eq!(plain, ContentHash::of("hi", None, &[]));
        assert_ne!(plain, ContentHash::of("hi!", None, &[]));
        assert_ne!(plain, ContentHash::of("hi", Some(Seq::from_u64(1)), &[]));
        assert_ne!(plain, ContentHash::of("hi", None, &[file]));
    }

    #[test]
    fn old_keys_go_only_beyond_ten_thousand_messages() {
        let mut seen = SeenKeys::default();
        for n in 0..KEEP_LEN as u64 {
            seen.record(ANNA, &n.to_string(), send(n + 1, 0));
        }
        seen.record(ANNA, "young", send(0, KEEP_MS - 1));
        assert_eq!(seen.len(), KEEP_LEN + 1);
        seen.record(ANNA, "a day later", send(0, KEEP_MS));
        assert_eq!(seen.len(), KEEP_LEN);
        assert_eq!(seen.get(ANNA, "0"), None);
        assert!(seen.get(ANNA, "young").is_some());
    }

    #[test]
    fn memory_is_bounded_in_a_room_that_never_stops() {
        let mut seen = SeenKeys::default();
        for n in 0..(KEEP_LEN_MAX as u64 + 10) {
            seen.record(ANNA, &n.to_string(), send(n + 1, 0));
        }
        assert_eq!(seen.len(), KEEP_LEN_MAX);
    }
}
