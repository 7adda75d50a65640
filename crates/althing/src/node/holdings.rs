//! What a node holds: its actors, their kinds, timers and topics.
//!
//! It lies inside `NodeShared`, which does not know this type.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::Arc;

use crate::address::actor_id::ActorId;
use crate::address::directory::Directory;
use crate::address::place::AnyPlace;
use crate::node::callers::Callers;
use crate::node::foreign::Foreign;
use crate::node::kinds::Kinds;
use crate::node::shared::NodeShared;
use crate::options::ActorOptions;
use crate::shield::discard_all;
use crate::timer::Timers;
use crate::topic::kinds::EventKinds;
use crate::topic::registry::Topics;

pub(crate) type Options = HashMap<TypeId, ActorOptions>;

/// What a node holds.
pub(crate) struct Holdings {
    pub(crate) directory: Directory,
    pub(crate) timers: Arc<Timers>,
    pub(crate) kinds: Kinds,
    pub(crate) foreign: Foreign,
    /// What replaces `Actor::options` on this node.
    pub(crate) options: Options,
    pub(crate) topics: Topics,
    pub(crate) shutdown_callers: Callers,
    /// What of their events may leave the node.
    pub(crate) events: EventKinds,
}

impl NodeShared {
    /// What the node holds.
    pub(crate) fn holdings(&self) -> &Holdings {
        self.holdings.downcast_ref().expect("a node is built with its holdings")
    }

    /// Ends the streams of topics, and forgets actor types, which hold the node in turn.
    pub(crate) fn forget_types(&self) {
        self.holdings().topics.close();
        // Dropped after the lock: factories keep what they captured, which is foreign.
        let foreign = self.holdings().foreign.take();
        let kinds = foreign.into_iter().chain(self.holdings().kinds.take());
        discard_all("dropping an actor type", kinds);
    }

    /// The place of a named actor, if somebody knows it.
    pub(crate) fn known(&self, id: &ActorId) -> Option<Arc<dyn AnyPlace>> {
        match id.place_of_birth() {
            Some(origin) if origin.node == self.incarnation => {
                self.holdings().directory.anonymous(origin)
            }
            Some(_) => self.holdings().foreign.known(id),
            None => {
                let kind = self.holdings().kinds.of_name(id.kind().as_str())?;
                self.holdings().directory.find(&kind, id.key()?)
            }
        }
    }
}
