//! One actor's place as everybody sees it who does not know its type: its header, with the mailbox,
//! and what can be done with its state. A reference is an `Arc` of it.
//!
//! The header and the mailbox's extras name each other: relatives, watchers and waits of an actor
//! lie beside its mailbox, as references to places.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::activation::commit::Commit;
use crate::activation::core::RunCore;
use crate::address::actor_id::{Activation, ActorId, Key, Origin};
use crate::address::kind::Kind;
use crate::epoch::Epoch;
use crate::error::ActorError;
use crate::mail::mailbox::{Mailbox, Wake};
use crate::remote::cluster::Location;
use crate::stop_reason::{StopReason, Terminated};

/// A hook's future; it borrows the place's state and a body's core, which the run keeps alive and
/// leaves alone.
pub(crate) type Hook = Pin<Box<dyn Future<Output = Result<(), ActorError>> + Send>>;

/// What does not depend on the actor's type.
///
/// In this order, so that an event or an ask that finds the actor idle touches the first cache line
/// of the place's memory and the state, and nothing else. 104 bytes: a place is then an allocation
/// of 128, two whole cache lines.
#[repr(C)]
pub(crate) struct Header {
    pub(crate) kind: Arc<Kind>,
    /// Second since the node's start in which it last ran.
    pub(crate) last_active_s: AtomicU32,
    /// Lives that ended otherwise than by passivation; changed under the mailbox's lock by who
    /// holds the claim.
    stops: AtomicU32,
    /// Replies that it owes: reasons to stay in memory.
    debts: AtomicU32,
    /// The flags below, and beneath them where the directory keeps an anonymous actor.
    marks: AtomicU32,
    pub(crate) mailbox: Mailbox,
    own: Option<Box<Own>>,
    serial: u64,
}

/// What few actors have, or those that are paid for by name.
#[derive(Default)]
struct Own {
    key: Option<Key>,
    /// In which epoch the life that is there runs, or the last one ran; kept where there is a
    /// cluster, which places actors by their keys.
    epoch: AtomicU64,
    factory: Mutex<Option<OwnFactory>>,
}

/// How to build the state of a child, a `Box<Factory<A>>`; other actors use their kind's factory.
pub(super) type OwnFactory = Arc<dyn Any + Send + Sync>;

// Loom's atomics are larger.
#[cfg(not(althing_loom))]
const _: () = assert!(size_of::<Header>() <= 104, "an idle actor is paid by the million");

/// In `Header::marks`: the place holds a state; changed under the claim only.
const HAS_STATE: u32 = 1 << 31;
/// A system message waits, so that a runner looks between two messages.
const ATTENTION: u32 = 1 << 30;
/// The actor can be built anew.
const REBUILDABLE: u32 = 1 << 29;
/// Slots of the directory are below.
const SLOTS: u32 = REBUILDABLE - 1;

/// A place whose type is forgotten.
pub(crate) trait AnyPlace: Any + Send + Sync {
    fn header(&self) -> &Header;
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
    /// Starts a task for the actor, whose claim was just taken.
    fn schedule(self: Arc<Self>);
    /// Whether the actor can be built anew.
    fn is_rebuildable(&self) -> bool;
    /// Where the state is; valid while it is there, to who holds the claim.
    fn state(&self) -> *mut ();
    /// Builds the state if there is none and runs the `started` hook.
    ///
    /// # Safety
    /// The caller holds the claim and keeps it, the place and `core` until the future is dropped;
    /// for all hooks.
    unsafe fn start(self: Arc<Self>, core: *mut RunCore) -> Hook;
    /// # Safety
    /// As `start`.
    unsafe fn stopping(&self, core: *mut RunCore, reason: StopReason) -> Hook;
    /// # Safety
    /// As `start`.
    unsafe fn terminated(&self, core: *mut RunCore, other: Terminated) -> Hook;
    /// Takes the changes of the turns since the last time, to make them durable.
    ///
    /// # Safety
    /// As `start`, and nothing else borrows the state.
    unsafe fn commit(&self, core: *mut RunCore) -> Commit;
    /// Drops the state.
    ///
    /// # Safety
    /// The caller holds the claim and nothing borrows the state.
    unsafe fn clear(&self);
}

