//! Where every new account is let in, who greets it there, and who hears what is said in the first of
//! these rooms; only a demo has such rooms.

use tokio::sync::mpsc;

use crate::storage::{RoomId, Seq, UserId};

/// Messages that wait for an answer; whoever says more at once is not answered.
const HEARD_MAX: usize = 8;

/// A message in the first room.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) user: UserId,
    pub(crate) seq: Seq,
    pub(crate) body: String,
}

#[derive(Debug)]
pub(crate) struct OpenRooms {
    pub(crate) rooms: Vec<RoomId>,
    pub(crate) host: UserId,
    heard: mpsc::Sender<Said>,
}

impl OpenRooms {
    /// Also returns what is said in the first room.
    pub(crate) fn new(rooms: Vec<RoomId>, host: UserId) -> (Self, mpsc::Receiver<Said>) {
        let (heard, hearing) = mpsc::channel(HEARD_MAX);
        (Self { rooms, host, heard }, hearing)
    }

    /// Where a new account begins.
    pub(crate) fn first(&self) -> Option<RoomId> {
        self.rooms.first().copied()
    }

    /// Tells of a message; waits for nobody.
    pub(crate) fn hear(&self, room: RoomId, said: impl FnOnce() -> Said) {
        if self.first() == Some(room)
            && let Ok(place) = self.heard.try_reserve()
        {
            place.send(said());
        }
    }
}
