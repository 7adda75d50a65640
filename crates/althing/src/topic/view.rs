//! What an onlooker sees of a topic, whatever its events are. A plain value, which keeps nothing of
//! the topic.

use super::published::{Sequence, TopicName};
use crate::epoch::Epoch;

/// A topic at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicView {
    /// Its name.
    pub name: TopicName,
    /// The type of its events, by its full path.
    pub event: &'static str,
    /// Subscribed actors and streams.
    pub subscribers: usize,
    /// Position of the last event.
    pub last: Sequence,
    /// Events kept for replay.
    pub kept: usize,
    /// Events that some subscribers have still to be handed.
    pub pending: usize,
    /// Events that subscribers did not get, added up over them: their mailbox or the reader's
    /// buffer was full, or publishers were too fast.
    pub missed: u64,
    /// The highest epoch that ever claimed it.
    pub epoch: Option<Epoch>,
    /// Whether the publisher of that epoch lives.
    pub is_owned: bool,
}
