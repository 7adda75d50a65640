//! What the process counts about itself, shared by everyone and shown to everyone. Relaxed: each
//! number stands alone.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Serialize, Serializer};

/// A number that only its name explains.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds.
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Takes away.
    pub(crate) fn sub(&self, n: u64) {
        self.0.fetch_sub(n, Ordering::Relaxed);
    }

    /// Reads.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Serialize for Counter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.get())
    }
}

/// All counters.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Counters {
    /// Messages received from the broker.
    pub(crate) received: Counter,
    /// Positions handed to vehicles.
    pub(crate) positions: Counter,
    /// Messages whose topic was refused.
    pub(crate) bad_topics: Counter,
    /// Messages whose payload was refused.
    pub(crate) bad_payloads: Counter,
    /// Events of vehicles that do not know where they are.
    pub(crate) without_place: Counter,
    /// Positions dated later than the server's clock allows.
    pub(crate) from_the_future: Counter,
    /// Positions that were not newer than the last one.
    pub(crate) stale: Counter,
    /// Positions dropped because a vehicle's mailbox was full.
    pub(crate) shed: Counter,
    /// Times the broker was lost or not reached.
    pub(crate) broker_losses: Counter,
    /// Crossings a geofence did not hear of.
    pub(crate) crossings_lost: Counter,
    /// Vehicles that went to sleep without being stored.
    pub(crate) saves_failed: Counter,
    /// Open event streams.
    pub(crate) viewports: Counter,
}