impl Header {
    pub(crate) fn new(kind: Arc<Kind>, key: Option<Key>) -> Self {
        let serial = kind.node.next_serial();
        let own = key.map(|key| Box::new(Own { key: Some(key), ..Own::default() }));
        Self {
            kind,
            last_active_s: AtomicU32::new(0),
            stops: AtomicU32::new(0),
            debts: AtomicU32::new(0),
            marks: AtomicU32::new(0),
            mailbox: Mailbox::new(),
            own,
            serial,
        }
    }

    /// Lives that ended otherwise than by passivation, wrapping: a subscription ends when this
    /// changes.
    #[inline]
    pub(crate) fn stops(&self) -> u32 {
        self.stops.load(Ordering::Relaxed)
    }

    /// Counts the end of a life that was no passivation; the mailbox is locked.
    pub(crate) fn count_stop(&self) {
        self.stops.store(self.stops().wrapping_add(1), Ordering::Relaxed);
    }

    /// Where it is, to be compared and not followed.
    #[inline]
    pub(crate) fn place(&self) -> *const () {
        ptr::from_ref(self).cast()
    }

    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }

    pub(crate) fn key(&self) -> Option<&Key> {
        self.own.as_ref()?.key.as_ref()
    }

    /// Where the directory keeps the actor, if it is anonymous.
    pub(crate) fn slot(&self) -> u32 {
        self.marks.load(Ordering::Relaxed) & SLOTS
    }

    /// Set once, under the directory's lock.
    pub(crate) fn set_slot(&self, slot: u32) {
        assert!(slot <= SLOTS, "fewer than 2^29 actors a shard");
        self.marks.fetch_or(slot, Ordering::Relaxed);
    }

    /// Gives a new place a factory of its own.
    pub(super) fn set_factory(&mut self, factory: OwnFactory) {
        *self.own.get_or_insert_default().factory.get_mut() = Some(factory);
    }

    /// The place's own factory.
    pub(super) fn factory(&self) -> Option<OwnFactory> {
        self.own.as_ref()?.factory.lock().clone()
    }

    /// Takes the factory of an actor that is never built again; what it captured may hold other
    /// actors.
    pub(crate) fn take_factory(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.own.as_ref()?.factory.lock().take()
    }

    /// Takes down what a new place holds.
    pub(super) fn set_out(&mut self, is_rebuildable: bool, has_state: bool) {
        let marks = self.marks.get_mut();
        *marks |= if is_rebuildable { REBUILDABLE } else { 0 };
        *marks |= if has_state { HAS_STATE } else { 0 };
    }

    /// Whether the place holds a state.
    pub(super) fn has_state(&self) -> bool {
        self.marks.load(Ordering::Relaxed) & HAS_STATE != 0
    }

    /// Says whether the place holds a state; the caller holds the claim.
    pub(super) fn set_state(&self, is_there: bool) {
        if is_there {
            self.marks.fetch_or(HAS_STATE, Ordering::Relaxed);
        } else {
            self.marks.fetch_and(!HAS_STATE, Ordering::Relaxed);
        }
    }

    pub(super) fn is_rebuildable(&self) -> bool {
        self.marks.load(Ordering::Relaxed) & REBUILDABLE != 0
    }

    /// Where an anonymous actor was started, once the directory knows it.
    fn origin(&self) -> Origin {
        let node = self.kind.node.incarnation;
        // As people read it: the node's first actor is number one.
        let serial = self.serial.wrapping_sub(node.first_serial()).wrapping_add(1);
        Origin { node, serial, slot: self.slot() }
    }

    pub(crate) fn id(&self) -> ActorId {
        let kind = self.kind.id.clone();
        match (self.key(), self.kind.home) {
            (Some(key), None) => ActorId::of_key(kind, key.clone()),
            (Some(key), Some(home)) => ActorId::anonymous(kind, Origin::of_key(key, home)),
            (None, _) => ActorId::anonymous(kind, self.origin()),
        }
    }

    /// The life that runs, or is about to start.
    pub(crate) fn activation(&self) -> Activation {
        Activation { id: self.id(), node: self.kind.node.incarnation, epoch: self.epoch() }
    }

    /// In which epoch the life that is there runs.
    pub(crate) fn epoch(&self) -> Epoch {
        self.own.as_ref().map_or(Epoch::default(), |own| Epoch(own.epoch.load(Ordering::Relaxed)))
    }

    /// Says in which epoch the life runs that is about to start; the caller holds the claim.
    pub(crate) fn set_epoch(&self, epoch: Epoch) {
        if let Some(own) = &self.own {
            own.epoch.store(epoch.0, Ordering::Relaxed);
        }
    }

    /// Where the cluster says that the actor lives; `None` if it stays on its node.
    pub(crate) fn location(&self) -> Option<Location> {
        let cluster = self.kind.node.cluster.as_ref()?;
        self.kind.codecs()?;
        if self.key().is_none() || self.kind.home.is_some() {
            return None;
        }
        Some(cluster.locate(&self.id()))
    }

    /// Has a new address send elsewhere, if its actor lives there.
    pub(crate) fn settle(&self) {
        if matches!(self.location(), Some(Location::Elsewhere | Location::Arriving(_))) {
            self.mailbox.lock().send_elsewhere();
        }
    }

    /// Makes the runner look for system messages before the next message.
    pub(crate) fn call_attention(&self) {
        self.marks.fetch_or(ATTENTION, Ordering::Release);
    }

    /// Whether somebody waits for something that would be lost with the actor's state.
    pub(crate) fn has_debts(&self) -> bool {
        self.debts.load(Ordering::Relaxed) > 0
    }

    /// Remembers that the actor has just run.
    pub(crate) fn touch(&self) {
        self.touch_at(self.kind.node.coarse_s());
    }

    /// As `touch`, with the second at hand.
    #[inline]
    pub(crate) fn touch_at(&self, now_s: u32) {
        self.last_active_s.store(now_s, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn has_attention(&self) -> bool {
        self.marks.load(Ordering::Relaxed) & ATTENTION != 0
    }

    pub(crate) fn take_attention(&self) -> bool {
        // A plain load first: the flag is almost never set and this runs for every message.
        self.has_attention() && self.marks.fetch_and(!ATTENTION, Ordering::Acquire) & ATTENTION != 0
    }
}

/// Something that an actor owes; it is settled when this drops.
pub(crate) struct Debt {
    actor: Arc<dyn AnyPlace>,
}

impl Debt {
    pub(crate) fn of(actor: Arc<dyn AnyPlace>) -> Self {
        actor.header().debts.fetch_add(1, Ordering::Relaxed);
        Self { actor }
    }

    /// Who owes it.
    pub(crate) fn actor(&self) -> &Arc<dyn AnyPlace> {
        &self.actor
    }
}

impl Drop for Debt {
    fn drop(&mut self) {
        self.actor.header().debts.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Does what a push asked for.
#[cold]
pub(crate) fn wake(place: &Arc<impl AnyPlace + ?Sized>, wake: Wake) {
    match wake {
        Wake::Nothing => {}
        Wake::Schedule => {
            // From here on its first message waits.
            place.header().touch();
            place.clone().schedule();
        }
        Wake::Waker(waker) => waker.wake(),
    }
}

/// Gives up the type; for `Arc<Place<A>>` and `Arc<dyn AnyPlace>` alike.
pub(crate) trait AsAnyPlace {
    fn as_any_place(self: &Arc<Self>) -> Arc<dyn AnyPlace>;
}

impl AsAnyPlace for dyn AnyPlace {
    fn as_any_place(self: &Arc<Self>) -> Arc<dyn AnyPlace> {
        self.clone()
    }
}
