//! The part of a handler's context that knows no type: whose it is, and how the handler wants the
//! actor to go on.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::address::actor_id::ActorId;
use crate::address::place::{AnyPlace, Header};
use crate::stop_reason::StopReason;

const RUNS_ON: u8 = 0;
const STOPS: u8 = 1;
const PASSIVATES: u8 = 2;
const FAILS: u8 = 3;

/// A handler's context without its actor's type; one per body.
pub(crate) struct RunCore {
    /// Kept alive by the run that owns the body; `None` in pooled bodies.
    place: Option<NonNull<dyn AnyPlace>>,
    stop: AtomicU8,
}

// SAFETY: the pointer stands for a shared reference to a `Send + Sync` place.
unsafe impl Send for RunCore {}
// SAFETY: as above; the rest is atomic.
unsafe impl Sync for RunCore {}

impl RunCore {
    pub(crate) const fn nobody() -> Self {
        Self { place: None, stop: AtomicU8::new(RUNS_ON) }
    }

    pub(crate) fn new(place: *const dyn AnyPlace) -> Self {
        let place = NonNull::new(place.cast_mut());
        Self { place, stop: AtomicU8::new(RUNS_ON) }
    }

    /// Serves another place, as long as it runs on.
    #[inline]
    pub(super) fn turn_to(&mut self, place: *const dyn AnyPlace) {
        self.place = NonNull::new(place.cast_mut());
    }

    pub(super) fn place(&self) -> &dyn AnyPlace {
        let place = self.place.expect("a core in use has a place");
        // SAFETY: the run that owns this body owns a reference to the place.
        unsafe { place.as_ref() }
    }

    pub(crate) fn header(&self) -> &Header {
        self.place().header()
    }

    pub(crate) fn id(&self) -> ActorId {
        self.header().id()
    }

    #[inline]
    pub(crate) fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed) != RUNS_ON
    }

    pub(crate) fn take_stop(&self) -> Option<StopReason> {
        if !self.stops() {
            return None;
        }
        match self.stop.swap(RUNS_ON, Ordering::Relaxed) {
            STOPS => Some(StopReason::Requested),
            PASSIVATES => Some(StopReason::Passivated),
            FAILS => self.header().mailbox.lock().extras().failure.take().map(StopReason::Failed),
            _ => None,
        }
    }

    /// Has the actor stop after this handler.
    pub(super) fn stop(&self) {
        self.stop.store(STOPS, Ordering::Relaxed);
    }

    /// Has the actor unloaded after this handler, unless it is to end otherwise.
    pub(super) fn passivate(&self) {
        let (free, wish) = (RUNS_ON, PASSIVATES);
        _ = self.stop.compare_exchange(free, wish, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Has the actor fail after this handler, with what its extras hold.
    pub(super) fn fail(&self) {
        self.stop.store(FAILS, Ordering::Relaxed);
    }
}
