//! Counters of what happens, above all of what should not.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::rules::Refusal;

/// One counter.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    pub fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// The count.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// All counters of a world.
#[derive(Debug, Default)]
pub struct Counters {
    /// Acts answered with an event.
    pub done: Counter,
    /// Moves that lead farther than one step or out of the world.
    pub teleports: Counter,
    /// Acts above the rate, or before the answer to the last one.
    pub floods: Counter,
    /// Acts and resumes for somebody else's player.
    pub foreign: Counter,
    /// Messages that cannot be read.
    pub malformed: Counter,
    /// Messages above the size limit.
    pub oversized: Counter,
    /// Acts that the rules refuse: into the water, with full hands, …
    pub refused: Counter,
    /// Times an actor was asked again because it died over a question.
    pub retries: Counter,
    /// Acts given up after all retries.
    pub unavailable: Counter,
    /// Actors killed by chaos.
    pub killed: Counter,
    /// Clients let go because they read too slowly.
    pub slow: Counter,
}

impl Counters {
    /// Counts a refusal under what it is.
    pub fn refusal(&self, refusal: Refusal) {
        match refusal {
            Refusal::TooFar | Refusal::OutsideWorld => self.teleports.count(),
            Refusal::TooFast | Refusal::Busy => self.floods.count(),
            Refusal::NotYours | Refusal::WrongToken => self.foreign.count(),
            Refusal::Unavailable => self.unavailable.count(),
            _ => self.refused.count(),
        }
    }
}
