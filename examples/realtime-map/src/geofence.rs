//! The geofence actor: who is inside one fence, and a log of entries and exits that it publishes.
//!
//! Vehicles find out themselves whether they crossed a line (`fence`), so a fence is told of
//! crossings only, not of every position in the city. A vehicle that sleeps is neither in nor out:
//! it is counted again when it wakes. One that was killed could not say so; it is forgotten when it
//! stops confirming.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use althing::{ActorError, Context, Start, Topic, actor};
use serde::Serialize;

use crate::fence::Crossing;
use crate::hfp::{Line, VehicleId};
use crate::vehicle::SAVE_EVERY;
use crate::world::World;

/// Crossings each fence remembers.
const LOG_LEN_MAX: usize = 50;
/// A vehicle that has not confirmed itself for so long was killed: twice in a row it did not come
/// by.
const FORGET_AFTER: Duration = SAVE_EVERY.saturating_mul(3);

/// A vehicle at the line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visit {
    /// Who.
    pub(crate) vehicle: VehicleId,
    /// Its line.
    pub(crate) line: Line,
    /// When, milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// Which way.
    pub(crate) crossing: Crossing,
}

/// A crossing, as viewers get it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FenceEvent {
    /// The fence's id.
    pub(crate) fence: String,
    /// Its name.
    pub(crate) name: String,
    /// Who crossed.
    pub(crate) vehicle: String,
    /// Its line.
    pub(crate) line: String,
    /// Which way.
    pub(crate) crossing: Crossing,
    /// When, milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// Vehicles inside after it.
    pub(crate) inside: usize,
}

/// A fence's state, for `GET /geofences`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FenceState {
    /// The fence's id.
    pub(crate) id: String,
    /// Its name.
    pub(crate) name: String,
    /// Vehicles inside that are awake.
    pub(crate) inside: usize,
    /// Entries since the process started.
    pub(crate) entries: u64,
    /// Exits since the process started.
    pub(crate) exits: u64,
    /// The last crossings, oldest first.
    pub(crate) log: Vec<FenceEvent>,
}

/// One fence.
pub(crate) struct Geofence {
    id: String,
    name: String,
    /// Kept, because the last crossings are kept with it.
    crossings: Topic<FenceEvent>,
    /// Who is inside, and when it last said so.
    inside: HashMap<VehicleId, Duration>,
    entries: u64,
    exits: u64,
    log: VecDeque<FenceEvent>,
}

impl Geofence {
    /// Starts a fence of the city.
    ///
    /// # Errors
    /// If the city has no fence of that id.
    pub(crate) async fn open(start: Start<Self>, world: Arc<World>) -> Result<Self, ActorError> {
        let id = start.key().to_owned();
        let Some(fence) = world.city.fences.iter().find(|fence| fence.id == id) else {
            return Err(ActorError::new(format!("the city has no fence {id}")));
        };
        let name = fence.name.clone();
        let (inside, log) = (HashMap::new(), VecDeque::new());
        let crossings = world.fence_topic(&start.node());
        Ok(Self { id, name, crossings, inside, entries: 0, exits: 0, log })
    }

    /// Forgets who was killed inside.
    fn forget_silent(&mut self, now: Duration) {
        self.inside.retain(|_, said| is_inside_still(*said, now));
    }
}

/// Whether a vehicle counts that was last inside at that time.
fn is_inside_still(said: Duration, now: Duration) -> bool {
    now.saturating_sub(said) < FORGET_AFTER
}

#[actor(name = "map.geofence")]
impl Geofence {
    /// Notes that a vehicle crossed the line.
    pub(crate) async fn crossed(&mut self, visit: Visit, ctx: &mut Context<Self>) {
        self.forget_silent(ctx.elapsed());
        match visit.crossing {
            Crossing::Enter => {
                self.inside.insert(visit.vehicle, ctx.elapsed());
                self.entries += 1;
            }
            Crossing::Exit => {
                self.inside.remove(&visit.vehicle);
                self.exits += 1;
            }
        }
        let event = FenceEvent {
            fence: self.id.clone(),
            name: self.name.clone(),
            vehicle: visit.vehicle.to_string(),
            line: visit.line.as_str().to_owned(),
            crossing: visit.crossing,
            at_ms: visit.at_ms,
            inside: self.inside.len(),
        };
        if self.log.len() == LOG_LEN_MAX {
            self.log.pop_front();
        }
        self.log.push_back(event.clone());
        self.crossings.publish(event).expect("nobody owns the topic");
    }

    /// Notes that a vehicle is inside: it woke up there, or is there still.
    pub(crate) async fn present(&mut self, vehicle: VehicleId, ctx: &mut Context<Self>) {
        let now = ctx.elapsed();
        self.inside.insert(vehicle, now);
        self.forget_silent(now);
    }

    /// Notes that a vehicle inside went to sleep.
    pub(crate) async fn absent(&mut self, vehicle: VehicleId) {
        self.inside.remove(&vehicle);
    }

    /// Who is inside and what happened.
    pub(crate) async fn state(&self, ctx: &Context<Self>) -> FenceState {
        let now = ctx.elapsed();
        FenceState {
            id: self.id.clone(),
            name: self.name.clone(),
            inside: self.inside.values().filter(|said| is_inside_still(**said, now)).count(),
            entries: self.entries,
            exits: self.exits,
            log: self.log.iter().cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use althing::Node;

    use super::*;
    use crate::city::City;
    use crate::store::Store;

    #[tokio::test(start_paused = true)]
    async fn a_vehicle_that_was_killed_inside_is_forgotten_though_no_other_one_comes() {
        let file = std::env::temp_dir().join(format!("map-fence-{}", std::process::id()));
        let store = Store::open(&file).unwrap();
        let world = World::new(City::thingvik(), store, Duration::from_secs(60)).unwrap();
        let (world, id) = (Arc::new(world), VehicleId::new(1, 1).unwrap());
        let key = world.city.fences[0].id.clone();
        let node = Node::builder("map")
            .actor(move |start: Start<Geofence>| Geofence::open(start, world.clone()))
            .build();
        let fence = node.get::<Geofence>(&key);
        fence.present(id).await.unwrap();
        assert_eq!(fence.state().await.unwrap().inside, 1);
        tokio::time::advance(FORGET_AFTER).await;
        assert_eq!(fence.state().await.unwrap().inside, 0);
    }
}
