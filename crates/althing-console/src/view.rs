//! What the console shows, as JSON: the one contract between the page, the terminal and the node.
//!
//! Units stand in the names. Rates are per second since the look before; zero in the first one.

use std::time::Duration;

use althing::{ActorView, Inspection, KindSnapshot, LongRunning, Snapshot};
use serde::{Deserialize, Serialize};

use crate::lines::{ActorLine, KindLine, LongLine, MessageLine, Times, TopicLine, TreeLine};
use crate::windows::Window;

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
    /// How long the short window of handling times is; ten seconds, unless nobody looked in
    /// between.
    pub short_s: f64,
    /// How long the long window is; a minute, likewise.
    pub long_s: f64,
    /// Handlers that have been running or waiting for long, the longest first.
    pub stuck: Vec<LongLine>,
    /// All actor types, by name.
    pub kinds: Vec<KindLine>,
    /// The actors that took the most messages.
    pub hot: Vec<ActorLine>,
    /// The actors with the most messages waiting.
    pub deep: Vec<ActorLine>,
    /// The message types that took longest within the windows.
    pub slow: Vec<MessageLine>,
}

/// Topics, by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TopicsView {
    /// Some of them.
    pub topics: Vec<TopicLine>,
    /// How many more there are behind them.
    pub left: usize,
}

/// A part of the tree of supervision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TreeView {
    /// Parents before their children.
    pub actors: Vec<TreeLine>,
    /// How many more were found.
    pub left: usize,
}

/// What a view is made of.
pub(crate) struct Seen<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) actors: &'a Inspection,
    pub(crate) stuck: &'a [LongRunning],
    pub(crate) short: Window<'a>,
    pub(crate) long: Window<'a>,
}

impl View {
    /// What was `seen`, `since` the snapshot before.
    pub(crate) fn new(seen: &Seen<'_>, since: Option<&Since>) -> Self {
        let rate = |count: u64| since.map_or(0.0, |since| since.rate(count));
        let kinds = seen.snapshot.kinds.iter().map(|kind| {
            let before = since.and_then(|since| since.snapshot.kind(kind.name.as_str()));
            let handled = kind.handled.saturating_sub(before.map_or(0, |before| before.handled));
            seen.kind_line(kind, rate(handled))
        });
        let actors = |views: &[ActorView]| {
            views.iter().map(|view| ActorLine::new(view, rate(view.handled.into()))).collect()
        };
        Self {
            kinds: kinds.collect(),
            hot: actors(&seen.actors.hot),
            deep: actors(&seen.actors.deep),
            slow: seen.slow(),
            stuck: seen.stuck.iter().map(LongLine::from).collect(),
            short_s: seen.short.spans.as_secs_f64(),
            long_s: seen.long.spans.as_secs_f64(),
            visited: seen.actors.visited,
            ..Self::default()
        }
    }
}

impl Seen<'_> {
    fn kind_line(&self, kind: &KindSnapshot, rate: f64) -> KindLine {
        let name = kind.name.as_str();
        KindLine {
            name: name.to_owned(),
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
            short: Times::of(&self.short.kind(name, &kind.handling)),
            long: Times::of(&self.long.kind(name, &kind.handling)),
        }
    }

    /// The slowest message types that were timed within the long window.
    fn slow(&self) -> Vec<MessageLine> {
        let of_kind = |kind: &KindSnapshot| {
            let actor = kind.name.to_string();
            let lines = kind.messages.iter().map(|message| MessageLine {
                actor: actor.clone(),
                message: message.name.clone(),
                short: Times::of(&self.short.message(&actor, &message.name, &message.handling)),
                long: Times::of(&self.long.message(&actor, &message.name, &message.handling)),
            });
            lines.filter(|line| line.long.timed > 0).collect::<Vec<_>>()
        };
        let mut slow: Vec<_> = self.snapshot.kinds.iter().flat_map(of_kind).collect();
        slow.sort_by(|a, b| b.long.p99_us.total_cmp(&a.long.p99_us));
        slow.truncate(SLOW_MAX);
        slow
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

pub(crate) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
