//! Unloads idle actors and forgets addresses nobody holds, in passes over part of the directory.
//!
//! Two reasons to unload: an actor was idle for as long as its type says, or the process is above
//! its memory budget; then the actors that have been idle for longest go first. A pass looks at a
//! bounded number of actors, so that millions of them do not cost a core; with up to
//! [`CELLS_PER_PASS`] actors every pass sees them all.

use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::activation::run::Run;
use crate::activation::stopping::claim_to_stop;
use crate::address::place::{AnyPlace, Header};
use crate::mail::claim::Value;
use crate::mail::mailbox::Inner;
use crate::node::env::Nap;
use crate::node::shared::NodeShared;
use crate::stop_reason::StopReason;
use crate::timer::pending::PendingTimer;

/// Pause between passes. An idle time is met within one pass and a second.
const PASS_EVERY: Duration = Duration::from_secs(1);
/// Actors looked at in one pass: some ten milliseconds of one core.
const CELLS_PER_PASS: usize = 100_000;
/// Actors unloaded in one pass for lack of memory; the next pass looks at what that gave.
const UNLOADED_PER_PASS: usize = 10_000;

/// Seconds between two passes from which on the second one was late: all threads were held.
const LATE_S: u32 = 3;

/// A time in which no pass came. Who ran in it was taken down with the second in which it began.
#[derive(Clone, Copy, Debug, Default)]
struct Hold {
    began_s: u32,
    ended_s: u32,
}

impl Hold {
    /// When an actor has last run, at the latest.
    fn latest_s(self, last_active_s: u32) -> u32 {
        if last_active_s == self.began_s { last_active_s.max(self.ended_s) } else { last_active_s }
    }
}

/// What one pass leaves to the next.
#[derive(Default)]
struct Passes {
    /// The second of the last one.
    last_s: u32,
    /// The last time in which none came though it was due.
    hold: Hold,
}

impl Passes {
    /// Brings the coarse clock up to date; returns what it says.
    fn tick(&mut self, node: &NodeShared) -> u32 {
        let now_s = node.tick_coarse();
        // A simulation has nothing that could hold them up, and leaves out those that do nothing.
        if now_s.saturating_sub(self.last_s) >= LATE_S && !node.env.is_simulated() {
            self.hold = Hold { began_s: self.last_s, ended_s: now_s };
        }
        self.last_s = now_s;
        now_s
    }
}

/// Starts the passes; they end with the node.
pub(crate) fn start(node: &Arc<NodeShared>, memory_budget_bytes: Option<u64>) {
    let weak = Arc::downgrade(node);
    node.env.spawn_in_background(async move {
        let mut passes = Passes::default();
        let mut pause = Nap::Due(PASS_EVERY);
        while let Some(node) = weak.upgrade() {
            let sleep = node.env.nap(pause);
            drop(node);
            sleep.await;
            let Some(node) = weak.upgrade() else { return };
            let is_over_budget = memory_budget_bytes
                .is_some_and(|budget| resident_bytes(&node).is_some_and(|bytes| bytes > budget));
            pause = match pass(&node, &mut passes, is_over_budget) {
                Some(due) => Nap::Lookout { look: PASS_EVERY, due },
                None => Nap::Background(PASS_EVERY),
            };
        }
    });
}

/// Unloads who is due; returns when the next of those seen will be, if nothing happens until then.
fn pass(node: &NodeShared, passes: &mut Passes, is_over_budget: bool) -> Option<Duration> {
    let mut next_due: Option<Duration> = None;
    let now_s = passes.tick(node);
    let hold = passes.hold;
    let mut idle = Vec::new();
    let mut longest = Longest::default();
    node.holdings().directory.pass(CELLS_PER_PASS, |place| {
        let header = place.header();
        let last_active_s = header.last_active_s.load(Ordering::Relaxed);
        let idle_s = now_s.saturating_sub(hold.latest_s(last_active_s));
        // Whom nobody could bring back is not unloaded but stopped, by whoever wants that.
        let comes_back = header.key().is_some() && place.is_rebuildable();
        let limit = header.kind.options.passivate_after.filter(|_| comes_back);
        let idle_s =
            if limit.is_some() { idle_s.max(idle_besides_ticks(header, now_s)) } else { idle_s };
        let idle_for = Duration::from_secs(u64::from(idle_s));
        let is_due = limit.is_some_and(|limit| idle_for >= limit);
        let may_be_longest = is_over_budget && comes_back;
        if let Some(limit) = limit
            && !is_due
            && header.mailbox.is_quiet()
        {
            // Seconds are counted whole.
            let due = (limit - idle_for).max(PASS_EVERY);
            next_due = Some(next_due.map_or(due, |next| next.min(due)));
        }
        if !(is_due || may_be_longest) || !header.mailbox.is_quiet() {
            return;
        }
        if must_stay(header, &header.mailbox.lock()) {
            return;
        }
        if is_due {
            idle.push(place.clone());
        } else {
            longest.offer(idle_s, place);
        }
    });
    for place in idle.iter().chain(longest.places()) {
        if let Some(run) = unload(place) {
            run.spawn();
        }
    }
    next_due
}

