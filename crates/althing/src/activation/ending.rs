//! What happens when a life ends: who hears of it, what becomes of waiting messages, and whether
//! the place lives on.
//!
//! A named actor with a factory survives its lives: messages that came meanwhile, and those its
//! guards had put aside, start the next. Any other place closes. Everybody who waits for the end
//! hears of it before a refused message is dropped: its drop is foreign code, which may panic or
//! send.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::{Arc, Weak};
use std::task::Waker;

use crate::activation::edge::Edge;
use crate::address::actor_id::Incarnation;
use crate::address::place::AnyPlace;
use crate::address::refusal::refuse_one;
use crate::address::signal::{send_system, send_system_from, send_system_if};
use crate::address::tie::{Tie, TieNumber, Ties, had, remove_until, take_until};
use crate::address::watching::{forget_link, leave_parent, leave_watched};
use crate::error::{ActorError, AskError};
use crate::mail::envelope::Envelope;
use crate::mail::extras::{Extras, System};
use crate::mail::mailbox::{Inner, Phase, Sent};
use crate::mail::outbox;
use crate::metrics::Counter;
use crate::metrics::step::Step;
use crate::remote::outgoing::{left_by_all, ship_end, ship_unwatch};
use crate::shield::{discard_all, discard_some, shielded, wake_all};
use crate::stop_reason::{StopReason, Terminated};
use crate::timer::id::TimerId;
use crate::timer::pending::PendingTimer;

/// What a named actor's next life gets of the messages that wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// All of them, if this life ended in peace.
    Waiting,
    /// None.
    Nothing,
}

/// Whether messages that wait start the next life of a named actor.
fn leaves_a_next_life(reason: &StopReason) -> bool {
    matches!(
        reason,
        StopReason::Passivated | StopReason::Requested | StopReason::Moved | StopReason::Fenced
    )
}

/// Whether the actor has unloaded or stopped itself, or has done what it was asked.
pub(crate) fn ends_in_peace(reason: &StopReason) -> bool {
    matches!(reason, StopReason::Passivated | StopReason::Requested)
}

/// Ends a life whose state is gone already. `Continue`: the next life has something to do, and the
/// claim is kept for it.
///
/// A stop that the life has not come to goes over into the next one, if that has something to do:
/// whoever asked for it waits for the end of that one. Otherwise an actor that is unloaded has
/// stopped.
pub(crate) fn end_life(
    place: &Arc<dyn AnyPlace>,
    waiting: Vec<Envelope>,
    reason: &StopReason,
    keeps: Keeps,
) -> ControlFlow<()> {
    let header = place.header();
    let mut inner = header.mailbox.lock();
    inner.absorb();
    let was_active = inner.end_presence();
    let asked = if ends_in_peace(reason) { inner.asked_to_stop() } else { None };
    let (mut refused, wakers) = share_out(place, &mut inner, waiting, reason, keeps);
    let goes_over = asked.is_some() && !inner.is_closed() && !inner.is_empty();
    let reason = match &asked {
        Some(asked) if !goes_over && *reason == StopReason::Passivated => asked,
        _ => reason,
    };
    if goes_over {
        inner.begin_life();
    } else {
        inner.count_end();
    }
    match reason {
        StopReason::Passivated => inner.unload(),
        _ => header.count_stop(),
    }
    if is_remembered(reason) {
        inner.extras();
    }
    let is_last = inner.is_closed();
    let end = (reason, TieNumber::MAX);
    let farewell = inner.extras.as_mut().map(|extras| farewell(extras, end, was_active, is_last));
    if goes_over {
        inner.extras().system.extend(asked.clone().map(System::Stop));
    }
    // A tick belongs to the life whose timer it is.
    refused.extend(inner.take_stale_ticks());
    let closed = inner.is_closed();
    let parent = inner.extras.as_mut().and_then(|extras| extras.parent.take());
    let next = if !closed && (!inner.is_empty() || inner.has_system()) {
        ControlFlow::Continue(())
    } else {
        inner.phase = Phase::Idle;
        ControlFlow::Break(())
    };
    let spare = inner.take_blank_extras();
    // What is left in them may be foreign.
    drop(inner);
    discard_some("dropping what an ended actor had", spare);
    if let Some(parent) = parent {
        leave_parent(&parent, place);
    }
    if was_active || matches!(reason, StopReason::NotStarted(_)) {
        header.observe(Step::Stopped(reason));
    }
    if was_active {
        header.kind.metrics.count(Counter::Stopped);
    }

    wake_all(wakers);
    if let Some(farewell) = farewell {
        refused.extend(farewell.say(place, reason));
    }
    if closed {
        header.kind.node.holdings().directory.forget(place);
        discard_some("dropping a factory", header.take_factory());
    }
    for envelope in refused {
        refuse_one(place, envelope, rejection(place, reason));
    }
    next
}

