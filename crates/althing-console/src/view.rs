//! What the console shows, as JSON: the one contract between the page, the terminal and the node.
//!
//! Units stand in the names. Rates are per second since the look before; zero in the first one.

use std::time::Duration;

use althing::{ActorView, Inspection, KindSnapshot, MessageSnapshot, Snapshot};
use serde::{Deserialize, Serialize};

/// Message types listed as the slowest.
const SLOW_MAX: usize = 12;

/// A node at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// Name of the node.
    pub node: String,
    /// How long it has been running.
    pub uptime_s: u64,
    /// Actors that were looked at.
    pub visited: usize,
    /// All actor types, by name.
    pub kinds: Vec<KindLine>,
    /// The actors that took the most messages.
    pub hot: Vec<ActorLine>,
    /// The actors with the most messages waiting.
    pub deep: Vec<ActorLine>,
    /// The message types that take longest.
    pub slow: Vec<MessageLine>,
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
    /// Half of the messages took at most so long.
    pub p50_us: f64,
    /// 99 of 100 took at most so long.
    pub p99_us: f64,
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
    /// Messages that were timed.
    pub sampled: u64,
    /// Their mean time.
    pub mean_us: f64,
    /// The longest of them.
    pub max_us: f64,
}

impl View {
    /// What `now` and `seen` show, `since` the snapshot before.
    pub(crate) fn new(now: &Snapshot, seen: &Inspection, since: Option<&Since>) -> Self {
        let rate = |count: u64| since.map_or(0.0, |since| since.rate(count));
        let kinds = now.kinds.iter().map(|kind| {
            let before = since.and_then(|since| since.snapshot.kind(kind.name.as_str()));
            kind_line(kind, rate(kind.handled - before.map_or(0, |before| before.handled)))
        });
        let actors = |views: &[ActorView]| {
            views.iter().map(|view| actor_line(view, rate(view.handled.into()))).collect()
        };
        let of_kind = |kind: &KindSnapshot| {
            let name = &kind.name;
            kind.messages
                .iter()
                .map(|message| message_line(name.as_str(), message))
                .collect::<Vec<_>>()
        };
        let mut slow: Vec<_> = now.kinds.iter().flat_map(of_kind).collect();
        slow.sort_by(|a, b| b.mean_us.total_cmp(&a.mean_us));
        slow.truncate(SLOW_MAX);
        Self {
            kinds: kinds.collect(),
            hot: actors(&seen.hot),
            deep: actors(&seen.deep),
            slow,
            visited: seen.visited,
            ..Self::default()
        }
    }
}

/// The look before.
pub(crate) struct Since {
    pub(crate) snapshot: Snapshot,
    pub(crate) elapsed: Duration,
}

impl Since {
    fn rate(&self, count: u64) -> f64 {
        count as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

fn kind_line(kind: &KindSnapshot, rate: f64) -> KindLine {
    KindLine {
        name: kind.name.to_string(),
        live: kind.live(),
        rate,
        handled: kind.handled,
        failed: kind.failed(),
        restarted: kind.restarted,
        missed: kind.missed,
        timed_out: kind.timed_out,
        overloaded: kind.overloaded,
        depth: kind.depth,
        oldest_s: kind.oldest.as_secs(),
        p50_us: micros(kind.handling.quantile(0.5)),
        p99_us: micros(kind.handling.quantile(0.99)),
    }
}

fn actor_line(view: &ActorView, rate: f64) -> ActorLine {
    ActorLine { id: view.id.to_string(), rate, depth: view.depth, oldest_s: view.oldest.as_secs() }
}

fn message_line(actor: &str, message: &MessageSnapshot) -> MessageLine {
    MessageLine {
        actor: actor.to_owned(),
        message: message.name.clone(),
        sampled: message.sampled,
        mean_us: micros(message.mean()),
        max_us: micros(message.max),
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
