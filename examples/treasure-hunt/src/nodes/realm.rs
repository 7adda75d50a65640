//! What all actors of a node share: the seed, the store, the ways to the others.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use althing::{ActorRef, AskError, Node};
use althing_cluster::Member;
use althing_store::Store;

use super::player::PlayerActor;
use super::region::RegionActor;
use super::seed::SeedActor;
use super::session::View;
use crate::actors::is_worth_a_retry;
use crate::limits::RETRY_PAUSE;
use crate::place::{PlayerId, RegionId};
use crate::rules::Refusal;
use crate::world::Counters;

/// How long an actor is asked again whose node may be lost: it lives elsewhere once the lease has
/// run out, which takes six seconds.
pub(super) const ASK_FOR: Duration = Duration::from_secs(20);

/// One node's part of the world.
pub(super) struct Realm {
    pub(super) seed: u64,
    pub(super) store: Arc<dyn Store>,
    pub(super) counters: Counters,
    pub(super) member: Member,
    node: OnceLock<Node>,
}

impl Realm {
    pub(super) fn new(seed: u64, store: Arc<dyn Store>, member: Member) -> Arc<Self> {
        let counters = Counters::default();
        Arc::new(Self { seed, store, counters, member, node: OnceLock::new() })
    }

    /// Starts the node with all its kinds of actors.
    pub(super) fn build(self: &Arc<Self>, name: &str) -> Node {
        let (players, regions, seed) = (self.clone(), self.clone(), self.clone());
        let node = Node::builder(name)
            .cluster(self.member.way())
            .event::<View>("hunt.view")
            .actor(move |start| PlayerActor::load(start, players.clone()))
            .actor(move |start| RegionActor::load(start, regions.clone()))
            .actor(move |start| SeedActor::load(start, seed.clone()))
            .build();
        self.node.set(node.clone()).expect("a node is built once");
        node
    }

    pub(super) fn node(&self) -> &Node {
        self.node.get().expect("its actors begin after it")
    }

    pub(super) fn region(&self, region: RegionId) -> ActorRef<RegionActor> {
        self.node().get(region.number().to_string())
    }

    pub(super) fn player(&self, player: PlayerId) -> ActorRef<PlayerActor> {
        self.node().get(player.0.to_string())
    }

    /// Asks until there is an answer: an actor whose node died lives elsewhere a moment later.
    pub(super) async fn again<T, C>(&self, mut ask: impl FnMut() -> C) -> Result<T, Refusal>
    where
        C: Future<Output = Result<T, AskError>>,
    {
        let until = self.node().elapsed() + ASK_FOR;
        loop {
            match ask().await {
                Ok(answer) => return Ok(answer),
                Err(error) if !is_worth_a_retry(&error) || self.node().elapsed() > until => {
                    tracing::warn!(%error, "an actor does not answer");
                    return Err(Refusal::Unavailable);
                }
                Err(_) => self.counters.retries.count(),
            }
            self.node().sleep(RETRY_PAUSE).await;
        }
    }
}