/// Leaves the messages that wait to the next life or takes them out. Returns those that nobody runs
/// any more, and the senders that may go on.
fn share_out(
    place: &Arc<dyn AnyPlace>,
    inner: &mut Inner,
    waiting: Vec<Envelope>,
    reason: &StopReason,
    keeps: Keeps,
) -> (Vec<Envelope>, Vec<Waker>) {
    let header = place.header();
    let is_virtual = header.key().is_some() && place.is_rebuildable();
    if !is_virtual || inner.is_closed() {
        let mut refused = waiting;
        let (queue, wakers) = inner.close();
        refused.extend(queue);
        return (refused, wakers);
    }
    if keeps == Keeps::Nothing || !leaves_a_next_life(reason) {
        let mut refused = waiting;
        refused.append(&mut inner.take_queue());
        if *reason == StopReason::Passivated {
            inner.keep_waking(&mut refused);
        }
        inner.hold(0, header.mailbox.tally());
        return (refused, inner.call_up(header.kind.len_max));
    }
    // What a guard put aside came first.
    let mut kept = inner.take_put_aside();
    kept.extend(waiting);
    inner.put_back(kept);
    let refused = match reason {
        // The subscriptions end here: no event of theirs starts another life.
        StopReason::Requested => inner.take_events(),
        _ => Vec::new(),
    };
    // Nobody else does it before the next life, which may begin with them.
    (refused, inner.call_up(header.kind.len_max))
}

thread_local! {
    /// What is left to do about actors that ended while the end of another one is being told;
    /// `None` outside of that.
    static ABANDONED: RefCell<Option<VecDeque<Abandoned>>> = const { RefCell::new(None) };
}

enum Abandoned {
    /// A life: drops what is left of it, and ends it.
    Life(Box<dyn FnOnce()>),
    /// A state that came after its node's shutdown.
    State(Arc<dyn AnyPlace>),
}

/// Has `end` end the life of an actor whose task was dropped, because its runtime shuts down.
pub(crate) fn abandon(end: Box<dyn FnOnce()>) {
    one_after_the_other(Abandoned::Life(end));
}

/// Drops the state of an actor that is not started any more, of whom nobody else knows.
pub(crate) fn drop_refused(place: Arc<dyn AnyPlace>) {
    one_after_the_other(Abandoned::State(place));
}

/// Telling those who wait may drop their tasks in turn, and the drop of a state may start or stop
/// the next actor; so this happens one after the other and never inside each other: a chain of a
/// hundred thousand must not use up the stack.
fn one_after_the_other(first: Abandoned) {
    let mut next = Some(first);
    // A thread whose locals are gone does it inside each other after all.
    let _ = ABANDONED.try_with(|abandoned| match &mut *abandoned.borrow_mut() {
        Some(queue) => queue.extend(next.take()),
        none => *none = Some(VecDeque::new()),
    });
    while let Some(abandoned) = next {
        shielded("ending an abandoned actor", || match abandoned {
            Abandoned::Life(end) => end(),
            // SAFETY: the place was never started, so nobody has its claim or borrows its state.
            Abandoned::State(place) => unsafe { place.clear() },
        });
        next = ABANDONED
            .try_with(|abandoned| {
                let mut abandoned = abandoned.borrow_mut();
                let next = abandoned.as_mut().and_then(VecDeque::pop_front);
                if next.is_none() {
                    *abandoned = None;
                }
                next
            })
            .unwrap_or_default();
    }
}

/// Whether a mailbox's extras say why the life ended; `Inner::last_end` knows the rest without
/// them.
fn is_remembered(reason: &StopReason) -> bool {
    !matches!(reason, StopReason::Requested | StopReason::Passivated)
}

/// Those who must hear of an end, and what must be dropped after the lock.
struct Farewell {
    wakers: BTreeMap<TieNumber, Waker>,
    watchers: Ties<Arc<dyn AnyPlace>>,
    watched: Ties<Weak<dyn AnyPlace>>,
    linked: Ties<Arc<dyn AnyPlace>>,
    children: BTreeMap<u64, Arc<dyn AnyPlace>>,
    stash: Vec<Envelope>,
    timers: BTreeMap<TimerId, PendingTimer>,
    nodes: BTreeMap<Incarnation, u64>,
    waits: BTreeMap<u64, Edge>,
    system: Vec<System>,
    /// What a handler had failed with that then stopped its actor.
    failure: Option<ActorError>,
    /// Why the life before this one ended.
    before: Option<StopReason>,
}

