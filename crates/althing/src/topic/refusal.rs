//! Why an event is not published. The topic is as it was, and the payload comes back.

use super::published::{Sequence, TopicName};
use crate::epoch::Epoch;

/// Another publisher has claimed the topic with an epoch that is not lower.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{epoch} of topic {topic} is fenced off by {current}")]
pub struct Fenced {
    /// The topic.
    pub topic: TopicName,
    /// The epoch that is refused.
    pub epoch: Epoch,
    /// The highest epoch that has claimed the topic.
    pub current: Epoch,
}

/// Why an event was not published; hands the payload back. The topic is as it was.
#[derive(thiserror::Error)]
pub enum PublishError<T> {
    /// A later publisher owns the topic. Trying again is of no use.
    #[error("{fenced}")]
    Fenced {
        /// Both epochs.
        fenced: Fenced,
        /// What was to be published.
        payload: T,
    },
    /// The topic has a publisher of its own, and only that one may publish while it lives.
    #[error("topic {topic} is owned by the publisher of {epoch}")]
    Owned {
        /// The topic.
        topic: TopicName,
        /// The owner's epoch.
        epoch: Epoch,
        /// What was to be published.
        payload: T,
    },
    /// A handler whose turn is held cannot publish by itself: `ctx.publish` publishes with the
    /// turn.
    #[error("a turn that is held publishes to topic {topic} by `ctx.publish`")]
    InTurn {
        /// The topic.
        topic: TopicName,
        /// What was to be published.
        payload: T,
    },
    /// The event, encoded, is longer than a node that listens to the topic reads. Nobody hears it.
    #[error(
        "an event of {len} bytes for topic {topic} is longer than {len_max}, the limit of its listeners"
    )]
    TooLong {
        /// The topic.
        topic: TopicName,
        /// The event's length in bytes, encoded.
        len: usize,
        /// The longest that is taken.
        len_max: usize,
        /// What was to be published.
        payload: T,
    },
    /// The number is not above the last one, or there is none above it.
    #[error("number {} of topic {topic} is not above {}, the last one", sequence.0, last.0)]
    NotAbove {
        /// The topic.
        topic: TopicName,
        /// The refused number.
        sequence: Sequence,
        /// The topic's last number.
        last: Sequence,
        /// What was to be published.
        payload: T,
    },
}

impl<T> PublishError<T> {
    /// What was to be published.
    pub fn into_payload(self) -> T {
        match self {
            Self::Fenced { payload, .. }
            | Self::Owned { payload, .. }
            | Self::InTurn { payload, .. }
            | Self::TooLong { payload, .. }
            | Self::NotAbove { payload, .. } => payload,
        }
    }
}

/// Without the payload, which need not be `Debug`.
impl<T> std::fmt::Debug for PublishError<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PublishError({self})")
    }
}
