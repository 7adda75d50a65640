//! Actors on other nodes: what a cluster does for a node, and what the node does for it.
//!
//! An address leads to a place, whichever node the actor is on. A place whose actor lives elsewhere
//! has its mailbox say so, which is one more reason why a message cannot be queued: local messages
//! pay nothing for it. Then the message is encoded and handed to the node's [`Cluster`], which
//! knows the way; the other node takes it with [`Node::deliver`].
//!
//! This crate owns no socket. It decides what a parcel means, never where it goes.

mod ancestors;
mod control;
mod decoding;
mod deliver;
mod departure;
mod letter;
mod ship;

use std::task::{Context, Poll};

use crate::address::actor_id::{ActorId, Incarnation};
use crate::epoch::Epoch;
use crate::error::AskError;
use crate::mail::mailbox::Priority;
use crate::node::Node;

pub(crate) use ancestors::Caller;
pub use control::Control;
pub(crate) use control::{ship_end, ship_system, ship_watch};
pub use deliver::Undelivered;
pub use departure::Sealed;
pub(crate) use departure::{follow, ship_all, watch_on};
pub use letter::Letter;
pub(crate) use ship::{Shipped, local_only, send, ship_ask, ship_tell, way_back};

/// Actors in a chain of asks that is sent along with a message; those further back are left out,
/// and a cycle through them is left to its deadlines.
pub const CHAIN_LEN_MAX: usize = 256;

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

    /// Takes a parcel. Parcels that one thread sends to one actor arrive in that order, each at
    /// most once.
    ///
    /// If it cannot be delivered, or nobody knows whether it was, the reply of the message it
    /// carries is told so.
    fn send(&self, parcel: Parcel);

    /// Hears that its node stands.
    fn built(&self, _node: &Node) {}
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

/// What one node sends to another about one actor.
#[derive(Debug)]
pub struct Parcel {
    /// The actor.
    pub to: ActorId,
    /// The node, if it is a certain one; otherwise the one where the actor lives.
    pub node: Option<Incarnation>,
    /// What is sent.
    pub cargo: Cargo,
}

/// What is in a parcel.
#[derive(Debug)]
pub enum Cargo {
    /// A message for the actor's mailbox.
    Message(Message),
    /// Something about the actor's life.
    Control(Control),
}

/// A message as it travels.
pub struct Message {
    /// Its name among the messages of the actor's kind.
    pub name: String,
    /// The message, by its `Wire`.
    pub body: Vec<u8>,
    /// Which of the messages that wait runs first.
    pub priority: Priority,
    /// Who waits for the reply, and who waits for them, the asking actor last; at most
    /// [`CHAIN_LEN_MAX`].
    pub chain: Vec<ActorId>,
    /// Takes the reply; `None` for a tell.
    pub reply: Option<Reply>,
}

/// Takes the encoded reply of a message, or why there is none. Dropping it counts as no reply.
pub type Reply = Box<dyn FnOnce(Result<Vec<u8>, AskError>) + Send>;

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Message")
            .field("name", &self.name)
            .field("bytes", &self.body.len())
            .field("is_asked", &self.reply.is_some())
            .finish_non_exhaustive()
    }
}
