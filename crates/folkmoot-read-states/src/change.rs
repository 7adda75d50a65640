//! What can happen to a read state, and what several changes to a user who is not in memory come
//! to.

use crate::block::ReadState;

/// Something that happened to one user in one room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The user has read up to a message. An older one than before changes nothing.
    Acknowledge {
        /// The last message that was read.
        message: u64,
        /// Mentions after that message.
        mentions_left: u32,
    },
    /// A message mentions the user; one that was read already does not count.
    Mention {
        /// The message.
        message: u64,
    },
    /// The user has left the room: nothing is kept of it.
    Forget,
}

impl Change {
    /// Applies the change to an entry. `Forget` leaves an empty one.
    #[inline]
    pub(crate) fn apply(self, state: &mut ReadState) {
        match self {
            Self::Acknowledge { message, mentions_left } => {
                if message >= state.last_read {
                    state.last_read = message;
                    state.mentions = mentions_left;
                }
            }
            Self::Mention { message } => {
                if message > state.last_read {
                    state.mentions = state.mentions.saturating_add(1);
                }
            }
            Self::Forget => *state = ReadState { room: state.room, ..ReadState::default() },
        }
    }
}

/// Changes to a user who is not in memory, in their order. Acknowledgements of a room that
/// follow each other become one.
#[derive(Debug, Default)]
pub(crate) struct Deltas {
    changes: Vec<(u64, Change)>,
    /// The number of the last one.
    pub(crate) version: u64,
    /// When the first one came, in milliseconds of the cache's clock.
    pub(crate) since_ms: u64,
}

impl Deltas {
    pub(crate) fn push(&mut self, room: u64, change: Change, version: u64) {
        self.version = version;
        let last = self.changes.iter_mut().rev().find(|(other, _)| *other == room);
        if let Some((_, Change::Acknowledge { message, mentions_left })) = last
            && let Change::Acknowledge { message: newer, mentions_left: left } = change
        {
            if newer >= *message {
                (*message, *mentions_left) = (newer, left);
            }
        } else {
            self.changes.push((room, change));
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, Change)> {
        self.changes.iter().copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.changes.len()
    }
}
