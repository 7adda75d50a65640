//! The rows of the console's tables, as they are in its JSON. Units stand in the names; fields that
//! a reader does not know may come.

use althing::{Activity, ActorView, Histogram, LongRunning, Supervised, TopicView};
use serde::{Deserialize, Serialize};

use crate::view::micros;

/// Handling times within a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// Messages that were timed; the times are zero if none was.
    pub timed: u64,
    /// Half of them took at most so long.
    pub p50_us: f64,
    /// 99 of 100 took at most so long.
    pub p99_us: f64,
    /// All of them took at most so long.
    pub max_us: f64,
}

/// One actor type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KindLine {
    /// Name of the type.
    pub name: String,
    /// Actors in memory.
    pub live: u64,
    /// Messages per second.
    pub rate: f64,
    /// Messages since the start.
    pub handled: u64,
    /// Panics and messages that a guard refused.
    pub failed: u64,
    /// Restarts.
    pub restarted: u64,
    /// Events that found a full mailbox.
    pub missed: u64,
    /// Asks that timed out.
    pub timed_out: u64,
    /// Messages that found no room in time.
    pub overloaded: u64,
    /// Messages waiting.
    pub depth: u64,
    /// Age of the oldest of them.
    pub oldest_s: u64,
    /// Handling times within the short window.
    pub short: Times,
    /// Handling times within the long window.
    pub long: Times,
}

/// One actor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ActorLine {
    /// Type and key.
    pub id: String,
    /// Messages per second.
    pub rate: f64,
    /// Messages waiting.
    pub depth: usize,
    /// Age of the oldest of them.
    pub oldest_s: u64,
}

/// One message type of an actor type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MessageLine {
    /// The actor type.
    pub actor: String,
    /// The message type.
    pub message: String,
    /// Handling times within the short window.
    pub short: Times,
    /// Handling times within the long window.
    pub long: Times,
}

/// A handler or hook that does not come back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LongLine {
    /// Type and key of the actor.
    pub id: String,
    /// The message, or what else it is at.
    pub activity: String,
    /// For how long at least.
    pub at_least_s: f64,
    /// Whether it keeps a thread instead of waiting.
    pub blocks_thread: bool,
    /// Whose replies it waits for.
    pub waits_for: Vec<String>,
    /// Messages that wait behind it.
    pub depth: usize,
}

/// One topic.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TopicLine {
    /// Its name.
    pub name: String,
    /// The type of its events.
    pub event: String,
    /// Subscribed actors and streams.
    pub subscribers: usize,
    /// Position of the last event.
    pub last: u64,
    /// Events kept for replay.
    pub kept: usize,
    /// Events still on their way.
    pub waiting: usize,
    /// Events that subscribers did not get.
    pub missed: u64,
    /// The highest epoch that ever claimed it.
    pub epoch: Option<u64>,
    /// Whether the publisher of that epoch lives.
    pub is_owned: bool,
}

/// One actor in the tree of supervision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TreeLine {
    /// Type and key.
    pub id: String,
    /// Its parent.
    pub parent: Option<String>,
    /// How many children it has.
    pub children: usize,
    /// Whether it has its state in memory.
    pub is_active: bool,
    /// How often it was restarted.
    pub restarts: u32,
    /// What it failed with last.
    pub failure: Option<String>,
    /// When that was, in seconds since the node's start.
    pub failed_at_s: Option<u64>,
}

impl Times {
    pub(crate) fn of(histogram: &Histogram) -> Self {
        Self {
            timed: histogram.count(),
            p50_us: micros(histogram.quantile(0.5)),
            p99_us: micros(histogram.quantile(0.99)),
            max_us: micros(histogram.quantile(1.0)),
        }
    }
}

impl ActorLine {
    pub(crate) fn new(view: &ActorView, rate: f64) -> Self {
        let (id, oldest_s) = (view.id.to_string(), view.oldest.as_secs());
        Self { id, rate, depth: view.depth, oldest_s }
    }
}

impl From<&LongRunning> for LongLine {
    fn from(long: &LongRunning) -> Self {
        Self {
            id: long.id.to_string(),
            activity: long.activity.to_string(),
            at_least_s: long.at_least.as_secs_f64(),
            blocks_thread: long.blocks_thread,
            waits_for: long.waits_for.iter().map(ToString::to_string).collect(),
            depth: long.depth,
        }
    }
}

impl From<&TopicView> for TopicLine {
    fn from(topic: &TopicView) -> Self {
        Self {
            name: topic.name.to_string(),
            event: Activity::Message(topic.event).to_string(),
            subscribers: topic.subscribers,
            last: topic.last.0,
            kept: topic.kept,
            waiting: topic.pending,
            missed: topic.missed,
            epoch: topic.epoch.map(|epoch| epoch.0),
            is_owned: topic.is_owned,
        }
    }
}

impl From<&Supervised> for TreeLine {
    fn from(actor: &Supervised) -> Self {
        Self {
            id: actor.id.to_string(),
            parent: actor.parent.as_ref().map(ToString::to_string),
            children: actor.children,
            is_active: actor.is_active,
            restarts: actor.restarts,
            failure: actor.last_failure.as_ref().map(|failure| failure.text.clone()),
            failed_at_s: actor.last_failure.as_ref().map(|failure| failure.at.as_secs()),
        }
    }
}
