//! What every actor of the map shares: the city, its fences, the store, the counters, and the names
//! of topics.

use std::time::Duration;

use althing::{Actor, Node, Topic, TopicOptions};

use crate::city::City;
use crate::counters::Counters;
use crate::fence::{FenceError, Fences};
use crate::geo::Cell;
use crate::geofence::FenceEvent;
use crate::overview::Overview;
use crate::store::Store;
use crate::vehicle::{Sighting, Vehicle};

/// Sightings a cell keeps: who opens a map sees the last ones at once instead of waiting for the
/// next report of each.
const CELL_REPLAY: usize = 128;
/// Crossings a new viewer gets.
const FENCE_REPLAY: usize = 50;

/// Shared by all actors; never changes but for its counters and the store.
pub(crate) struct World {
    /// Routes, shapes and fences.
    pub(crate) city: City,
    /// The fences of `city`, ready for questions.
    pub(crate) fences: Fences,
    /// Snapshots of vehicles.
    pub(crate) store: Store,
    /// Silence after which a vehicle goes to sleep.
    pub(crate) idle: Duration,
    /// Numbers.
    pub(crate) counters: Counters,
}

impl World {
    /// Puts a world together.
    ///
    /// # Errors
    /// If one of the city's fences is no circle.
    pub(crate) fn new(city: City, store: Store, idle: Duration) -> Result<Self, FenceError> {
        let fences = Fences::new(&city.fences)?;
        Ok(Self { city, fences, store, idle, counters: Counters::default() })
    }

    /// Vehicles in memory.
    pub(crate) fn vehicles_awake(&self, node: &Node) -> u64 {
        let kinds = node.metrics().kinds;
        let vehicles = kinds.iter().find(|kind| kind.name == <Vehicle as Actor>::NAME);
        vehicles.map_or(0, |kind| kind.started.saturating_sub(kind.stopped))
    }

    /// Where the sightings of a cell are published.
    pub(crate) fn cell_topic(&self, node: &Node, cell: Cell) -> Topic<Sighting> {
        node.topic(cell.topic_name(), TopicOptions { replay: CELL_REPLAY })
    }

    /// Where crossings are published.
    pub(crate) fn fence_topic(&self, node: &Node) -> Topic<FenceEvent> {
        node.topic("geofences", TopicOptions { replay: FENCE_REPLAY })
    }

    /// Where the state of the whole map is published, once a second.
    pub(crate) fn overview_topic(&self, node: &Node) -> Topic<Overview> {
        node.topic("overview", TopicOptions { replay: 1 })
    }
}