/// Takes the claim of an idle actor to unload it; `None` if it has got something to do, or to lose,
/// since it was looked at.
fn unload(place: &Arc<dyn AnyPlace>) -> Option<Run> {
    let header = place.header();
    let inner = header.mailbox.lock();
    if !inner.is_quiet() || must_stay(header, &inner) {
        return None;
    }
    Some(claim_to_stop(place, inner, StopReason::Passivated))
}

/// Whether unloading would lose something: a reply that it owes, a future that it awaits, a timer
/// that comes once. Messages that guards have put aside would begin the next life at once.
fn must_stay(header: &Header, inner: &Inner) -> bool {
    header.has_debts()
        || inner.extras.as_ref().is_some_and(|extras| {
            extras.pledges > 0
                || !extras.stash.is_empty()
                || extras.timers.values().any(PendingTimer::keeps_awake)
        })
}

/// For how long an actor with timers has run nothing but their ticks, as far as passes have seen.
fn idle_besides_ticks(header: &Header, now_s: u32) -> u32 {
    let mut inner = header.mailbox.lock();
    let tally = header.mailbox.tally();
    let Some(extras) = inner.extras.as_mut().filter(|extras| !extras.timers.is_empty()) else {
        return 0;
    };
    let messages = tally.wrapping_sub(extras.ticks);
    if extras.busy.0 != messages {
        extras.busy = (messages, now_s);
    }
    now_s.saturating_sub(extras.busy.1)
}

/// The actors that have been idle for longest, of those offered.
#[derive(Default)]
struct Longest {
    /// Idle seconds, negated, so that the shortest is on top; and where the place is.
    heap: BinaryHeap<(std::cmp::Reverse<u32>, usize)>,
    places: Vec<Arc<dyn AnyPlace>>,
    /// Those who made room, kept until no lock is held: one may be the last reference to an actor.
    displaced: Vec<Arc<dyn AnyPlace>>,
}

impl Longest {
    fn offer(&mut self, idle_s: u32, place: &Arc<dyn AnyPlace>) {
        if self.places.len() < UNLOADED_PER_PASS {
            self.heap.push((std::cmp::Reverse(idle_s), self.places.len()));
            self.places.push(place.clone());
            return;
        }
        let Some(mut shortest) = self.heap.peek_mut() else { return };
        if shortest.0.0 < idle_s {
            self.displaced.push(std::mem::replace(&mut self.places[shortest.1], place.clone()));
            shortest.0 = std::cmp::Reverse(idle_s);
        }
    }

    fn places(&self) -> impl Iterator<Item = &Arc<dyn AnyPlace>> {
        self.places.iter()
    }
}

/// Resident memory of this process; `None` where the system does not tell.
fn resident_bytes(node: &NodeShared) -> Option<u64> {
    if let Some(simulation) = node.env.simulation() {
        return simulation.resident_bytes();
    }
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    // Linux on every target we build for has pages of 4 KiB, or accounts as if.
    Some(pages * 4_096)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::unload;
    use crate::activation::context::Context;
    use crate::actor::{Actor, Handler};
    use crate::address::place::AsAnyPlace;
    use crate::node::shared::Node;

    struct Clerk;
    struct Remind;

    impl Actor for Clerk {
        const NAME: &'static str = "test.clerk";
    }

    impl Handler<Remind> for Clerk {
        type Reply = ();

        async fn handle(&mut self, _: Remind, ctx: &mut Context<Self>) {
            ctx.after(Duration::from_secs(60), Remind);
        }
    }

    /// Between the look at an actor and its unloading others run.
    #[tokio::test]
    async fn an_actor_that_got_something_to_lose_since_it_was_looked_at_is_not_unloaded() {
        let node = Node::builder("office").actor(async |_| Ok(Clerk)).build();
        let (asked, idle) = (node.get::<Clerk>("asked"), node.get::<Clerk>("idle"));
        asked.send(Remind).await.expect("it runs");
        idle.activate();
        while !idle.is_active() {
            tokio::task::yield_now().await;
        }
        assert!(unload(&asked.place().as_any_place()).is_none());
        let ended = unload(&idle.place().as_any_place()).expect("it has nothing to lose");
        ended.run_now();
        assert!(asked.is_active() && !idle.is_active());
    }
}
