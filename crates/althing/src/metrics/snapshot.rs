//! What the counters said at one moment, as plain values.
//!
//! A snapshot is not a cut through time: counters go on while they are read. Each one is exact by
//! itself and never goes back.

use std::collections::HashMap;
use std::time::Duration;

use super::histogram::Histogram;
use super::shard::{Counter, MessageTimes, Shard};
use crate::address::actor_id::KindName;

/// The metrics of a node at one moment.
///
/// ```
/// use althing::{Node, actor};
///
/// #[derive(Default)]
/// struct Counter(u64);
///
/// #[actor(name = "example.counter")]
/// impl Counter {
///     async fn add(&mut self, n: u64) -> u64 {
///         self.0 += n;
///         self.0
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Node::builder("shop").build();
/// let counter = node.spawn(Counter::default());
/// counter.add(2).await?;
/// let metrics = node.metrics();
/// assert_eq!(metrics.kind("example.counter").map(|kind| kind.handled), Some(1));
/// assert!(metrics.prometheus_text().contains("example.counter"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// One entry per actor type, sorted by name.
    pub kinds: Vec<KindSnapshot>,
    /// Actors whose mailboxes were looked at; all of them unless there are very many.
    pub visited: usize,
}

/// The metrics of one actor type at one moment. Counts are since the node's start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindSnapshot {
    /// `Actor::NAME`.
    pub name: KindName,
    /// Messages and events that reached an actor, whatever came of them.
    pub handled: u64,
    /// Messages that a guard refused.
    pub rejected: u64,
    /// Handlers and hooks that panicked.
    pub panicked: u64,
    /// Events that found a full mailbox.
    pub missed: u64,
    /// Restarts by supervision.
    pub restarted: u64,
    /// Lives begun, by restarts too.
    pub started: u64,
    /// Lives ended, by restarts too.
    pub stopped: u64,
    /// Asks whose deadline passed before the reply came.
    pub timed_out: u64,
    /// Messages that found no room in the mailbox within their deadline.
    pub overloaded: u64,
    /// Messages that had been accepted and were dropped unread, because their actor stopped first.
    pub refused: u64,
    /// Changes that were acknowledged and then lost; those that were to be written together count as
    /// one. See [`Node::count_lost`](crate::Node::count_lost).
    pub lost: u64,
    /// Messages waiting now, in the mailboxes looked at.
    pub depth: u64,
    /// The most that wait in one of those mailboxes.
    pub depth_max: u64,
    /// How long the actor that is furthest behind has not taken a message that waits; in whole
    /// seconds.
    pub oldest: Duration,
    /// Handling times of one in 512 messages, and one in 2,048 events.
    pub handling: Histogram,
    /// The same by message type, the longest mean first.
    pub messages: Vec<MessageSnapshot>,
}

/// Handling times of one message type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageSnapshot {
    /// The Rust name of its type, without the path unless another message of the actor has the
    /// same name.
    pub name: String,
    /// Messages that were timed.
    pub sampled: u64,
    /// Their time together.
    pub sum: Duration,
    /// The longest of them.
    pub max: Duration,
    /// All of them.
    pub handling: Histogram,
}

impl Snapshot {
    /// The metrics of the actor type of that name.
    pub fn kind(&self, name: &str) -> Option<&KindSnapshot> {
        self.kinds.iter().find(|kind| kind.name == *name)
    }
}

impl KindSnapshot {
    /// Adds what was counted under the same name for another type.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.handled += other.handled;
        self.rejected += other.rejected;
        self.panicked += other.panicked;
        self.missed += other.missed;
        self.restarted += other.restarted;
        self.started += other.started;
        self.stopped += other.stopped;
        self.timed_out += other.timed_out;
        self.overloaded += other.overloaded;
        self.refused += other.refused;
        self.lost += other.lost;
        self.handling.merge(&other.handling);
        for message in other.messages {
            if self.messages.iter().all(|known| known.name != message.name) {
                self.messages.push(message);
            }
        }
    }

    /// Actors that have their state in memory now.
    pub fn live(&self) -> u64 {
        self.started.saturating_sub(self.stopped)
    }

    /// Messages that were refused by a guard or made their handler panic.
    pub fn failed(&self) -> u64 {
        self.rejected + self.panicked
    }
}

