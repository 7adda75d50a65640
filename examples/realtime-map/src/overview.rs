//! The overview actor: the last summary of every organisation and the state of the feed, published
//! once a second.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use althing::{ActorError, Context, Node, Start, Topic, actor};
use serde::Serialize;

use crate::feed::{FeedState, FeedStatus};
use crate::organization::Summary;
use crate::world::World;

/// Key of the one overview of a map.
pub(crate) const OVERVIEW_KEY: &str = "city";

const PUBLISH_EVERY: Duration = Duration::from_secs(1);

/// The map in numbers.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Overview {
    /// Operators, by number.
    pub(crate) organizations: Vec<Summary>,
    /// Vehicles in memory.
    pub(crate) awake: u64,
    /// Vehicles that sleep or slept, and so are in the store.
    pub(crate) known: usize,
    /// Positions taken in over the last second.
    pub(crate) positions_per_second: f64,
    /// The broker, as seen from here.
    pub(crate) feed: FeedState,
    /// Messages refused since the start.
    pub(crate) refused: u64,
}

/// Collects the overview.
pub(crate) struct Overviewer {
    world: Arc<World>,
    /// Kept, because the last overview is kept with it.
    topic: Topic<Overview>,
    feed: Arc<FeedStatus>,
    organizations: BTreeMap<u16, Summary>,
    counted: (Duration, u64),
    positions_per_second: f64,
}

impl Overviewer {
    /// Starts the overview.
    ///
    /// # Errors
    /// Never.
    pub(crate) async fn open(
        start: Start<Self>,
        world: Arc<World>,
        feed: Arc<FeedStatus>,
    ) -> Result<Self, ActorError> {
        let counted = (start.node().elapsed(), world.counters.positions.get());
        let topic = world.overview_topic(&start.node());
        let organizations = BTreeMap::new();
        Ok(Self { world, topic, feed, organizations, counted, positions_per_second: 0.0 })
    }

    fn overview_now(&self, node: &Node) -> Overview {
        let counters = &self.world.counters;
        Overview {
            organizations: self.organizations.values().cloned().collect(),
            awake: self.world.vehicles_awake(node),
            known: self.world.store.known_len(),
            positions_per_second: self.positions_per_second,
            feed: self.feed.now(),
            refused: counters.bad_topics.get()
                + counters.bad_payloads.get()
                + counters.from_the_future.get(),
        }
    }
}

#[actor(name = "map.overview", derive(Clone))]
impl Overviewer {
    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        ctx.every(PUBLISH_EVERY, overviewer_messages::Tick);
        Ok(())
    }

    /// Takes an organisation's summary in.
    pub(crate) async fn summarized(&mut self, summary: Summary) {
        self.organizations.insert(summary.operator, summary);
    }

    /// The numbers now.
    pub(crate) async fn overview(&self, ctx: &Context<Self>) -> Overview {
        self.overview_now(&ctx.node())
    }

    async fn tick(&mut self, ctx: &mut Context<Self>) {
        let (before, counted) = self.counted;
        let (now, positions) = (ctx.elapsed(), self.world.counters.positions.get());
        let seconds = (now - before).as_secs_f64().max(0.001);
        self.positions_per_second = (positions - counted) as f64 / seconds;
        self.counted = (now, positions);
        let overview = self.overview_now(&ctx.node());
        self.topic.publish(overview).expect("nobody owns the topic");
    }
}
