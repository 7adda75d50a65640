//! What a message carries so that it has its effect once, however often it comes: the id of a
//! request, and a reminder.

use althing::{ActorId, Timestamp, Wire};

/// Names one request among all; whoever sends it again uses the same one.
///
/// A client makes its own, say a UUID; that of a letter follows from the turn that left it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Wire)]
pub struct RequestId(String);

/// What a reminder brings to its actor.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
pub struct Reminder {
    /// The name under which it was set.
    pub name: String,
    /// When it was due; it comes that late or later.
    pub due: Timestamp,
    /// The same whenever this one comes again.
    pub request: RequestId,
}

/// The message that brings a reminder: it has no other argument.
#[derive(Wire)]
pub(crate) struct Reminding {
    pub(crate) reminder: Reminder,
}

impl RequestId {
    /// An id that somebody else has made.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Reminding {
    /// The message of an actor's reminder that is due then.
    pub(crate) fn of(owner: &ActorId, name: &str, due: Timestamp) -> Self {
        let request = RequestId(format!("{owner}@{name}@{}", due.0));
        Self { reminder: Reminder { name: name.to_owned(), due, request } }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        bytes
    }
}
