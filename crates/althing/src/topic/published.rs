//! An event as subscribers and readers get it, and its position in the topic.

use std::sync::Arc;

use crate::epoch::Epoch;

/// Name of a topic; cheap to clone.
pub type TopicName = Arc<str>;

/// Position of an event in its topic; rises strictly, whoever publishes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub u64);

/// An event as subscribers get it.
#[derive(Debug)]
pub struct Published<T> {
    /// The topic.
    pub topic: TopicName,
    /// In whose name it was published: the epoch of the topic's last [`Publisher`](crate::Publisher); zero if it never had one.
    pub epoch: Epoch,
    /// Its position.
    pub sequence: Sequence,
    /// The position before it: a subscriber that last saw another one has missed something.
    pub previous: Sequence,
    /// The event itself.
    pub payload: T,
}

/// Some of the events that were asked for are gone.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[error("events after {} up to {} are gone", after.0, until.0)]
pub struct Gap {
    /// What was asked for: the events after this position.
    pub after: Sequence,
    /// Reading can go on after this position.
    ///
    /// It is below `after` if the topic has never been as far as `after`: that position is from another life of the topic.
    pub until: Sequence,
}
