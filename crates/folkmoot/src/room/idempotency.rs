//! Remembers the keys of one sender in one room, so that a retry is answered with the first number.
//!
//! A key is kept until it is both older than 24 hours and not among the sender's last hundred, or
//! until a thousand newer ones came: memory stays bounded however fast somebody talks.

use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::storage::{
    AttachmentId, KEYS_KEPT, KEYS_KEPT_MAX, KEYS_KEPT_MS, Offset, RecentKey, Seq, UnixMillis,
};

/// What the first send with a key led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FirstSend {
    pub(crate) content: ContentHash,
    pub(crate) seq: Seq,
    pub(crate) offset: Offset,
    pub(crate) at: UnixMillis,
}

/// Fingerprint of everything a sender chose about a message; stored beside it, because an edit
/// changes the body but not what the key stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ContentHash(pub(crate) u64);

impl ContentHash {
    pub(crate) fn of(body: &str, reply_to: Option<Seq>, attachments: &[AttachmentId]) -> Self {
        let mut hash = Sha256::new();
        let reply_to = match reply_to.map(Seq::as_u64) {
            // There is no message 0, but a reply to it is another content than no reply. No message
            // has this number either, so it meets nothing that was stored.
            Some(0) => u64::MAX,
            Some(seq) => seq,
            None => 0,
        };
        hash.update(reply_to.to_le_bytes());
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

/// The keys of one sender, oldest first.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct SentKeys {
    first: HashMap<Box<str>, FirstSend>,
    order: VecDeque<Box<str>>,
}

impl SentKeys {
    /// Nothing is known of an empty key: it says that the sender will not repeat the send.
    pub(crate) fn get(&self, key: &str) -> Option<FirstSend> {
        self.first.get(key).copied()
    }

    /// Records a send. The first one with a key wins; a second is ignored, and so is a send
    /// without a key.
    pub(crate) fn record(&mut self, key: &str, send: FirstSend) {
        if key.is_empty() || self.first.contains_key(key) {
            return;
        }
        self.first.insert(Box::from(key), send);
        self.order.push_back(Box::from(key));
        self.forget_old(send.at);
    }

    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    fn forget_old(&mut self, now: UnixMillis) {
        while self.order.len() > KEYS_KEPT {
            let Some(oldest) = self.order.front() else { return };
            let is_young = self
                .first
                .get(oldest)
                .is_some_and(|send| now.as_u64().saturating_sub(send.at.as_u64()) < KEYS_KEPT_MS);
            if is_young && self.order.len() <= KEYS_KEPT_MAX {
                return;
            }
            self.first.remove(oldest);
            self.order.pop_front();
        }
    }
}

impl From<Vec<RecentKey>> for SentKeys {
    fn from(recent: Vec<RecentKey>) -> Self {
        let mut keys = Self::default();
        for RecentKey { key, seq, offset, at, content_hash } in recent {
            keys.record(&key, FirstSend { content: ContentHash(content_hash), seq, offset, at });
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(seq: u64, at: u64) -> FirstSend {
        FirstSend {
            content: ContentHash::of("hi", None, &[]),
            seq: Seq::from_u64(seq),
            offset: Offset::from_u64(seq),
            at: UnixMillis::from_u64(at),
        }
    }

    #[test]
    fn the_first_send_of_a_key_is_remembered() {
        let mut sent = SentKeys::default();
        sent.record("k", send(1, 0));
        sent.record("k", send(2, 0));
        assert_eq!(sent.get("k").map(|first| first.seq.as_u64()), Some(1));
        assert_eq!(sent.get("l"), None);
    }

    #[test]
    fn sends_without_a_key_are_never_taken_for_repeats() {
        let mut sent = SentKeys::default();
        sent.record("", send(1, 0));
        assert_eq!(sent.get(""), None);
        assert_eq!(sent.len(), 0);
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
    fn old_keys_go_only_beyond_a_hundred_messages() {
        let mut sent = SentKeys::default();
        for n in 0..KEYS_KEPT as u64 {
            sent.record(&n.to_string(), send(n + 1, 0));
        }
        sent.record("young", send(0, KEYS_KEPT_MS - 1));
        assert_eq!(sent.len(), KEYS_KEPT + 1);
        sent.record("a day later", send(0, KEYS_KEPT_MS));
        assert_eq!(sent.len(), KEYS_KEPT);
        assert_eq!(sent.get("0"), None);
        assert!(sent.get("young").is_some());
    }

    #[test]
    fn memory_is_bounded_for_a_sender_that_never_stops() {
        let mut sent = SentKeys::default();
        for n in 0..(KEYS_KEPT_MAX as u64 + 10) {
            sent.record(&n.to_string(), send(n + 1, 0));
        }
        assert_eq!(sent.len(), KEYS_KEPT_MAX);
    }
}
