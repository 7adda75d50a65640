//! What one node sends to another about one actor: values, which mean the same on both.

use althing_macros::Wire;

use crate::address::actor_id::{ActorId, Incarnation};
use crate::error::AskError;
use crate::mail::priority::Priority;
use crate::stop_reason::StopReason;

/// Actors in a chain of asks that is sent along with a message; those further back are left out,
/// and a cycle through them is left to its deadlines.
pub const CHAIN_LEN_MAX: usize = 256;

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

/// Something about an actor's life that another node wants or tells.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[wire(crate = crate)]
#[non_exhaustive]
pub enum Control {
    /// Activate it.
    Start,
    /// Run what waits, then stop.
    Stop,
    /// End at once.
    Kill,
    /// Tell this node when the life ends; at once if it sleeps and `sleepers_too`.
    Watch {
        /// The node that wants to know.
        node: u64,
        /// Whether an actor that sleeps counts as one whose life has ended.
        sleepers_too: bool,
        /// Later ones of that node have higher numbers; 0 of a node that gives none.
        number: u64,
    },
    /// Tell this node no more.
    Unwatch {
        /// The node.
        node: u64,
        /// It watches no more up to this number; later watches stay.
        number: u64,
    },
    /// The life that was watched has ended.
    Ended {
        /// Why.
        reason: StopReason,
        /// The watches up to this number are meant; all, if it is 0.
        number: u64,
    },
    /// An actor linked to it has stopped.
    Linked {
        /// That actor.
        other: ActorId,
    },
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Message")
            .field("name", &self.name)
            .field("bytes", &self.body.len())
            .field("is_asked", &self.reply.is_some())
            .finish_non_exhaustive()
    }
}
