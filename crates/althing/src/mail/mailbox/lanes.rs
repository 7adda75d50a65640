//! The lanes by which running handlers tell the actor, as its mailbox sees them: how much room they
//! are promised, and how what is in them gets into the queue.
//!
//! Invariant: `beside` holds what the open lanes may still bring, so that a tell that was written
//! into one never finds the mailbox full.

use std::sync::Arc;

use super::gate::Gate;
use super::{Inner, Wake};
use crate::mail::buffers::take_buffer;
use crate::mail::envelope::Envelope;
use crate::mail::lane::{LANE_LEN, Lane, Lanes};

/// A lane takes at most this part of the room that is left: others must not find a mailbox full
/// that has hardly anything in it.
const LANE_SHARE: u32 = 2;
/// With room for fewer messages a lane saves nothing.
const LANE_MIN: u32 = 2;

impl Inner {
    #[cold]
    pub(super) fn absorb_lanes(&mut self) {
        let mut queue = self.queue.as_vec();
        if queue.capacity() == 0 {
            *queue = take_buffer();
        }
        self.beside -= self.lanes.absorb(&mut queue);
    }

    /// Whether a handler writes into a lane.
    pub(crate) fn has_lanes(&self) -> bool {
        !self.lanes.is_empty()
    }

    /// For how many messages a lane may be opened or renewed; 0 if it would save nothing.
    pub(crate) fn lane_capacity(&mut self, len_max: u32, tally: u32) -> u32 {
        if self.gate != Gate::Open {
            return 0;
        }
        let capacity = (LANE_LEN as u32).min(self.room(len_max, tally) / LANE_SHARE);
        if capacity < LANE_MIN { 0 } else { capacity }
    }

    /// Has a lane from which all has been absorbed take `capacity` messages more.
    ///
    /// # Safety
    /// As `Lanes::renew`.
    pub(crate) unsafe fn renew(&mut self, lane: &Lane<Envelope>, capacity: u32) {
        // SAFETY: the caller's promise.
        self.beside -= unsafe { Lanes::renew(lane, capacity) };
        self.beside += capacity;
    }

    /// Opens a lane for `capacity` messages, whose room is promised.
    ///
    /// # Safety
    /// As `Lanes::attach`.
    pub(crate) unsafe fn attach(&mut self, lane: &Arc<Lane<Envelope>>, capacity: u32) {
        // SAFETY: the caller's promise.
        unsafe { self.lanes.attach(lane, capacity) };
        self.beside += capacity;
    }

    /// Closes a lane. Returns whom to wake, and what an actor that has stopped for good refuses.
    pub(crate) fn detach(&mut self, lane: &Arc<Lane<Envelope>>) -> (Wake, Vec<Envelope>) {
        self.absorb_lanes();
        self.beside -= self.lanes.detach(lane);
        if self.has_ended() {
            return (Wake::Nothing, self.take_queue());
        }
        if self.queue.is_empty() {
            return (Wake::Nothing, Vec::new());
        }
        (self.claim(), Vec::new())
    }
}
