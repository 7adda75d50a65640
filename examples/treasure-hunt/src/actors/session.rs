//! What one connection sees: the regions around its players, each watched once however many of them
//! look.

use std::sync::Arc;

use althing::{Context, Published, Sequence, Subscription, actor};

use super::region::{RegionActorCalls, View, topic};
use super::settled::is_worth_a_retry;
use crate::gateway::Outbox;
use crate::limits::RETRY_PAUSE;
use crate::place::{RegionId, RegionsInView};
use crate::world::World;

/// One per connection; puts views into its outbox.
#[derive(Debug)]
pub struct SessionActor {
    world: Arc<World>,
    outbox: Arc<Outbox>,
    /// In the order of their numbers; few, and in memory for every connection.
    watched: Vec<Watched>,
}

#[derive(Debug)]
struct Watched {
    region: RegionId,
    _subscription: Subscription,
    /// Views up to here were in the snapshot.
    since: Sequence,
    lookers: u32,
}

impl SessionActor {
    /// Sees nothing yet.
    pub fn new(world: Arc<World>, outbox: Arc<Outbox>) -> Self {
        Self { world, outbox, watched: Vec::new() }
    }

    async fn begin(&mut self, region: RegionId, ctx: &Context<Self>) {
        if let Ok(place) = self.place(region) {
            self.watched[place].lookers += 1;
            return;
        }
        let subscription = topic(&self.world, region).subscribe(&ctx.address());
        // Views that come meanwhile wait in the mailbox until this handler has ended.
        let look = loop {
            match self.world.region(region).look().await {
                Ok(look) => break look,
                Err(error) if is_worth_a_retry(&error) => ctx.node().sleep(RETRY_PAUSE).await,
                Err(error) => {
                    tracing::error!(%error, "a region cannot be looked at");
                    return;
                }
            }
        };
        self.outbox.add_soon(&look.bytes);
        let watched =
            Watched { region, _subscription: subscription, since: look.since, lookers: 1 };
        let place = self.place(region).unwrap_or_else(|place| place);
        self.watched.reserve_exact(1);
        self.watched.insert(place, watched);
    }

    fn end(&mut self, region: RegionId) {
        if let Ok(place) = self.place(region) {
            self.watched[place].lookers -= 1;
            if self.watched[place].lookers == 0 {
                self.watched.remove(place);
            }
        }
    }

    fn place(&self, region: RegionId) -> Result<usize, usize> {
        self.watched.binary_search_by_key(&region, |watched| watched.region)
    }
}

#[actor(name = "hunt.session")]
impl SessionActor {
    /// Follows one looker from one view to another.
    pub async fn look(
        &mut self,
        before: Option<RegionsInView>,
        now: Option<RegionsInView>,
        ctx: &mut Context<Self>,
    ) {
        for region in now.into_iter().flat_map(RegionsInView::iter) {
            self.begin(region, ctx).await;
        }
        for region in before.into_iter().flat_map(RegionsInView::iter) {
            self.end(region);
        }
    }

    #[event]
    async fn on_view(&mut self, event: &Published<View>) {
        let place = self.place(event.payload.region);
        if place.is_ok_and(|place| event.sequence > self.watched[place].since) {
            self.outbox.add_soon(&event.payload.bytes);
        }
    }
}
