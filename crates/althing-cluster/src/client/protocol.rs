//! What a client and a node say to each other, behind the greeting of `protocol`.
//!
//! Each question has a number, which its answers name. Questions are taken in their order; answers
//! come when they are there.

use althing::{AskError, Wire};

use crate::capability::Capability;
use crate::member::{Neighbour, Role, State, View};
use crate::protocol::Packed;

/// What a client says.
#[derive(Debug, Wire)]
pub(crate) struct Asked {
    pub(crate) number: u64,
    pub(crate) question: Question,
}

#[derive(Debug, Wire)]
pub(crate) enum Question {
    /// Still there.
    Ping,
    /// A message for an actor, wherever it lives.
    Message(Box<Packed>),
    /// What the node knows of the cluster.
    View,
    /// The same, now and at each change.
    Changes,
    /// How the node itself is.
    Status,
    /// Actors of the node whose names hold that text.
    Actors { text: String, limit: u64 },
    /// Where an actor lives, and what it does if it lives on the node.
    Find { kind: String, key: String },
    /// Have that actor's bucket live on the node of that name.
    Move { kind: String, key: String, to: String },
    /// Have the node give all its buckets away.
    Drain,
}

impl Question {
    /// What somebody has to be allowed for it.
    pub(crate) fn needs(&self) -> Option<Capability> {
        match self {
            Self::Ping => None,
            Self::Message(_) => Some(Capability::Talk),
            Self::View | Self::Changes | Self::Status | Self::Actors { .. } | Self::Find { .. } => {
                Some(Capability::Look)
            }
            Self::Move { .. } | Self::Drain => Some(Capability::Manage),
        }
    }
}

/// What a node answers; number 0 means nothing but that it is there.
#[derive(Debug, Wire)]
pub(crate) struct Answered {
    pub(crate) number: u64,
    pub(crate) answer: Answer,
}

#[derive(Debug, Wire)]
pub(crate) enum Answer {
    /// It is done; a tell is in its mailbox or on its way there.
    Done,
    Replied(Vec<u8>),
    Failed(AskError),
    View(Sight),
    Status(Condition),
    Actors {
        actors: Vec<Seen>,
        left: u64,
    },
    Found(Whereabouts),
    Refused(No),
}

/// Why a node does not do what a client wants.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
pub(crate) enum No {
    /// The certificate does not allow it.
    Capability(Capability),
    UnknownKind(String),
    UnknownNode(String),
    /// No other node takes buckets.
    NobodyElse,
    /// Somebody else has moved it elsewhere meanwhile.
    Overridden,
    /// The node ends, or has no lease.
    NotServing,
}

/// `View`.
#[derive(Clone, Debug, Wire)]
pub(crate) struct Sight {
    pub(crate) number: u64,
    pub(crate) members: Vec<SeenNode>,
}

/// `Neighbour`.
#[derive(Clone, Debug, Default, Wire)]
pub(crate) struct SeenNode {
    pub(crate) name: String,
    pub(crate) incarnation: u64,
    pub(crate) address: String,
    pub(crate) is_leaving: bool,
    pub(crate) buckets: u64,
    pub(crate) arriving: u64,
    pub(crate) departing: u64,
    pub(crate) is_guest: bool,
    /// Empty of a node of a version without labels.
    pub(crate) labels: Vec<String>,
}

impl Sight {
    /// Where nodes are, and nothing else of them.
    pub(crate) fn addresses(self) -> Self {
        let only = |seen: SeenNode| SeenNode { address: seen.address, ..SeenNode::default() };
        Self { number: self.number, members: self.members.into_iter().map(only).collect() }
    }
}

impl From<View> for Sight {
    fn from(view: View) -> Self {
        let seen = |node: Neighbour| SeenNode {
            name: node.name,
            incarnation: node.incarnation.0,
            address: node.address,
            is_leaving: node.is_leaving,
            buckets: node.buckets as u64,
            arriving: node.arriving as u64,
            departing: node.departing as u64,
            is_guest: node.role == Role::Guest,
            labels: node.labels,
        };
        Self { number: view.number, members: view.members.into_iter().map(seen).collect() }
    }
}

impl From<Sight> for View {
    fn from(sight: Sight) -> Self {
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let node = |seen: SeenNode| Neighbour {
            name: seen.name,
            incarnation: althing::Incarnation(seen.incarnation),
            address: seen.address,
            is_leaving: seen.is_leaving,
            buckets: count(seen.buckets),
            arriving: count(seen.arriving),
            departing: count(seen.departing),
            role: if seen.is_guest { Role::Guest } else { Role::Host },
            labels: seen.labels,
        };
        Self { number: sight.number, members: sight.members.into_iter().map(node).collect() }
    }
}

/// How a node is.
#[derive(Debug, Wire)]
pub(crate) struct Condition {
    pub(crate) state: Stand,
    pub(crate) view: u64,
    pub(crate) live: u64,
    pub(crate) waiting: u64,
    pub(crate) clients: u64,
}

/// `State`.
#[derive(Clone, Copy, Debug, Wire)]
pub(crate) enum Stand {
    Joining,
    Serving,
    Frozen,
    Evicted,
    Left,
}

impl From<State> for Stand {
    fn from(state: State) -> Self {
        match state {
            State::Joining => Self::Joining,
            State::Serving => Self::Serving,
            State::Frozen => Self::Frozen,
            State::Evicted => Self::Evicted,
            State::Left => Self::Left,
        }
    }
}

impl From<Stand> for State {
    fn from(stand: Stand) -> Self {
        match stand {
            Stand::Joining => Self::Joining,
            Stand::Serving => Self::Serving,
            Stand::Frozen => Self::Frozen,
            Stand::Evicted => Self::Evicted,
            Stand::Left => Self::Left,
        }
    }
}

/// An actor of the node.
#[derive(Debug, Wire)]
pub(crate) struct Seen {
    pub(crate) name: String,
    pub(crate) depth: u64,
    pub(crate) oldest_s: u64,
    pub(crate) is_active: bool,
    pub(crate) handled: u64,
}

/// Where an actor lives.
#[derive(Debug, Wire)]
pub(crate) struct Whereabouts {
    pub(crate) bucket: u32,
    pub(crate) epoch: u64,
    pub(crate) owner: Option<String>,
    pub(crate) going_to: Option<String>,
    /// What it does, where it lives on the node that answers and is in memory.
    pub(crate) actor: Option<Seen>,
    /// Whether the node that answers is its owner.
    pub(crate) is_here: bool,
}
