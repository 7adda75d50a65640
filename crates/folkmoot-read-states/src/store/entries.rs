//! The entries of a row as bytes, the same in every store.

use crate::block::ReadState;

const ENTRY_BYTES: usize = 20;

/// Room, last read message and mentions of each entry, little endian.
pub(super) fn encode(entries: &[ReadState]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(entries.len() * ENTRY_BYTES);
    for entry in entries {
        bytes.extend_from_slice(&entry.room.to_le_bytes());
        bytes.extend_from_slice(&entry.last_read.to_le_bytes());
        bytes.extend_from_slice(&entry.mentions.to_le_bytes());
    }
    bytes
}

pub(super) fn decode(bytes: &[u8]) -> Vec<ReadState> {
    let (entries, _) = bytes.as_chunks::<ENTRY_BYTES>();
    let word = |entry: &[u8; ENTRY_BYTES], at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&entry[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    let entry = |entry: &[u8; ENTRY_BYTES]| ReadState {
        room: word(entry, 0),
        last_read: word(entry, 8),
        mentions: u32::from_le_bytes([entry[16], entry[17], entry[18], entry[19]]),
    };
    entries.iter().map(entry).collect()
}