/// Those who watch or wait with a later number than `until` mean another life, and stay.
fn farewell(
    extras: &mut Extras,
    (reason, until): (&StopReason, TieNumber),
    was_active: bool,
    is_last: bool,
) -> Farewell {
    let remembered = is_remembered(reason).then(|| reason.clone());
    let before = std::mem::replace(&mut extras.stopped, remembered);
    extras.suspended = None;
    // News for the next life: who passivates goes on watching.
    let lives_on = match reason {
        StopReason::Passivated => was_active,
        // Elsewhere, whether or not it had begun here.
        StopReason::Moved | StopReason::Fenced => true,
        _ => false,
    };
    let passivated = lives_on && !is_last;
    let came: Vec<_> = extras.deferred.drain(..).chain(extras.system.drain(..)).collect();
    let (kept, system) = came.into_iter().partition(|message| match message {
        System::Start => !is_last && leaves_a_next_life(reason),
        System::Terminated(..) => passivated && was_active,
        _ => false,
    });
    extras.system = VecDeque::from(kept);
    let (mut watchers, mut watched) = (BTreeMap::new(), BTreeMap::new());
    let mut linked = BTreeMap::new();
    let mut timers = std::mem::take(&mut extras.timers);
    if passivated {
        if *reason == StopReason::Passivated {
            let (wakes, ends) =
                timers.into_iter().partition(|(_, timer)| timer.survives_passivation());
            extras.timers = wakes;
            timers = ends;
        }
    } else {
        linked = take_until(&mut extras.linked, until);
        watchers = take_until(&mut extras.watchers, until);
        watched = std::mem::take(&mut extras.watched);
    }
    // One that is merely unloaded is watched on, and who awaits the end of this life hears of it.
    // Where an actor went, nodes ask anew.
    let nodes = match reason {
        StopReason::Passivated if passivated => extras.nodes_watching.clone(),
        StopReason::Moved | StopReason::Fenced if passivated => {
            extras.nodes_watching.clear();
            BTreeMap::new()
        }
        _ => std::mem::take(&mut extras.nodes_watching),
    };
    extras.doing = None;
    let waiters = std::mem::take(&mut extras.stop_waiters).into_iter();
    let (wakers, later) = waiters.partition(|(number, _)| *number <= until);
    extras.stop_waiters = later;
    Farewell {
        wakers,
        watchers,
        watched,
        linked,
        children: std::mem::take(&mut extras.children),
        stash: extras.unstashed.drain(..).chain(extras.stash.drain(..)).collect(),
        timers,
        nodes,
        waits: std::mem::take(&mut extras.waits),
        system,
        failure: extras.failure.take(),
        before,
    }
}

impl Farewell {
    /// Tells them; returns the messages that nobody will run any more.
    fn say(self, place: &Arc<dyn AnyPlace>, reason: &StopReason) -> Vec<Envelope> {
        let (id, serial) = (place.header().id(), place.header().serial());
        leave_watched(place, &self.watched);
        // Whoever has begun another life since does not hear of it in that.
        for Tie { number, other, .. } in self.watchers.into_values() {
            let news = Terminated { id: id.clone(), reason: reason.clone() };
            send_system_if(&other, System::Terminated(news, serial, number), |extras| {
                had(&extras.watched, serial, number)
            });
        }
        let end = || System::Fail(StopReason::Linked(id.clone()));
        for child in self.children.into_values() {
            send_system(&child, end());
        }
        for Tie { number, other, .. } in self.linked.into_values() {
            // What is removed leads to `place`: no last reference goes under the lock.
            send_system_if(&other, end(), |extras| {
                let is_tied = had(&extras.linked, serial, number);
                remove_until(&mut extras.linked, serial, number);
                is_tied
            });
        }
        wake_all(self.wakers.into_values());
        ship_end(place, self.nodes, reason);
        end_timers(place, self.timers);
        shielded("dropping what an ended actor waited for", || drop(self.waits));
        discard_all("dropping what an ended actor did not hear of", self.system);
        discard_some("dropping what a handler had failed with", self.failure);
        discard_some("dropping why an earlier life had ended", self.before);
        self.stash
    }
}

impl Farewell {
    /// Takes the actor off the lists of others, and tells nobody but who awaits its end.
    fn fall_silent(self, place: &Arc<dyn AnyPlace>) {
        let Self { wakers, watched, linked, timers, system, before, .. } = self;
        leave_watched(place, &watched);
        for link in linked.into_values() {
            forget_link(&link.other, place.header().serial(), link.number);
        }
        // They await the end of an actor that lives elsewhere.
        wake_all(wakers.into_values());
        end_timers(place, timers);
        discard_all("dropping what an ended actor did not hear of", system);
        discard_some("dropping why an earlier life had ended", before);
    }
}

/// Ends timers of a life that is over.
pub(crate) fn end_timers(place: &Arc<dyn AnyPlace>, timers: BTreeMap<TimerId, PendingTimer>) {
    for timer in timers.into_values() {
        place.header().kind.node.holdings().timers.withdraw(&timer);
        shielded("dropping a timer's message", || drop(timer));
    }
}

