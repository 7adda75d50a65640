//! One player of the load generator: decides what to do next and remembers every answer.
//!
//! It plays the game as a person would: follow the scent, dig where it ends, pick up, carry to the
//! camp.

use std::time::{Duration, Instant};

use crate::map::mix;
use crate::place::{ActSeq, Place, PlayerId};
use crate::recount::PlayerCount;
use crate::rules::{Act, CARRY_MAX, Deed, Refusal};
use crate::wire::{Joined, Outcome};

/// One act in so many is a dig at random.
const DIGS_ONE_IN: u64 = 25;

/// A player.
#[derive(Debug)]
pub struct Bot {
    /// Who.
    pub player: PlayerId,
    /// What its answers come to.
    pub count: PlayerCount,
    /// When its next act is due.
    pub due: Instant,
    /// Whether it waits for an answer, and when that act was due.
    pub waits_since: Option<Instant>,
    state: Outcome,
    direction: u8,
    luck: u64,
    /// After a refusal: what not to try again at once.
    refused: Option<Deed>,
}

/// What all bots of a socket, or of all, came to.
#[derive(Debug, Default)]
pub struct Tally {
    /// From due to answered, or to being left out, in microseconds.
    pub latencies_us: Vec<u32>,
    /// Acts answered with an event.
    pub done: usize,
    /// Acts refused by the rules of the game.
    pub refused: u64,
    /// Acts that were answered with an error, by its text.
    pub errors: Vec<String>,
    /// Views and snapshots received.
    pub views: u64,
    /// Turns left out because the bot was too far behind; each is in the latencies.
    pub skipped: u64,
    /// Sockets that broke off.
    pub broken: u64,
}

impl Tally {
    /// Adds another's.
    pub fn merge(&mut self, other: Self) {
        self.latencies_us.extend(other.latencies_us);
        self.done += other.done;
        self.refused += other.refused;
        self.errors.extend(other.errors);
        self.views += other.views;
        self.skipped += other.skipped;
        self.broken += other.broken;
    }
}

impl Bot {
    /// A player that has just joined.
    pub fn new(joined: &Joined, due: Instant) -> Self {
        let mut count = PlayerCount::default();
        let state = joined.state;
        count.count(state.seq, Deed::Join, (state.x, state.y), state.score);
        let luck = mix(u64::from(state.player.0));
        let (player, direction) = (state.player, (luck % 8) as u8);
        Self { player, count, due, waits_since: None, state, direction, luck, refused: None }
    }

    /// What it does now; it waits for the answer from then on, and for its next turn.
    pub fn act(&mut self, interval: Duration) -> Act {
        self.waits_since = Some(self.due);
        self.due += interval;
        let deed = self.choose();
        let (x, y) = if deed == Deed::Move { self.step() } else { (self.state.x, self.state.y) };
        Act { player: self.player, seq: ActSeq(self.state.seq.0 + 1), deed, x, y }
    }

    fn dice(&mut self, sides: u64) -> u64 {
        self.luck = mix(self.luck);
        self.luck % sides
    }

    fn choose(&mut self) -> Deed {
        let (hints, carried) = (self.state.hints, usize::from(self.state.carried));
        let wanted = if hints.camp && carried > 0 {
            Deed::Drop
        } else if hints.clue && carried < CARRY_MAX {
            Deed::PickUp
        } else if hints.scent == 0 || self.dice(DIGS_ONE_IN) == 0 {
            Deed::Dig
        } else {
            Deed::Move
        };
        if self.refused.take() == Some(wanted) { Deed::Move } else { wanted }
    }

    fn step(&mut self) -> (u16, u16) {
        let camp = Place::new(self.state.x, self.state.y).map(|place| place.region().camp());
        let is_laden = usize::from(self.state.carried) == CARRY_MAX;
        if let Some(camp) = camp.filter(|_| is_laden && self.refused.is_none())
            && self.dice(8) > 0
        {
            let toward = |from: u16, to: u16| match from.cmp(&to) {
                std::cmp::Ordering::Less => from + 1,
                std::cmp::Ordering::Equal => from,
                std::cmp::Ordering::Greater => from - 1,
            };
            let next = (toward(self.state.x, camp.x()), toward(self.state.y, camp.y()));
            if next != (self.state.x, self.state.y) {
                return next;
            }
        }
        const DX: [i16; 8] = [0, 1, 1, 1, 0, -1, -1, -1];
        const DY: [i16; 8] = [-1, -1, 0, 1, 1, 1, 0, -1];
        let direction = usize::from(self.direction);
        let walk =
            |at: u16, by: i16| at.saturating_add_signed(by).min(crate::place::WORLD_SIDE - 1);
        let next = (walk(self.state.x, DX[direction]), walk(self.state.y, DY[direction]));
        if next == (self.state.x, self.state.y) {
            self.turn();
            // In a corner of the world: any neighbour is better than the edge.
            return (walk(self.state.x, if self.state.x == 0 { 1 } else { -1 }), self.state.y);
        }
        next
    }

    fn turn(&mut self) {
        self.direction = self.dice(8) as u8;
    }

    /// Takes an answer; returns how long it took since the act was due, in microseconds.
    pub fn done(&mut self, outcome: &Outcome, now: Instant) -> u32 {
        let at = (outcome.x, outcome.y);
        self.count.count(outcome.seq, outcome.deed, at, outcome.score);
        let fainter = outcome.hints.scent > self.state.hints.scent;
        self.state = *outcome;
        // Down the scent; now and then elsewhere, or all would end in the same hollow.
        if fainter || self.dice(20) == 0 {
            self.turn();
        }
        self.refused = None;
        self.answered(now)
    }

    /// Takes a refusal; returns whether the rules of the game explain it.
    pub fn refused(&mut self, code: u8, now: Instant) -> bool {
        self.answered(now);
        self.turn();
        let rules = [
            Refusal::Blocked,
            Refusal::AlreadyDug,
            Refusal::NothingHere,
            Refusal::HandsFull,
            Refusal::EmptyHanded,
        ];
        let deed = match code {
            code if code == Refusal::AlreadyDug.code() => Some(Deed::Dig),
            code if code == Refusal::NothingHere.code() => Some(Deed::PickUp),
            _ => None,
        };
        self.refused = deed;
        rules.iter().any(|refusal| refusal.code() == code)
    }

    fn answered(&mut self, now: Instant) -> u32 {
        let since = self.waits_since.take().unwrap_or(now);
        micros(now.saturating_duration_since(since))
    }
}

/// Whole microseconds; what is longer than an hour counts as the longest.
pub(super) fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}
