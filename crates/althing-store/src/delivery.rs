//! What a turn leaves with the store to be delivered later, and the replies that it keeps.
//!
//! An outbox and reminders are the same to a store: letters with a name and a time at which they
//! are due, written with the turn, and kept until somebody says that they were taken.

use althing::remote::Letter;
use althing::{ActorId, Timestamp};

/// A letter that is kept until it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The actor whose turn has left it.
    pub owner: ActorId,
    /// Its name among those of its owner; a later one of the same name takes its place.
    pub name: String,
    /// When it is to be sent.
    pub due: Timestamp,
    /// When it is to be sent again, by a cron expression; `None` for once.
    pub cron: Option<String>,
    /// What is sent, and to whom.
    pub letter: Letter,
}

/// A change of what is to be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Posting {
    /// It is kept from now on; its owner is the actor of the turn.
    Put(Delivery),
    /// The one of this name is kept no longer, if it is there.
    Cancel(String),
}

#[cfg(any(feature = "cassandra", feature = "postgres"))]
impl Posting {
    /// About how much room it takes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Put(delivery) => delivery.bytes(),
            Self::Cancel(name) => name.len(),
        }
    }
}

/// A place among all deliveries: they are in the order of due time, owner's kind and key, and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark {
    /// When it is due.
    pub due: Timestamp,
    /// The actor that left it.
    pub owner: ActorId,
    /// Its name.
    pub name: String,
}

/// Says that a delivery was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Which one. If its owner has replaced or cancelled it meanwhile, nothing is changed.
    pub mark: Mark,
    /// When it is due again; `None` if it is kept no longer.
    pub next: Option<Timestamp>,
}

/// A reply that is kept for requests that come again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Its place among the replies of its actor: 1, 2, 3 …
    pub number: u64,
    /// The request, by its id.
    pub request: String,
    /// When it was given.
    pub at: Timestamp,
    /// The reply.
    pub bytes: Vec<u8>,
}

impl Delivery {
    /// Its place among all deliveries.
    pub fn mark(&self) -> Mark {
        Mark { due: self.due, owner: self.owner.clone(), name: self.name.clone() }
    }

    /// About how much room it takes.
    #[cfg(any(feature = "cassandra", feature = "postgres"))]
    pub(crate) fn bytes(&self) -> usize {
        let cron = self.cron.as_ref().map_or(0, String::len);
        size_of::<Self>()
            + self.name.len()
            + cron
            + self.letter.message.len()
            + self.letter.body.len()
    }
}
