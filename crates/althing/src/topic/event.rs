//! Runs event handlers: in place by reference, or out of an envelope that found its subscriber
//! busy.
//!
//! Unsafe here: a handler's future borrows the event and lies in the actor's body. So the event
//! must outlive the future, also when a panic ends it. In place the deliverer's `Arc` does; a
//! queued event's `Arc` goes into the body before its future is made.

use std::any::type_name;
use std::sync::Arc;
use std::task::{self, Poll};

use super::published::Published;
use crate::activation::body::{Body, Event};
use crate::activation::context::Context;
use crate::activation::target::Target;
use crate::actor::EventHandler;
use crate::error::AskError;
use crate::mail::access::Access;
use crate::mail::envelope::{Envelope, Payload, Sort, Started, Stretch, Table, TargetPtr, load};
use crate::shield::discard;

impl Envelope {
    /// Packs an event that found its subscriber busy.
    pub(crate) fn event<A: EventHandler<T>, T: Send + Sync + 'static>(
        event: Arc<Published<T>>,
    ) -> Self {
        // SAFETY: the table takes such payloads.
        unsafe { Self::with_table(EventTables::<A, T>::TABLE, event) }
    }
}

struct EventTables<A, T>(std::marker::PhantomData<(A, T)>);

impl<A: EventHandler<T>, T: Send + Sync + 'static> EventTables<A, T> {
    const TABLE: &'static Table = &Table {
        access: Access::Exclusive,
        name: type_name::<Published<T>>,
        sort: Sort::Event,
        run: run_queued_event::<A, T>,
        reject: reject_event::<T>,
        repack: None,
    };
}

/// Runs one event; a stretch of them is rare.
///
/// # Safety
/// As `Table::run`.
unsafe fn run_queued_event<A: EventHandler<T>, T: Send + Sync + 'static>(
    stretch: &mut Stretch,
    target: TargetPtr,
    cx: &mut task::Context<'_>,
) -> Started {
    // SAFETY: the caller's promise.
    let target = unsafe { Target::of(target) };
    // SAFETY: the caller promises a first envelope.
    let payload = unsafe { stretch.take_payload() };
    // SAFETY: this table is paired with this type in `Envelope::event`.
    let event = unsafe { load::<Arc<Published<T>>>(payload) };
    let event_ref = Arc::as_ptr(&event);
    let _kept = Kept::until_the_future_ends(target.body, event);
    // SAFETY: the caller's promise; the body keeps the event until its future is gone, whatever
    // happens.
    match unsafe { start::<A, T>(event_ref, target, cx) } {
        Poll::Ready(()) => Started::Done,
        Poll::Pending => Started::Suspended,
    }
}

/// An event in the body of its handler; let go if there is no future when this is dropped.
struct Kept<'a>(&'a Body);

impl<'a> Kept<'a> {
    fn until_the_future_ends<T: Send + Sync + 'static>(
        body: &'a Body,
        event: Arc<Published<T>>,
    ) -> Self {
        body.keep(event);
        Self(body)
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        // A future that waits or has panicked is still there; the body drops it first and the event
        // after it.
        if self.0.is_empty() {
            // If the event's drop panics, that is no failure of the actor.
            discard("the drop of an event", self.0.give_back());
        }
    }
}

/// The size of an event handler's future, which is built on the publisher's stack first.
#[inline]
pub(super) fn future_bytes<'a, A: EventHandler<T> + 'a, T: Send + Sync + 'static>() -> usize {
    fn returned<E, S, C, F>(_: &impl FnOnce(S, E, C) -> F) -> usize {
        size_of::<F>()
    }
    returned(&|state: &'a mut A, event: &'a Published<T>, context: &'a mut Context<A>| {
        state.event(event, context)
    })
}

/// Runs an event handler by reference; a handler that waits keeps a clone of the `Arc` beside its
/// future.
///
/// # Safety
/// `target` is a live actor of type `A`, exclusively held until its body is empty. After a panic
/// the caller keeps `event` until the body is empty.
#[inline]
pub(super) unsafe fn run_event<A: EventHandler<T>, T: Send + Sync + 'static>(
    event: &Arc<Published<T>>,
    target: Target<'_>,
    cx: &mut task::Context<'_>,
) -> Poll<()> {
    // SAFETY: our caller's promise; the event outlives this function by the reference, and its
    // future by the clone.
    let poll = unsafe { start::<A, T>(Arc::as_ptr(event), target, cx) };
    if poll.is_pending() {
        target.body.keep(event.clone());
    }
    poll
}

/// # Safety
/// `target` is a live actor of type `A`, exclusively held until its body is empty; `event` is valid
/// for as long.
#[inline]
unsafe fn start<A: EventHandler<T>, T: Send + Sync + 'static>(
    event: *const Published<T>,
    target: Target<'_>,
    cx: &mut task::Context<'_>,
) -> Poll<()> {
    let state = target.state.cast::<A>();
    let context: *mut Context<A> = Context::of(target.body.core());
    // SAFETY: the caller's promise.
    let event: &Published<T> = unsafe { &*event };
    // SAFETY: the caller holds exclusive access.
    let state: &mut A = unsafe { &mut *state };
    // SAFETY: the context belongs to the same activation.
    let context: &mut Context<A> = unsafe { &mut *context };
    target.body.start(Event::new(state.event(event, context)), cx)
}

/// # Safety
/// As `Table::reject`.
unsafe fn reject_event<T: Send + Sync + 'static>(payload: Payload, _why: Option<AskError>) {
    // SAFETY: this table is paired with this type in `Envelope::event`.
    drop(unsafe { load::<Arc<Published<T>>>(payload) });
}
