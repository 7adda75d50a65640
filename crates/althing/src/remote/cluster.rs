//! What a node needs of a cluster: where actors are, and a way there.

use std::sync::Arc;
use std::task::{Context, Poll};

use crate::address::actor_id::{ActorId, Incarnation};
use crate::epoch::Epoch;
use crate::node::shared::Node;
use crate::remote::parcel::Parcel;
use crate::remote::told::{Taken, Told};
use crate::remote::topics::TopicWay;
use crate::topic::published::TopicName;

/// What a node needs of a cluster: where actors are, and a way there.
///
/// Its functions are called while a message is sent, some of them under a lock: they answer from
/// memory, at once, and call no actor.
pub trait Cluster: Send + Sync + 'static {
    /// Where the actor lives. Asked when the actor's address is made, and by [`Node::relocate`].
    fn locate(&self, id: &ActorId) -> Location;

    /// Whether a parcel for that actor may be sent now; otherwise wakes the caller when it is worth
    /// another look.
    ///
    /// This is where senders wait when the way is crowded: what is sent afterwards is taken in any
    /// case.
    fn poll_room(&self, to: &ActorId, cx: &mut Context<'_>) -> Poll<()>;

    /// Bytes of the longest message that can be sent to that actor now; a longer tell is handed
    /// back, a longer ask fails when it is sent.
    fn longest(&self, _to: &ActorId) -> usize {
        usize::MAX
    }

    /// Bytes of the longest message that can be sent to that actor wherever it comes to live, as far
    /// as is known now; a longer letter is not to be left for it.
    fn longest_anywhere(&self, _to: &ActorId) -> usize {
        usize::MAX
    }

    /// Takes a parcel. Parcels that one thread sends to one actor arrive in that order, each at
    /// most once.
    ///
    /// If it cannot be delivered, or nobody knows whether it was, the reply of the message it
    /// carries is told so.
    fn send(&self, parcel: Parcel);

    /// Takes a tell by a shorter way than a parcel's, where there is one: what `poll_room` and `send`
    /// do, in one step and without making anything that is dropped afterwards. The order is that
    /// of `send`.
    fn tell(&self, _told: &Told<'_>, _cx: &mut Context<'_>) -> Taken {
        Taken::AsParcelOnly
    }

    /// Takes a parcel that waited in the mailbox of an actor that has left this node. It goes before
    /// everything for that actor that was given to `send` since the actor lives elsewhere.
    fn send_on(&self, parcel: Parcel) {
        self.send(parcel);
    }

    /// The way of a topic to other nodes, asked when the topic is made; `event` is the registered
    /// name of its events, `replay` how many of them it keeps. Without one, the topic stays on this
    /// node.
    fn topic(
        &self,
        _topic: &TopicName,
        _event: &'static str,
        _replay: usize,
    ) -> Option<Arc<dyn TopicWay>> {
        None
    }

    /// Whether that node can still hear of something, as far as is known now.
    fn has(&self, _node: Incarnation) -> bool {
        true
    }

    /// Has an actor of this node live on the node of that name from some later moment on; it may be
    /// moved together with others. Says at once whether that was asked for.
    ///
    /// # Errors
    /// See [`NotMoved`].
    fn move_to(&self, id: &ActorId, _node: &str) -> Result<(), NotMoved> {
        Err(NotMoved::Stays(id.clone()))
    }

    /// Hears that its node stands.
    fn built(&self, _node: &Node) {}
}

/// Why an actor is not moved; nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotMoved {
    /// It has no name, or nothing ever moves it: there is no cluster, or one that moves nobody.
    #[error("{0} stays where it is")]
    Stays(ActorId),
    /// No node of that name takes actors.
    #[error("no node that takes actors is called `{0}`")]
    UnknownNode(String),
    /// The node has not all labels that the actor's kind asks for.
    #[error("the node `{node}` lacks labels that {id} asks for: {labels}")]
    LacksLabels {
        /// The actor.
        id: ActorId,
        /// The node's name.
        node: String,
        /// Those that it lacks, separated by commas.
        labels: String,
    },
}

/// Where an actor lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// On this node, which owns it in this epoch.
    Here(Epoch),
    /// On this node, but messages for it are still on their way to its former one, which sends them
    /// on. Until they have come, senders of this node send theirs by the same way, so that nothing
    /// overtakes.
    Arriving(Epoch),
    /// On another node.
    Elsewhere,
}
