//! What a topic and its node's cluster say to each other about nodes that listen elsewhere.
//!
//! The topic numbers, encodes and delivers; the cluster knows who listens and carries bytes. A
//! topic calls its [`TopicWay`] under its own lock, so that events leave in the order of their
//! numbers: a way answers from memory, and never calls a topic or an actor.

use crate::epoch::Epoch;
use crate::topic::published::Sequence;
use crate::wire::WireError;

/// The way of one topic to the nodes that listen to it.
pub trait TopicWay: Send + Sync + 'static {
    /// The longest event, encoded, that each listening node takes; `None` while none listens.
    fn len_max(&self) -> Option<usize>;

    /// Takes an event of this node, for all that listen elsewhere.
    fn publish(&self, event: Departing);

    /// The first subscriber of this node has come, or the last one has gone.
    fn listen(&self, listening: Listening);

    /// The publisher of that epoch, which was on this node, is no more.
    fn released(&self, epoch: Epoch);
}

/// Whether somebody on a node subscribes to a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listening {
    /// Somebody does.
    Begins,
    /// Nobody does any more.
    Ends,
}

/// An event on its way to other nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departing {
    /// Its place in the topic, if a publisher owns the topic. Otherwise each node numbers it anew.
    pub place: Option<Place>,
    /// The event, encoded.
    pub body: Vec<u8>,
}

/// An event that comes from another node.
#[derive(Clone, Copy, Debug)]
pub struct Arriving<'a> {
    /// As in [`Departing::place`].
    pub place: Option<Place>,
    /// Whether events before it did not come, or may not have.
    pub continuity: Continuity,
    /// The event, encoded.
    pub body: &'a [u8],
}

/// Where an event stands in a topic that a publisher owns: the same on each node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The publisher's epoch.
    pub epoch: Epoch,
    /// The event's number.
    pub sequence: Sequence,
}

/// Whether an event follows the last one that this node knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continuity {
    /// It does.
    Follows,
    /// Others may have been before it: subscribers are told of a gap.
    MayLeaveAGap,
}

/// Why a node does not take an event from another one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotTaken {
    /// No type of events was registered under this name: `NodeBuilder::event`.
    #[error("no event type is registered as `{0}`")]
    Unregistered(String),
    /// The bytes are no such event. Subscribers are told of a gap.
    #[error("an event cannot be read: {0}")]
    Unreadable(#[from] WireError),
    /// A later publisher has the topic, or the number has come before.
    #[error("the topic is at number {} in {epoch} and takes no such event", last.0)]
    Late {
        /// The topic's last number.
        last: Sequence,
        /// Its epoch.
        epoch: Epoch,
    },
}
