//! The players of one connection: most have one, some a thousand, and none should cost more than it
//! needs.

use std::sync::Arc;
use std::time::Duration;

use althing::ActorRef;

use crate::actors::PlayerActor;
use crate::place::{ActSeq, PlayerId, RegionsInView};
use crate::rules::Act;
use crate::world::Seat;

/// A player of a connection.
#[derive(Clone)]
pub(super) struct Playing {
    pub(super) seat: Arc<Seat>,
    pub(super) player: ActorRef<PlayerActor>,
    /// What the connection sees because of it.
    pub(super) view: Option<RegionsInView>,
    /// The act without an answer.
    pub(super) open: Option<Open>,
}

/// An act under way.
#[derive(Clone, Copy)]
pub(super) struct Open {
    pub(super) act: Act,
    pub(super) since: Duration,
    pub(super) asked_at: Duration,
}

impl Playing {
    /// Whether an answer to that act is news.
    pub(super) fn waits_for(&self, seq: ActSeq) -> bool {
        self.open.is_some_and(|open| open.act.seq == seq)
    }
}

/// Players in the order of their numbers, without spare room. A hash table of one entry has room
/// for four.
#[derive(Default)]
pub(super) struct Table(Vec<(PlayerId, Playing)>);

impl Table {
    fn place(&self, player: PlayerId) -> Result<usize, usize> {
        self.0.binary_search_by_key(&player, |(id, _)| *id)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get_mut(&mut self, player: PlayerId) -> Option<&mut Playing> {
        self.place(player).ok().map(|place| &mut self.0[place].1)
    }

    /// Puts a player in; returns how it was in before.
    pub(super) fn insert(&mut self, player: PlayerId, playing: Playing) -> Option<Playing> {
        match self.place(player) {
            Ok(place) => Some(std::mem::replace(&mut self.0[place].1, playing)),
            Err(place) => {
                self.0.reserve_exact(1 + self.0.len() / 4);
                self.0.insert(place, (player, playing));
                None
            }
        }
    }

    pub(super) fn remove(&mut self, player: PlayerId) -> Option<Playing> {
        self.place(player).ok().map(|place| self.0.remove(place).1)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Playing> {
        self.0.iter().map(|(_, playing)| playing)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Playing> {
        self.0.iter_mut().map(|(_, playing)| playing)
    }

    pub(super) fn into_iter(self) -> impl Iterator<Item = Playing> {
        self.0.into_iter().map(|(_, playing)| playing)
    }
}
