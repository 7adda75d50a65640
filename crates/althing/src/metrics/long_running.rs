//! Handlers that do not come back: which actor, which message, for how long, for whom it waits.
//!
//! Nothing is measured per message. Each look raises the attention flag of the actors that it finds
//! at work, which their runners lower between two messages, and notes how many messages each has
//! run. Where at the next look the flag still stands and the number is the same, no message has
//! ended in between. So a handler is known after two looks, and its time is exact to the pause
//! between them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::activation::waits;
use crate::address::actor_id::ActorId;
use crate::address::place::{AnyPlace, Header};
use crate::mail::mailbox::Phase;
use crate::metrics::doing::{Activity, Doing};
use crate::metrics::inspection::{Inspector, Seen, VISITS_MAX};

/// A handler or hook that has been at it since an earlier look.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LongRunning {
    /// Whose it is.
    pub id: ActorId,
    /// What it is. Where metrics are off, or a node has more than 128 threads, it may be the one
    /// before.
    pub activity: Activity,
    /// For how long at least: since the look that saw it first.
    pub at_least: Duration,
    /// Whether it keeps a thread from everything else at this moment, instead of waiting.
    pub blocks_thread: bool,
    /// Whose replies it waits for.
    pub waits_for: Vec<ActorId>,
    /// Messages that wait behind it.
    pub depth: usize,
}

impl Inspector {
    /// The handlers and hooks that have been running or waiting since a look at least `at_least`
    /// ago, the longest first and `limit` at most.
    ///
    /// The first call finds nothing: it takes two looks to see that something stood still. Where
    /// reads overlap, the one that waits longest is not seen while others end beside it.
    pub fn long_running(&mut self, at_least: Duration, limit: usize) -> Vec<LongRunning> {
        let now = self.node().env.elapsed();
        let mut at_work = Vec::new();
        self.node().holdings().directory.sample(VISITS_MAX, |place| {
            if !place.header().mailbox.is_quiet() {
                at_work.push(place.clone());
            }
        });
        let before = std::mem::take(&mut self.at_work);
        let mut found: Vec<_> = at_work
            .iter()
            .filter_map(|place| {
                let since = self.look_at(place.header(), &before, now)?;
                let time = now.saturating_sub(since);
                (!time.is_zero() && time >= at_least).then_some((time, place))
            })
            .collect();
        found.sort_by(|one, other| {
            let serial = |place: &Arc<dyn AnyPlace>| place.header().serial();
            other.0.cmp(&one.0).then_with(|| serial(one.1).cmp(&serial(other.1)))
        });
        found.truncate(limit);
        found.into_iter().filter_map(|(time, place)| tell(place, time)).collect()
    }

    /// Takes an actor down that is at work; returns since when it has been at the same message.
    fn look_at(
        &mut self,
        header: &Header,
        before: &HashMap<u64, Seen>,
        now: Duration,
    ) -> Option<Duration> {
        let is_at_work = header.mailbox.lock().phase == Phase::Running;
        if !is_at_work {
            return None;
        }
        let tally = header.mailbox.tally();
        let known = before.get(&header.serial());
        let known = known.filter(|seen| seen.tally == tally && header.has_attention());
        let since = known.map_or(now, |seen| seen.since);
        self.at_work.insert(header.serial(), Seen { tally, since });
        header.call_attention();
        Some(since)
    }
}

/// What is to be said of an actor at work; nothing if it has gone on meanwhile.
fn tell(place: &Arc<dyn AnyPlace>, at_least: Duration) -> Option<LongRunning> {
    let header = place.header();
    let metrics = &header.kind.metrics;
    let polled = metrics.message_of(header.place());
    let inner = header.mailbox.lock();
    let is_at_work = inner.phase == Phase::Running;
    let (depth, doing) = (inner.len(), inner.extras.as_ref().and_then(|extras| extras.doing));
    drop(inner);
    if !is_at_work || !header.has_attention() {
        return None;
    }
    let doing = doing.map(Doing::activity);
    let (activity, blocks_thread) = match (polled, doing) {
        (Some(Some(message)), _) => (Activity::Message(message), true),
        (Some(None), doing) => (doing.unwrap_or(Activity::Starting), true),
        (None, Some(doing)) => (doing, false),
        (None, None) => (Activity::InPlace, true),
    };
    let waits_for = waits::awaited_by(place);
    Some(LongRunning { id: header.id(), activity, at_least, blocks_thread, waits_for, depth })
}
