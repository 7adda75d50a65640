//! What few actors need at any moment, in a box of its own beside the mailbox: system messages,
//! other priorities, senders that wait, relatives, the stash. An actor that is back to none of it
//! gives the box back.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};
use std::task::Waker;

use tokio::sync::oneshot;

use crate::activation::edge::{Caller, Edge};
use crate::activation::guard::Bucket;
use crate::activation::supervision::Restarts;
use crate::address::actor_id::Incarnation;
use crate::address::place::AnyPlace;
use crate::address::tie::{TieNumber, Ties};
use crate::epoch::Epoch;
use crate::error::{ActorError, ChildFailed};
use crate::mail::envelope::Envelope;
use crate::mail::line::WaitingSenders;
use crate::metrics::doing::Doing;
use crate::stop_reason::{StopReason, Terminated};
use crate::timer::id::TimerId;
use crate::timer::pending::PendingTimer;

/// What few actors need at any moment.
#[derive(Default)]
pub(crate) struct Extras {
    pub(crate) system: VecDeque<System>,
    /// System messages that wait for a handler to end; before `system` in order.
    pub(crate) deferred: VecDeque<System>,
    /// Wakes a runner that waits for messages.
    pub(crate) parked: Option<Waker>,
    /// What a runner is at that suspended; of use while it has the claim.
    pub(crate) doing: Option<Doing>,
    /// Wakes a runner whose handler waits; for system messages only.
    pub(crate) suspended: Option<Waker>,
    pub(crate) high: VecDeque<Envelope>,
    pub(crate) low: VecDeque<Envelope>,
    /// Senders that wait for room.
    pub(crate) room: WaitingSenders,
    /// Those who wait for the end of this life, by a number of their own.
    pub(crate) stop_waiters: BTreeMap<TieNumber, Waker>,
    /// By serial, as all that follow.
    pub(crate) watchers: Ties<Arc<dyn AnyPlace>>,
    /// Whom this actor watches, so that it can leave them when its own life ends.
    pub(crate) watched: Ties<Weak<dyn AnyPlace>>,
    pub(crate) linked: Ties<Arc<dyn AnyPlace>>,
    /// By serial, which is the order in which they were started.
    pub(crate) children: BTreeMap<u64, Arc<dyn AnyPlace>>,
    pub(crate) parent: Option<Arc<dyn AnyPlace>>,
    pub(crate) stash: Vec<Envelope>,
    /// Taken out of the stash, to run before all that waits.
    pub(crate) unstashed: Vec<Envelope>,
    pub(crate) restarts: Restarts,
    /// Replies that handlers of the actor wait for.
    pub(crate) waits: BTreeMap<u64, Edge>,
    /// Who waits for replies of the actor, by the numbers of their edges; kept where there is a
    /// cluster.
    pub(crate) callers: BTreeMap<u64, Caller>,
    /// Nodes whose actors watch this one or wait for its end, with the number of their last watch.
    pub(crate) nodes_watching: BTreeMap<Incarnation, u64>,
    pub(crate) buckets: Vec<Bucket>,
    /// What this life waits for besides its handlers; see [`Pledge`](crate::activation::pledge).
    pub(crate) pledges: u32,
    /// Timers of this life, and those that wake the next one.
    pub(crate) timers: BTreeMap<TimerId, PendingTimer>,
    /// Ticks run so far, wrapping: they are not what an actor is kept in memory for.
    pub(crate) ticks: u32,
    /// How many messages besides ticks an actor with timers had run at the last look of
    /// passivation, and the second in which that number had changed.
    pub(crate) busy: (u32, u32),
    /// What the running handler has failed the actor with.
    pub(crate) failure: Option<ActorError>,
    /// Why the last life ended, where that was neither a plain stop nor passivation.
    pub(crate) stopped: Option<StopReason>,
}

impl Extras {
    /// Whether a sleeping actor can be forgotten: nobody watches it, it watches nobody, and nothing
    /// wakes it.
    pub(crate) fn is_forgettable(&self) -> bool {
        self.watchers.is_empty()
            && self.nodes_watching.is_empty()
            && self.watched.values().all(|watched| watched.other.strong_count() == 0)
            && self.linked.is_empty()
            && self.timers.is_empty()
            && self.stash.is_empty()
    }