impl MessageSnapshot {
    /// The mean of the times.
    pub fn mean(&self) -> Duration {
        let sum_ns = u64::try_from(self.sum.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(sum_ns.checked_div(self.sampled).unwrap_or(0))
    }
}

/// The sum of an actor type's shards.
#[derive(Default)]
pub(crate) struct Totals {
    kind: KindSnapshot,
    messages: Vec<MessageTimes>,
}

impl Totals {
    pub(super) fn add(&mut self, shard: &Shard) {
        let kind = &mut self.kind;
        kind.handled = kind.handled.wrapping_add(shard.handled());
        kind.rejected += shard.counted(Counter::Rejected);
        kind.panicked += shard.counted(Counter::Panicked);
        kind.missed += shard.counted(Counter::Missed);
        kind.restarted += shard.counted(Counter::Restarted);
        kind.started += shard.counted(Counter::Started);
        kind.stopped += shard.counted(Counter::Stopped);
        kind.timed_out += shard.counted(Counter::TimedOut);
        kind.overloaded += shard.counted(Counter::Overloaded);
        kind.refused += shard.counted(Counter::Refused);
        kind.lost += shard.counted(Counter::Lost);
        for (sum, n) in kind.handling.buckets.iter_mut().zip(shard.buckets()) {
            *sum += n;
        }
        kind.handling.sum_ns = kind.handling.sum_ns.wrapping_add(shard.sum_ns());
        shard.merge_messages(&mut self.messages);
    }

    pub(crate) fn into_snapshot(self, name: KindName) -> KindSnapshot {
        let mut messages: Vec<_> = self.messages.iter().map(message_snapshot).collect();
        name_apart(&mut messages, &self.messages);
        messages.sort_by_key(|message| std::cmp::Reverse(message.mean()));
        KindSnapshot { name, messages, ..self.kind }
    }
}

fn message_snapshot(times: &MessageTimes) -> MessageSnapshot {
    MessageSnapshot {
        name: short_name(times.name),
        sampled: times.handling.count(),
        sum: times.handling.sum(),
        max: Duration::from_nanos(times.max_ns),
        handling: times.handling.clone(),
    }
}

/// Gives messages that are told apart by their paths alone their whole names: Prometheus refuses a
/// page in which two series have the same name and labels.
fn name_apart(messages: &mut [MessageSnapshot], times: &[MessageTimes]) {
    let mut seen = HashMap::new();
    for message in messages.iter() {
        *seen.entry(message.name.clone()).or_insert(0) += 1;
    }
    for (message, times) in messages.iter_mut().zip(times) {
        if seen.get(&message.name).is_some_and(|times| *times > 1) {
            times.name.clone_into(&mut message.name);
        }
    }
}

/// A type's name without the paths in it: `Add`, `Published<Event>`.
pub(crate) fn short_name(name: &str) -> String {
    let mut short = String::with_capacity(name.len());
    for part in name.split_inclusive("::") {
        match part.strip_suffix("::") {
            // A path's segment: what it began with stays only if it is punctuation.
            Some(segment) => {
                let kept = segment.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_');
                short.push_str(kept);
            }
            None => short.push_str(part),
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_named_without_paths() {
        for (long, short) in [
            ("u64", "u64"),
            ("shop::cart::Add", "Add"),
            ("althing::Published<shop::Event>", "Published<Event>"),
            ("alloc::vec::Vec<(a::B, c::D)>", "Vec<(B, D)>"),
        ] {
            assert_eq!(short_name(long), short);
        }
    }
}
