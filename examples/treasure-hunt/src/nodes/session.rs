//! What one connection sees: the regions around its players, each watched once however many of them
//! look, on whichever nodes they live.

use std::collections::BTreeMap;
use std::sync::Arc;

use althing::{Context, Published, Subscription, TopicOptions, Wire, actor};

use super::realm::Realm;
use super::region::RegionActorCalls;
use crate::gateway::Outbox;
use crate::limits::PING_EVERY;
use crate::place::{RegionId, RegionsInView};

/// What watchers of a region get, as bytes of the clients' protocol.
#[derive(Clone, Debug, Wire)]
pub(super) struct View {
    pub(super) region: u32,
    pub(super) bytes: Vec<u8>,
}

/// The name of a region's topic.
pub(super) fn topic_name(region: RegionId) -> String {
    format!("region:{}", region.number())
}

/// One per connection; puts views into its outbox.
pub(super) struct SessionActor {
    realm: Arc<Realm>,
    outbox: Arc<Outbox>,
    watched: BTreeMap<u16, Watched>,
}

struct Watched {
    _subscription: Subscription,
    lookers: u32,
}

impl SessionActor {
    pub(super) fn new(realm: Arc<Realm>, outbox: Arc<Outbox>) -> Self {
        Self { realm, outbox, watched: BTreeMap::new() }
    }

    async fn begin(&mut self, region: RegionId, ctx: &Context<Self>) {
        if let Some(watched) = self.watched.get_mut(&region.number()) {
            watched.lookers += 1;
            return;
        }
        let topic = ctx.node().topic::<View>(topic_name(region), TopicOptions { replay: 0 });
        let subscription = topic.subscribe(&ctx.address());
        if let Err(error) = self.realm.member.subscribed(&topic).await {
            tracing::warn!(%error, "other nodes do not hear who watches them");
        }
        // Views that come meanwhile wait in the mailbox until this handler has ended.
        let address = self.realm.region(region);
        if let Ok(view) = self.realm.again(|| address.look()).await {
            self.show(&view);
        }
        let watched = Watched { _subscription: subscription, lookers: 1 };
        self.watched.insert(region.number(), watched);
    }

    fn end(&mut self, region: RegionId) {
        if let Some(watched) = self.watched.get_mut(&region.number()) {
            watched.lookers -= 1;
            if watched.lookers == 0 {
                self.watched.remove(&region.number());
            }
        }
    }

    fn show(&self, view: &View) {
        self.outbox.add_soon(&view.bytes);
        self.outbox.send_older_than(std::time::Duration::ZERO);
    }
}

#[actor(name = "hunt.watcher")]
impl SessionActor {
    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), althing::ActorError> {
        ctx.every_with(PING_EVERY, || session_actor_messages::Ping);
        Ok(())
    }

    /// Follows one looker from one view to another.
    pub(super) async fn look(
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

    /// Keeps what lies between from forgetting the connection.
    async fn ping(&mut self) {
        self.outbox.ping();
    }

    #[event]
    async fn on_view(&mut self, view: &Published<View>) {
        let region = u16::try_from(view.payload.region);
        if region.is_ok_and(|region| self.watched.contains_key(&region)) {
            self.show(&view.payload);
        }
    }
}