    /// Whether actors of this node watch it or are linked with it.
    pub(crate) fn is_watched(&self) -> bool {
        !self.watchers.is_empty() || !self.linked.is_empty()
    }

    /// Whether nothing is in them that anybody could come back for.
    pub(crate) fn is_blank(&self) -> bool {
        self.system.is_empty()
            && self.deferred.is_empty()
            && self.high.is_empty()
            && self.low.is_empty()
            && self.room.is_empty()
            && self.stop_waiters.is_empty()
            && self.watchers.is_empty()
            && self.watched.is_empty()
            && self.timers.is_empty()
            && self.linked.is_empty()
            && self.children.is_empty()
            && self.parent.is_none()
            && self.stash.is_empty()
            && self.unstashed.is_empty()
            && self.restarts.is_empty()
            && self.waits.is_empty()
            && self.callers.is_empty()
            && self.nodes_watching.is_empty()
            && self.buckets.is_empty()
            && self.pledges == 0
            && self.failure.is_none()
            && self.stopped.is_none()
    }

    /// Takes the news of an actor's end that nobody has heard yet.
    pub(crate) fn take_news_of(&mut self, watched: u64) -> Vec<System> {
        self.take_system(|message| match message {
            System::Terminated(_, serial, _) => *serial == watched,
            _ => false,
        })
    }

    fn take_system(&mut self, is_wanted: impl Fn(&System) -> bool) -> Vec<System> {
        let mut taken = Vec::new();
        for list in [&mut self.deferred, &mut self.system] {
            if list.iter().any(&is_wanted) {
                let (wanted, kept) = list.drain(..).partition::<Vec<_>, _>(&is_wanted);
                list.extend(kept);
                taken.extend(wanted);
            }
        }
        taken
    }

    /// Takes what concerns the children of a life that is over: that they have failed, or are to
    /// restart together.
    pub(crate) fn take_news_of_children(&mut self) -> Vec<System> {
        self.take_system(|message| matches!(message, System::ChildFailed(_) | System::Restart))
    }

    /// Whether a handler has begun to wait and has not been suspended since. The latest wait has
    /// the highest number.
    pub(crate) fn has_new_wait(&self) -> bool {
        self.waits.last_key_value().is_some_and(|(_, edge)| edge.is_new())
    }
}

impl System {
    /// Why it ends the actor's life, if it does.
    pub(crate) fn end(&self) -> Option<StopReason> {
        match self {
            Self::Stop(reason) | Self::Fail(reason) => Some(reason.clone()),
            _ => None,
        }
    }

    /// Whether it is for the actor wherever it lives. All else is for the state that is on this
    /// node, also while it arrives.
    pub(crate) fn travels(&self) -> bool {
        match self {
            Self::Start | Self::Kill | Self::Fail(StopReason::Linked(_)) => true,
            Self::Stop(reason) => *reason != StopReason::NodeShutdown,
            _ => false,
        }
    }

    /// Whether an actor that sleeps is started for it; all else is about a life that has ended.
    pub(crate) fn starts_a_sleeper(&self) -> bool {
        matches!(self, Self::Start | Self::Terminated(..))
    }
}

/// Messages of the runtime to an actor.
pub(crate) enum System {
    /// Activate without a message.
    Start,
    /// Run what waits, then stop.
    Stop(StopReason),
    /// Drop everything now.
    Kill,
    /// A watched actor stopped, whose place has this serial number; and the watch that this is the
    /// news for.
    Terminated(Terminated, u64, TieNumber),
    /// A linked or parent actor stopped.
    Fail(StopReason),
    /// A child escalated its failure.
    ChildFailed(ChildFailed),
    /// A sibling failed and the parent restarts this one with it.
    Restart,
    /// Run nothing more until `Resume` or `Depart`; whoever seals the actor gets the seal once no
    /// handler runs.
    Seal(Box<dyn FnOnce(Arc<dyn AnyPlace>) + Send>),
    /// Take the seal of that life back.
    Resume(u32),
    /// Run nothing more as long as the node is frozen; whoever wants to know is told once no
    /// handler runs.
    Freeze(oneshot::Sender<()>),
    /// See whether the node is frozen still.
    Thaw,
    /// End this life, and have what waits follow the actor to where it lives now.
    Depart,
    /// End this life if it runs in an older epoch.
    Fence(Epoch),
}
