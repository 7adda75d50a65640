//! How long messages are kept, and which are due to go.

use super::contract;
use crate::storage::{
    ControlError, Due, DuePage, ReadError, Retention, RoomId, RoomRetention, Seq, Store, Unindexed,
    UnixMillis,
};

contract! {
    /// Rules, and what they lead to; the deletion itself is an event of the room.
    pub trait Keeping {
        /// The rule of the server.
        async fn retention() -> Result<Retention, ReadError>;

        /// Sets it.
        async fn set_retention(retention: Retention) -> Result<(), ControlError>;

        /// The rooms with a rule of their own.
        async fn room_retentions() -> Result<Vec<RoomRetention>, ReadError>;

        /// Gives a room one, or that of the server again.
        async fn set_room_retention(
            room: RoomId,
            retention: Option<Retention>,
        ) -> Result<(), ControlError>;

        /// A page of the rooms in which something is due.
        async fn rooms_with_due(
            after: Option<RoomId>,
            now: UnixMillis,
        ) -> Result<DuePage, ReadError>;

        /// The next batch that is due in a room.
        async fn due(room: RoomId, now: UnixMillis) -> Result<Option<Due>, ReadError>;

        /// What has gone and may still have words in an index.
        async fn unindexed() -> Result<Vec<Unindexed>, ReadError>;

        /// Those have left it.
        async fn note_indexed_from(room: RoomId, until: Seq) -> Result<(), ControlError>;
    }
}
