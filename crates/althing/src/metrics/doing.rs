//! What an actor is at, as it leaves word when it suspends: for whoever asks why it does not come
//! back.

use crate::metrics::MessageName;

/// What an actor is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activity {
    /// A handler of this message type, which is given by its full path.
    Message(&'static str),
    /// A message whose type was not taken down: it runs on the thread of who sent it.
    InPlace,
    /// Its factory or its `started` hook.
    Starting,
    /// The pause before a restart.
    Pausing,
    /// Its `terminated` hook.
    Hearing,
    /// Its `stopping` hook.
    Stopping,
    /// Nothing: it is held, to be moved or because the node is frozen.
    Held,
}

/// What an actor that suspends is at, in its mailbox's extras.
#[derive(Clone, Copy)]
pub(crate) enum Doing {
    Message(MessageName),
    Other(Activity),
}

impl Doing {
    pub(crate) fn activity(self) -> Activity {
        match self {
            Self::Message(name) => Activity::Message(name()),
            Self::Other(activity) => activity,
        }
    }
}

impl std::fmt::Display for Activity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = match self {
            Self::Message(name) => return f.write_str(&super::short_name(name)),
            Self::InPlace => "a message in place",
            Self::Starting => "its start",
            Self::Pausing => "the pause before a restart",
            Self::Hearing => "the end of another actor",
            Self::Stopping => "its end",
            Self::Held => "nothing: it is held",
        };
        f.write_str(text)
    }
}
