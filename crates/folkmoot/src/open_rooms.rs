//! Where every new account is let in, and who greets it there; only a demo has such rooms.

use crate::storage::{RoomId, UserId};

#[derive(Debug)]
pub(crate) struct OpenRooms {
    pub(crate) rooms: Vec<RoomId>,
    pub(crate) host: UserId,
}
