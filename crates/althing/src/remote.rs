//! Actors on other nodes: what a cluster does for a node, and what the node does for it.
//!
//! An address leads to a place, whichever node the actor is on. A place whose actor lives elsewhere
//! has its mailbox say so, which is one more reason why a message cannot be queued: local messages
//! pay nothing for it. Then the message is encoded and handed to the node's [`Cluster`], which
//! knows the way; the other node takes it with [`Node::deliver`].
//!
//! This crate owns no socket. It decides what a parcel means, never where it goes.

pub(crate) mod ancestors;
pub(crate) mod cluster;
pub(crate) mod control;
mod decoding;
mod deliver;
mod departure;
pub(crate) mod following;
mod inlet;
mod letter;
pub(crate) mod outgoing;
pub(crate) mod parcel;
pub(crate) mod ship;
pub(crate) mod told;
pub(crate) mod topics;

pub use cluster::{Cluster, Location, NotMoved};
pub use deliver::Undelivered;
pub use departure::Sealed;
pub use inlet::Inlet;
pub use letter::Letter;
pub use parcel::{CHAIN_LEN_MAX, Cargo, Control, Message, Parcel, Reply};
pub use told::{Taken, Told};
pub use topics::{Arriving, Continuity, Departing, Listening, NotTaken, Place, TopicWay};

#[cfg(doc)]
use crate::node::shared::Node;
