//! Who is in the world and which connection plays it.
//!
//! A seat belongs to one connection at a time; a resume takes it over, and whoever had it is
//! refused from then on. An empty seat says who had it last: only they see its player off, or who
//! has come back and gone again would be seen off too soon.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::limits::WORLD_PLAYERS_MAX;
use crate::place::PlayerId;
use crate::rules::Refusal;

/// Names a connection for as long as the process lives; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketId(u64);

const NOBODY: u64 = 0;
/// Beside the number of whoever had a seat last: they have got up.
const EMPTY: u64 = 1 << 63;

impl SocketId {
    /// One of so many groups of about the same size.
    pub fn spread(self, groups: usize) -> usize {
        usize::try_from(self.0 % groups as u64).expect("below `groups`")
    }
}

/// A player's place at the table.
#[derive(Debug)]
pub struct Seat {
    owner: AtomicU64,
}

/// All seats.
#[derive(Debug)]
pub struct Attendance {
    seats: Mutex<HashMap<PlayerId, Arc<Seat>>>,
    players: AtomicU32,
    sockets: AtomicU64,
}

impl Seat {
    fn new() -> Arc<Self> {
        Arc::new(Self { owner: AtomicU64::new(NOBODY | EMPTY) })
    }

    /// Takes the seat, from whomever.
    pub fn take(&self, socket: SocketId) {
        self.owner.store(socket.0, Ordering::Release);
    }

    /// Whether the seat is that connection's.
    pub fn is_of(&self, socket: SocketId) -> bool {
        self.owner.load(Ordering::Acquire) == socket.0
    }

    /// Whether nobody has it.
    pub fn is_empty(&self) -> bool {
        self.owner.load(Ordering::Acquire) & EMPTY != 0
    }

    /// Whether nobody has it and that connection was the last one; `None`: nobody ever had it.
    pub fn is_left_by(&self, last: Option<SocketId>) -> bool {
        let last = last.map_or(NOBODY, |socket| socket.0);
        self.owner.load(Ordering::Acquire) == last | EMPTY
    }

    /// Gets up, unless somebody else has the seat by now.
    pub fn leave(&self, socket: SocketId) {
        let left = socket.0 | EMPTY;
        let _ = self.owner.compare_exchange(socket.0, left, Ordering::AcqRel, Ordering::Relaxed);
    }
}

impl Attendance {
    /// With seats for the players that the log knows, all empty.
    pub fn new(present: impl IntoIterator<Item = PlayerId>, player_max: u32) -> Self {
        Self {
            seats: Mutex::new(present.into_iter().map(|player| (player, Seat::new())).collect()),
            players: AtomicU32::new(player_max),
            sockets: AtomicU64::new(NOBODY),
        }
    }

    /// A number for a new connection.
    pub fn next_socket(&self) -> SocketId {
        SocketId(self.sockets.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// A number and a seat for a new player.
    ///
    /// # Errors
    /// `WorldFull`.
    pub fn admit(&self, socket: SocketId) -> Result<(PlayerId, Arc<Seat>), Refusal> {
        let mut seats = self.seats.lock();
        if seats.len() >= WORLD_PLAYERS_MAX {
            return Err(Refusal::WorldFull);
        }
        let player = PlayerId(self.players.fetch_add(1, Ordering::Relaxed) + 1);
        let seat = Seat::new();
        seat.take(socket);
        seats.insert(player, seat.clone());
        Ok((player, seat))
    }

    /// The seat of a player who is in the world.
    pub fn seat(&self, player: PlayerId) -> Option<Arc<Seat>> {
        self.seats.lock().get(&player).cloned()
    }

    /// Clears the seat of a player who has left.
    pub fn dismiss(&self, player: PlayerId) {
        let mut seats = self.seats.lock();
        seats.remove(&player);
        if seats.len() * 4 < seats.capacity() {
            seats.shrink_to_fit();
        }
    }

    /// Players in the world.
    pub fn len(&self) -> usize {
        self.seats.lock().len()
    }

    /// Whether the world is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them.
    pub fn players(&self) -> Vec<PlayerId> {
        self.seats.lock().keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_taken_over_is_no_longer_the_first_ones() {
        let attendance = Attendance::new([PlayerId(4)], 4);
        let [first, second] = [(); 2].map(|()| attendance.next_socket());
        let (player, seat) = attendance.admit(first).unwrap();
        assert_eq!(player, PlayerId(5));
        seat.take(second);
        seat.leave(first);
        assert!(seat.is_of(second) && !seat.is_of(first));
        seat.leave(second);
        assert!(seat.is_empty());
    }

    #[test]
    fn an_empty_seat_was_left_by_the_last_one_only() {
        let attendance = Attendance::new([PlayerId(4)], 4);
        let seat = attendance.seat(PlayerId(4)).unwrap();
        let [first, second] = [(); 2].map(|()| attendance.next_socket());
        assert!(seat.is_left_by(None) && !seat.is_left_by(Some(first)));
        for socket in [first, second] {
            seat.take(socket);
            assert!(!seat.is_left_by(Some(socket)) && !seat.is_empty());
            seat.leave(socket);
        }
        assert!(seat.is_empty() && seat.is_left_by(Some(second)));
        assert!(!seat.is_left_by(Some(first)) && !seat.is_left_by(None));
    }

    #[test]
    fn a_player_who_has_left_has_no_seat() {
        let attendance = Attendance::new([PlayerId(1)], 1);
        assert!(attendance.seat(PlayerId(1)).is_some_and(|seat| seat.is_empty()));
        attendance.dismiss(PlayerId(1));
        assert!(attendance.is_empty() && attendance.seat(PlayerId(1)).is_none());
    }
}
