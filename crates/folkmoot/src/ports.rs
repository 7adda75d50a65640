//! What rooms and users need of the world: the store, the node they live on, counters, how long
//! they stay without being needed. Knows neither of them, so that they can be built without a
//! server.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use althing::{Actor, ActorRef, Node, Topic, TopicOptions};
use folkmoot_protocol::Channel;

use crate::metrics::Metrics;
use crate::nodes::Moved;
use crate::storage::contract::{ChangeFeed, Directory, StreamLog};
use crate::storage::{Store, UnixMillis};
use crate::stream::{Coming, Publication};

/// The topic of [`Moved`], which stays on its node.
pub(crate) const MOVES: &str = "moves";

/// What the store has for an index of messages.
#[derive(Debug, Clone)]
pub(crate) struct Feed(Store);

#[derive(Debug, Clone)]
pub(crate) struct Ports {
    pub(crate) node: Node,
    /// One for all: each room and each user has these.
    common: Arc<Common>,
}

/// The nodes of a server.
pub(crate) trait Others: std::fmt::Debug + Send + Sync {
    /// Whether that life of a node goes on.
    fn has(&self, node: u64) -> bool;
}

/// What is the same for all rooms and users of a server.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) store: Store,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) limits: ActorLimits,
    /// Tells which nodes there are; `None`: rooms and users live on no others.
    pub(crate) others: Option<Box<dyn Others>>,
}

/// How much rooms and users take, and for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ActorLimits {
    pub(crate) room_idle: Duration,
    pub(crate) user_idle: Duration,
    /// More connections of one user are refused.
    pub(crate) connections_per_user_max: usize,
}

impl Feed {
    pub(crate) fn new(store: Store) -> Self {
        Self(store)
    }

    pub(crate) fn changes(&self) -> &impl ChangeFeed {
        &self.0
    }
}

impl Ports {
    pub(crate) fn new(node: Node, common: Arc<Common>) -> Self {
        Self { node, common }
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.common.metrics
    }

    pub(crate) fn limits(&self) -> ActorLimits {
        self.common.limits
    }

    /// The streams of rooms and users, and who is who.
    pub(crate) fn streams(&self) -> &(impl StreamLog + Directory + use<>) {
        &self.common.store
    }

    fn is_shared(&self) -> bool {
        self.common.others.is_some()
    }

    /// Whether the node goes on that has a connection. What it sent may come after its end, by a node
    /// that passed it on; nobody would take such a connection back.
    pub(crate) fn may_have_connections(&self, node: u64) -> bool {
        self.common.others.as_ref().is_none_or(|others| node == 0 || others.has(node))
    }

    /// Whether somebody may be in memory, here or on the node where they live.
    pub(crate) fn may_be_active<A: Actor>(&self, actor: &ActorRef<A>) -> bool {
        actor.is_active() || (self.is_shared() && !self.node.is_home_of(&actor.id()))
    }

    /// The live events of a channel.
    pub(crate) fn topic(&self, channel: Channel) -> Topic<Arc<Publication>> {
        // Recovery is the business of rooms and users; a ring here would keep every event twice.
        self.node.topic(channel.to_string(), TopicOptions { replay: 0 })
    }

    /// Waits until all that a room or user has appended is in the database or refused: it is about
    /// to be loaded on another node. A server alone has none.
    pub(crate) async fn hand_over(&self, channel: Channel) {
        if self.is_shared() {
            // What could not be written is known to who waits for it.
            let _ = self.streams().settled(channel).await;
        }
    }

    /// Tells what becomes of other nodes; `None` on a server alone.
    pub(crate) fn moves(&self) -> Option<Topic<Moved>> {
        self.is_shared().then(|| self.node.topic(MOVES, TopicOptions { replay: 0 }))
    }

    /// The connections that come to a room and go.
    pub(crate) fn comings(&self, channel: Channel) -> Topic<Arc<Coming>> {
        self.node.topic(format!("{channel}/online"), TopicOptions { replay: 0 })
    }

    /// In which offsets count: that of the data directory.
    pub(crate) fn epoch(&self) -> &str {
        self.common.store.stream_epoch()
    }

    pub(crate) fn now(&self) -> UnixMillis {
        now()
    }
}

pub(crate) fn now() -> UnixMillis {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    UnixMillis::from_u64(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
