//! Where every new account is let in, who greets it there, and who hears what is said in these rooms
//! and to the one who greets; only a demo has such rooms.

use std::collections::HashSet;

use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::storage::{RoomId, Seq, UserId};

/// Messages that wait for an answer; whoever says more at once is not answered.
const HEARD_MAX: usize = 8;

/// Conversations with newcomers in which what they say is heard; each costs its id.
const DIRECTS_MAX: usize = 10_000;

/// A message in one of the rooms, or to the host.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) room: RoomId,
    pub(crate) user: UserId,
    pub(crate) seq: Seq,
    pub(crate) body: String,
}

#[derive(Debug)]
pub(crate) struct OpenRooms {
    pub(crate) rooms: Vec<RoomId>,
    pub(crate) host: UserId,
    /// Where the host talks to one newcomer each.
    directs: Mutex<HashSet<RoomId>>,
    heard: mpsc::Sender<Said>,
}

impl OpenRooms {
    /// Also returns what is said in the rooms and to the host.
    pub(crate) fn new(rooms: Vec<RoomId>, host: UserId) -> (Self, mpsc::Receiver<Said>) {
        let (heard, hearing) = mpsc::channel(HEARD_MAX);
        (Self { rooms, host, directs: Mutex::default(), heard }, hearing)
    }

    /// Where a new account begins.
    pub(crate) fn first(&self) -> Option<RoomId> {
        self.rooms.first().copied()
    }

    /// What is said in this conversation is for the host.
    pub(crate) fn add_direct(&self, room: RoomId) {
        let mut directs = self.directs.lock();
        if directs.len() < DIRECTS_MAX {
            directs.insert(room);
        }
    }

    /// Tells of a message; waits for nobody.
    pub(crate) fn hear(&self, room: RoomId, said: impl FnOnce() -> Said) {
        let is_heard = self.rooms.contains(&room) || self.directs.lock().contains(&room);
        if is_heard && let Ok(place) = self.heard.try_reserve() {
            place.send(said());
        }
    }
}
