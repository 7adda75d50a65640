//! The place of an actor of a certain type: its state beside the header.
//!
//! The state (`storage`) belongs to whoever holds the mailbox's claim (`Phase::Running`), which is
//! one `Run` at a time. A place without state costs its own memory only: no task, no buffer.

use std::any::Any;
use std::ptr;
use std::sync::Arc;

use crate::activation::commit::Commit;
use crate::activation::context::Context;
use crate::activation::core::RunCore;
use crate::activation::run::Run;
use crate::actor::Actor;
use crate::address::actor_ref::ActorRef;
use crate::address::place::{AnyPlace, AsAnyPlace, Header, Hook};
use crate::address::start::{Building, Factory, Start, factory_of};
use crate::address::storage::Storage;
use crate::error::ActorError;
use crate::mail::outbox;
use crate::shield::{discard_some, shielded};
use crate::stop_reason::{StopReason, Terminated};

/// The place of an actor of type `A`.
#[repr(C)]
pub(crate) struct Place<A: Actor> {
    // First, because whoever runs a handler needs it and the beginning of the header.
    state: Storage<A>,
    header: Header,
}

// SAFETY: `state` is touched only under the mailbox's claim, which moves between threads with a
// mutex in between; the rest is `Sync`. Shared access by overlapping reads happens on the one
// thread that holds the claim.
unsafe impl<A: Actor> Sync for Place<A> {}

/// Pointers that travel inside a hook's future.
struct Grant<A: Actor> {
    storage: *const Storage<A>,
    context: *mut Context<A>,
}

// SAFETY: the claim that the pointers stand for moves with the run from thread to thread.
unsafe impl<A: Actor> Send for Grant<A> {}

impl<A: Actor> Grant<A> {
    /// # Safety
    /// The claim is held, the state is there, and nothing else borrows either.
    unsafe fn open<'a>(self) -> (&'a mut A, &'a mut Context<A>) {
        // SAFETY: the place outlives its hooks.
        let storage = unsafe { &*self.storage };
        // SAFETY: the caller's promise.
        let state = unsafe { &mut *storage.get() };
        // SAFETY: the caller's promise.
        (state, unsafe { &mut *self.context })
    }
}

impl<A: Actor> AsAnyPlace for Place<A> {
    fn as_any_place(self: &Arc<Self>) -> Arc<dyn AnyPlace> {
        self.clone()
    }
}

impl<A: Actor> Place<A> {
    pub(crate) fn new(
        mut header: Header,
        factory: Option<Box<Factory<A>>>,
        state: Option<A>,
    ) -> Self {
        let is_rebuildable = factory.is_some() || factory_of::<A>(&header.kind).is_some();
        header.set_out(is_rebuildable, state.is_some());
        let storage = Storage::empty();
        if let Some(state) = state {
            // SAFETY: it is new.
            unsafe { storage.put(state) };
        }
        if let Some(factory) = factory {
            header.set_factory(Arc::new(factory));
        }
        Self { header, state: storage }
    }

    fn grant(&self, core: *mut RunCore) -> Grant<A> {
        Grant { storage: &raw const self.state, context: Context::of(core) }
    }

    /// # Safety
    /// The caller holds the claim and there is no state.
    pub(crate) unsafe fn put(&self, state: A) {
        // SAFETY: the caller's promise.
        unsafe { self.state.put(state) };
        self.header.set_state(true);
    }

    /// Begins to build the state, if there is a factory.
    fn build(self: &Arc<Self>) -> Option<Building<A>> {
        let own = self.header.factory();
        let factory = match &own {
            Some(own) => own.downcast_ref::<Box<Factory<A>>>().map(AsRef::as_ref),
            None => factory_of(&self.header.kind),
        };
        factory.map(|factory| factory(Start::new(ActorRef::from_place(self.clone()))))
    }
}

impl<A: Actor> Drop for Place<A> {
    fn drop(&mut self) {
        outbox::forget(ptr::from_ref(self).cast());
        if self.header.has_state() {
            // SAFETY: nobody else is left who could hold the claim.
            shielded("dropping a state", || unsafe { AnyPlace::clear(self) });
        }
        // Why it ended is foreign, too; whoever lets go of its last address has nothing to do with
        // that.
        discard_some("dropping why an actor had ended", self.header.mailbox.take_extras());
    }
}

impl<A: Actor> AnyPlace for Place<A> {
    fn header(&self) -> &Header {
        &self.header
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }

    fn schedule(self: Arc<Self>) {
        Run::schedule(self);
    }

    fn is_rebuildable(&self) -> bool {
        self.header.is_rebuildable()
    }

    fn state(&self) -> *mut () {
        self.state.get().cast()
    }

    unsafe fn start(self: Arc<Self>, core: *mut RunCore) -> Hook {
        if let Some(twice) = &self.header.kind.twice {
            let twice = twice.clone();
            return Box::pin(async { Err(twice.into()) });
        }
        let grant = self.grant(core);
        let is_missing = !self.header.has_state();
        let building = is_missing.then(|| self.build());
        Box::pin(async move {
            if let Some(building) = building {
                let Some(building) = building else {
                    return Err(ActorError::new("no factory is registered for its type"));
                };
                let state = building.await?;
                // SAFETY: the claim is held while this future lives.
                unsafe { self.put(state) };
            }
            // SAFETY: the claim is held while this future lives.
            let (state, context) = unsafe { grant.open() };
            state.started(context).await
        })
    }

    unsafe fn stopping(&self, core: *mut RunCore, reason: StopReason) -> Hook {
        let grant = self.grant(core);
        Box::pin(async move {
            // SAFETY: the claim is held while this future lives.
            let (state, context) = unsafe { grant.open() };
            state.stopping(context, reason).await;
            state.commit_rest(context).await
        })
    }

    unsafe fn terminated(&self, core: *mut RunCore, other: Terminated) -> Hook {
        let grant = self.grant(core);
        Box::pin(async move {
            // SAFETY: the claim is held while this future lives.
            let (state, context) = unsafe { grant.open() };
            state.terminated(context, other).await;
            Ok(())
        })
    }

    unsafe fn commit(&self, core: *mut RunCore) -> Commit {
        // SAFETY: our caller holds the claim, and the state is there.
        let (state, context) = unsafe { self.grant(core).open() };
        state.commit(context)
    }

    unsafe fn clear(&self) {
        if self.header.has_state() {
            self.header.set_state(false);
            // SAFETY: it was there, and nothing borrows it.
            unsafe { self.state.clear() };
        }
    }
}
