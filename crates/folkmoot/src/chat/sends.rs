//! Messages of one connection on their way to rooms that may live on other nodes. One whose room
//! was lost before it answered, with its node or in a move, is sent again under its key.
//!
//! A room takes the messages of a connection in the order in which they were sent: one that is sent
//! again is never taken behind a later one. If a later one was answered first, it is refused.

use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::time::Duration;

use althing::AskError;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::room::view::Done;
use crate::room::{Answer, AskedRoom, Request, RoomError};
use crate::storage::{AppendError, RoomId};

/// How long a message may be on its way, with all its tries: a node that is lost has a successor
/// after little more than its lease, which is five seconds, and after two if it led the cluster.
const WITHIN: Duration = Duration::from_secs(15);

/// A room that is lost more often than this is not just moving.
const TRIES_MAX: u32 = 4;

/// What one connection has on its way.
#[derive(Debug, Default)]
pub(crate) struct Sends {
    rooms: Mutex<HashMap<RoomId, Line>>,
    changed: Notify,
}

/// What is on its way to one room, by number.
#[derive(Debug, Default)]
struct Line {
    next: u64,
    under_way: BTreeMap<u64, Stage>,
    /// The latest one that the room has answered.
    answered: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// With the room.
    Asked,
    /// Lost, or behind one that was.
    Waits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Now,
    Later,
    /// A later one was answered already.
    Over,
}

impl Line {
    fn begin(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        let waits = self.under_way.values().any(|stage| *stage == Stage::Waits);
        self.under_way.insert(number, if waits { Stage::Waits } else { Stage::Asked });
        number
    }

    /// Whether one may be sent now. Of those that wait it is the first, and only when none is with
    /// the room: of each of those it is uncertain whether it was lost, too.
    fn turn(&mut self, number: u64) -> Turn {
        if self.under_way.get(&number) == Some(&Stage::Asked) {
            return Turn::Now;
        }
        if self.answered.is_some_and(|answered| answered > number) {
            return Turn::Over;
        }
        let is_first = self.under_way.keys().next() == Some(&number);
        if !is_first || self.under_way.values().any(|stage| *stage == Stage::Asked) {
            return Turn::Later;
        }
        self.under_way.insert(number, Stage::Asked);
        Turn::Now
    }

    fn lost(&mut self, number: u64) {
        self.under_way.insert(number, Stage::Waits);
    }

    fn answered(&mut self, number: u64) {
        self.answered = self.answered.max(Some(number));
    }
}

/// One message among those of its connection; given up when dropped.
struct Place<'a> {
    sends: &'a Sends,
    room: RoomId,
    number: u64,
}

impl Sends {
    /// Sends a message, which has a key, until its room has answered it.
    pub(crate) async fn send(&self, room: &AskedRoom<'_>, request: Request) -> Answer<Done> {
        let until = Instant::now() + WITHIN;
        let place = self.begin(room.id());
        let mut lost = Ok(Err(RoomError::Busy));
        for _ in 0..TRIES_MAX {
            // A first one that waits for none is in the room's mailbox with its first poll.
            if !matches!(timeout_at(until, place.turn()).await, Ok(Turn::Now)) {
                break;
            }
            let answer = room.take(request.clone(), until - Instant::now()).await;
            if !is_lost(&answer) {
                place.change(|line| line.answered(place.number));
                return answer;
            }
            lost = answer;
            place.change(|line| line.lost(place.number));
            self.changed.notify_waiters();
        }
        lost
    }

    fn begin(&self, room: RoomId) -> Place<'_> {
        let number = self.rooms.lock().entry(room).or_default().begin();
        Place { sends: self, room, number }
    }
}

impl Place<'_> {
    /// Waits for its turn, unless that is over.
    async fn turn(&self) -> Turn {
        loop {
            let mut changed = pin!(self.sends.changed.notified());
            // Before the look, so that no change is overlooked.
            changed.as_mut().enable();
            match self.change(|line| line.turn(self.number)) {
                Turn::Later => changed.await,
                turn => return turn,
            }
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Line) -> T) -> T {
        change(self.sends.rooms.lock().entry(self.room).or_default())
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut rooms = self.sends.rooms.lock();
        if let Some(line) = rooms.get_mut(&self.room) {
            line.under_way.remove(&self.number);
            if line.under_way.is_empty() {
                rooms.remove(&self.room);
            }
        }
        drop(rooms);
        self.sends.changed.notify_waiters();
    }
}

/// Whether nobody knows what became of it, and the room, wherever it lives next, will.
fn is_lost(answer: &Answer<Done>) -> bool {
    matches!(
        answer,
        Err(AskError::NodeLost(_) | AskError::NoReply(_))
            | Ok(Err(RoomError::Append(AppendError::OtherNode)))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_were_lost_together_are_sent_again_in_their_order() {
        let mut line = Line::default();
        let [first, second] = [line.begin(), line.begin()];
        assert_eq!([line.turn(first), line.turn(second)], [Turn::Now, Turn::Now]);
        line.lost(second);
        assert_eq!(line.turn(second), Turn::Later, "the first may be lost or not");
        line.lost(first);
        let third = line.begin();
        assert_eq!([line.turn(third), line.turn(second)], [Turn::Later, Turn::Later]);
        assert_eq!(line.turn(first), Turn::Now);
        assert_eq!(line.turn(second), Turn::Later, "the first is with the room again");
        line.answered(first);
        line.under_way.remove(&first);
        assert_eq!([line.turn(third), line.turn(second)], [Turn::Later, Turn::Now]);
    }

    #[test]
    fn a_lost_message_is_not_sent_behind_a_later_one() {
        let mut line = Line::default();
        let [first, second] = [line.begin(), line.begin()];
        line.lost(first);
        assert_eq!(line.turn(first), Turn::Later);
        line.answered(second);
        line.under_way.remove(&second);
        assert_eq!(line.turn(first), Turn::Over);
    }

    #[tokio::test]
    async fn one_that_waits_goes_on_when_the_one_before_it_has_ended() {
        let sends = Sends::default();
        let room = RoomId::from_u64(7);
        let [first, second] = [sends.begin(room), sends.begin(room)];
        for place in [&first, &second] {
            place.change(|line| line.lost(place.number));
        }
        assert_eq!(first.turn().await, Turn::Now);
        let mut waits = pin!(second.turn());
        assert!(futures_util::poll!(&mut waits).is_pending());
        first.change(|line| line.answered(first.number));
        drop(first);
        assert_eq!(waits.await, Turn::Now);
    }

    #[test]
    fn nothing_is_kept_of_what_has_ended() {
        let sends = Sends::default();
        let room = RoomId::from_u64(7);
        let [first, second] = [sends.begin(room), sends.begin(room)];
        drop(first);
        assert_eq!(sends.rooms.lock().len(), 1);
        drop(second);
        assert!(sends.rooms.lock().is_empty());
    }
}
