//! Which messages changed, in order and exactly once: what a search index follows.

use super::contract;
use crate::storage::{
    Lsn, MessageChanges, ReadError, ReadableMessage, RoomId, Seq, Store, StoreStats, UserId,
};

contract! {
    /// What an index reads, and asks before it shows what it has found.
    pub trait ChangeFeed {
        /// A page of changes after a place.
        async fn message_changes(after: Lsn, limit: u32) -> Result<MessageChanges, ReadError>;

        /// Those of some messages that a user may read, as they are now.
        async fn readable_messages(
            user: UserId,
            wanted: Vec<(RoomId, Seq)>,
        ) -> Result<Vec<ReadableMessage>, ReadError>;

        /// Waits until all that was appended before is among the changes.
        async fn barrier() -> Result<(), ReadError>;

        /// The newest change there is, by any node; [`Self::stats`] knows those of this one.
        async fn newest() -> Result<Lsn, ReadError>;

        at_once {
            /// How far the changes go, among other things.
            fn stats() -> StoreStats;
        }
    }
}