/// Stops an actor at once: no hook runs, what waits is refused, a handler that waits is dropped.
pub(crate) fn kill(place: &Arc<dyn AnyPlace>, from: Sent) {
    // What the caller has told it before comes before its end.
    outbox::hand_over();
    close_for_good(place, &mut place.header().mailbox.lock());
    send_system_from(place, System::Kill, from);
}

/// Has an actor that has no later life take no more messages. One that lives elsewhere is not ours
/// to close.
pub(crate) fn close_for_good(place: &Arc<dyn AnyPlace>, inner: &mut Inner) {
    let has_later_life = place.header().key().is_some() && place.is_rebuildable();
    if !has_later_life && !inner.is_elsewhere() {
        inner.shut();
    }
}

/// Closes the address of an actor that sleeps, because its node ends: nobody is told, and nothing
/// that it would have come back for is kept.
pub(crate) fn close_sleeper(place: &Arc<dyn AnyPlace>) {
    let mut inner = place.header().mailbox.lock();
    if !inner.sleeps_now() || inner.has_ended() {
        return;
    }
    inner.shut();
    inner.count_end();
    let end = (&StopReason::NodeShutdown, TieNumber::MAX);
    let left = inner.extras.as_mut().map(|extras| farewell(extras, end, false, true));
    drop(inner);
    if let Some(left) = left {
        left.fall_silent(place);
    }
}

/// Tells those who watch an actor of another node, or wait for its end, that its life there has
/// ended: those with a number up to `until`, because the other node knew of no later one.
pub(crate) fn hear_of_end(place: &Arc<dyn AnyPlace>, reason: &StopReason, until: TieNumber) {
    // A name may live on, and be watched in a later life.
    let is_last = place.header().id().key().is_none();
    let until = if is_last { TieNumber::MAX } else { until };
    let mut inner = place.header().mailbox.lock();
    if !inner.is_elsewhere() || inner.is_active() || inner.phase != Phase::Idle {
        // It has come here since, and whoever awaited that end has looked then.
        return;
    }
    inner.count_end();
    let farewell = inner.extras.as_mut().map(|extras| {
        // Of when it lived here; other nodes hear of it from where it has ended.
        extras.nodes_watching.clear();
        farewell(extras, (reason, until), true, is_last)
    });
    // One that is unloaded is watched on, by whom there is.
    let left = if *reason == StopReason::Passivated { left_by_all(&inner) } else { None };
    drop(inner);
    ship_unwatch(place, left);
    // Nothing was stashed here.
    _ = farewell.map(|farewell| farewell.say(place, reason));
}

fn rejection(place: &Arc<dyn AnyPlace>, reason: &StopReason) -> AskError {
    let id = place.header().id();
    match reason {
        StopReason::NotStarted(error) => AskError::NotStarted(id, error.clone()),
        _ => AskError::Stopped(id),
    }
}

#[cfg(test)]
mod tests {
    use crate::activation::context::Context;
    use crate::actor::{Actor, Handler};
    use crate::address::place::AnyPlace;
    use crate::node::shared::Node;
    use crate::options::{ActorOptions, MailboxKind};
    use crate::stop_reason::StopReason;

    struct Sleeper;
    struct Unload;

    impl Actor for Sleeper {
        const NAME: &'static str = "test.unloaded";
    }

    impl Handler<Unload> for Sleeper {
        type Reply = ();

        async fn handle(&mut self, _: Unload, context: &mut Context<Self>) {
            context.passivate();
        }
    }

    #[tokio::test]
    async fn an_unloaded_actor_keeps_its_place_only() {
        let node = Node::builder("unloaded").actor(async |_| Ok(Sleeper)).build();
        let sleeper = node.get::<Sleeper>("a");
        for _ in 0..2 {
            sleeper.send(Unload).await.unwrap();
            sleeper.stopped().await;
            let inner = sleeper.place().header().mailbox.lock();
            assert!(!inner.is_active());
            assert!(inner.extras.is_none());
            assert_eq!(inner.last_end(), StopReason::Passivated);
        }
    }

    #[tokio::test]
    async fn an_unloaded_actor_keeps_its_place_only_though_senders_had_to_wait() {
        let options = ActorOptions::default().mailbox(MailboxKind::Bounded(1));
        let builder = Node::builder("unloaded").actor(async |_| Ok(Sleeper));
        let sleeper = builder.options::<Sleeper>(options).build().get::<Sleeper>("a");
        sleeper.send(Unload).try_tell().unwrap();
        sleeper.send(Unload).tell().await.unwrap();
        while !sleeper.place().header().mailbox.lock().sleeps_now() {
            tokio::task::yield_now().await;
        }
        assert!(sleeper.place().header().mailbox.lock().extras.is_none());
    }
}
