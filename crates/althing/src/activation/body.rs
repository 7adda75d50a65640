//! Where a handler's future lives: one kibibyte, built in place, never moved once polled, reused.
//!
//! Layout: `memory` holds a `W: Work` in place if it fits, else a `Box<W>`; `ops` is set exactly
//! while it does, but for its first poll (`Begun`). Owner: the `Run` that holds the body; the
//! future inside borrows the actor's state and context, so a body is always emptied (`clear`)
//! before either is touched.

use std::any::Any;
use std::cell::{Cell, RefCell, UnsafeCell};
use std::future::Future;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, align_of, size_of};
use std::pin::Pin;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::task::{Context, Poll};

use tracing::Span;

use crate::activation::core::RunCore;
use crate::address::place::AnyPlace;
use crate::error::AskError;
use crate::metrics::Timed;
use crate::shield::{discard, shielded};

/// Futures up to this size need no allocation. 1 KiB covers nearly every handler measured.
const BODY_BYTES: usize = 1024 - 128;
const _: () = assert!(size_of::<Slot>() <= 1024, "a slot fills its size class and no more");
/// Bodies kept per thread, so that a burst of suspensions does not become a burst of allocations.
const POOLED_MAX: usize = 64;

#[repr(align(16))]
#[expect(dead_code, reason = "only ever reached through a raw pointer")]
struct Memory(MaybeUninit<[u8; BODY_BYTES]>);

/// Owns a place for one handler's future and its context.
///
/// A raw pointer, because the future inside borrows from the slot: a `Box` would claim to be unique
/// whenever it moves.
pub(crate) struct Body {
    slot: NonNull<Slot>,
}

struct Slot {
    ops: Cell<Option<&'static Ops>>,
    kept: Cell<Option<Arc<dyn Any + Send + Sync>>>,
    /// Set while a sampled handler waits: its time is taken when it ends.
    timed: Cell<Option<Timed>>,
    /// The span of a handler that waits; entered whenever it is polled.
    span: Cell<Option<Span>>,
    core: UnsafeCell<RunCore>,
    memory: UnsafeCell<Memory>,
}

struct Ops {
    /// # Safety
    /// The memory holds the type of these ops, for all three.
    poll: unsafe fn(*mut Memory, &mut Context<'_>) -> Poll<()>,
    fail: unsafe fn(*mut Memory, AskError),
    drop: unsafe fn(*mut Memory),
}

/// A future with a way to fail it.
pub(crate) trait Work {
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()>;
    fn fail(&mut self, why: AskError);
}

/// An event handler's future.
pub(crate) struct Event<F>(F);

impl<F> Event<F> {
    pub(crate) fn new(future: F) -> Self {
        Self(future)
    }
}

impl<F: Future<Output = ()> + Send> Work for Event<F> {
    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: the only field is pinned with us.
        unsafe { self.map_unchecked_mut(|this| &mut this.0) }.poll(cx)
    }

    fn fail(&mut self, _why: AskError) {}
}

impl Body {
    /// Takes an empty body from this thread's pool, for `place`, which must outlive its use.
    #[inline]
    pub(crate) fn take(place: *const dyn AnyPlace) -> Self {
        let spare = SPARE.get();
        let slot = match NonNull::new(spare) {
            Some(slot) if spare != no_pool() => {
                SPARE.set(ptr::null_mut());
                slot
            }
            _ => take_from_pool(),
        };
        let body = Self { slot };
        body.retarget(place);
        body
    }

    /// Makes an empty body serve another place, which must outlive its use.
    #[inline]
    pub(crate) fn retarget(&self, place: *const dyn AnyPlace) {
        debug_assert!(self.is_empty(), "a future borrows the core");
        // SAFETY: the body is empty, so nothing borrows its core.
        unsafe { *self.core() = RunCore::new(place) };
    }

    /// As `retarget`, after a handler that did not want its actor to stop.
    #[inline]
    pub(crate) fn turn_to(&self, place: *const dyn AnyPlace) {
        debug_assert!(self.is_empty() && !self.stops(), "a future borrows the core");
        // SAFETY: the body is empty, so nothing borrows its core.
        unsafe { &mut *self.core() }.turn_to(place);
    }

    /// Whether the handler that just ended wants its actor to stop. The body must be empty.
    #[inline]
    pub(crate) fn stops(&self) -> bool {
        // SAFETY: the body is empty; reads in other bodies share the core of theirs.
        unsafe { &*self.core() }.stops()
    }

    fn slot(&self) -> &Slot {
        // SAFETY: the slot lives as long as we do and is only ever borrowed shared.
        unsafe { self.slot.as_ref() }
    }

    /// The context's memory; only to be touched while the body is empty, except by the future
    /// inside.
    pub(crate) fn core(&self) -> *mut RunCore {
        self.slot().core.get()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slot().ops.get().is_none()
    }

    /// Keeps something alive until the future ends.
    pub(crate) fn keep(&self, kept: Arc<dyn Any + Send + Sync>) {
        self.slot().kept.set(Some(kept));
    }

    /// Gives back what was kept. The body must be empty.
    pub(crate) fn give_back(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        debug_assert!(self.is_empty(), "the future may borrow what is kept");
        self.slot().kept.take()
    }

    /// Has the handler that waits here run in `span` from now on.
    pub(crate) fn trace(&self, span: Option<Span>) {
        self.slot().span.set(span);
    }

    /// Has the handler that waits here timed until it ends.
    pub(crate) fn time(&self, timed: Option<Timed>) {
        self.slot().timed.set(timed);
    }

    /// Builds `work` in place and polls it once. The body must be empty. Inlined for the reason
    /// that `Typed::poll` gives.
    #[inline(always)]
    pub(crate) fn start<W: Work>(&self, work: W, cx: &mut Context<'_>) -> Poll<()> {
        self.start_then(work, cx, |_, poll| poll)
    }

    /// As `start`; `then` sees the work after its poll, before an ended one is dropped.
    #[inline(always)]
    pub(crate) fn start_then<W: Work, T>(
        &self,
        work: W,
        cx: &mut Context<'_>,
        then: impl FnOnce(&mut W, Poll<()>) -> T,
    ) -> T {
        debug_assert!(self.is_empty(), "one future at a time");
        let memory = self.slot().memory.get();
        if fits::<W>() {
            // SAFETY: size and alignment were checked by `fits`; the memory is free.
            unsafe { memory.cast::<W>().write(work) }
        } else {
            // SAFETY: a thin pointer fits; the memory is free.
            unsafe { memory.cast::<Box<W>>().write(Box::new(work)) }
        }
        let begun = Begun { slot: self.slot(), ops: Typed::<W>::OPS };
        // SAFETY: just stored.
        let poll = unsafe { Typed::<W>::poll(memory, cx) };
        // SAFETY: just stored.
        let outcome = then(unsafe { Typed::<W>::work(memory) }, poll);
        if poll.is_ready() {
            std::mem::forget(begun);
            // SAFETY: stored above and not used after this; `ops` does not name it.
            unsafe { Typed::<W>::drop(memory) }
        }
        outcome
    }

    /// Polls the future; an ended one is dropped. `Ready` at once when empty.
    #[inline]
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(ops) = self.slot().ops.get() else { return Poll::Ready(()) };
        let span = self.slot().span.take();
        let entered = span.as_ref().map(Span::enter);
        // SAFETY: `ops` belongs to what the memory holds.
        let poll = unsafe { (ops.poll)(self.slot().memory.get(), cx) };
        drop(entered);
        self.trace(span);
        if poll.is_ready() {
            if let Some(timed) = self.slot().timed.take() {
                // SAFETY: the handler has ended; what is left of its future no longer uses the
                // core.
                unsafe { &*self.core() }.header().kind.end_timing(timed);
            }
            self.clear();
        }
        poll
    }

    /// Fails the ask whose handler lives here, then drops the future.
    pub(crate) fn fail(&self, why: AskError) {
        if let Some(ops) = self.slot().ops.get() {
            // SAFETY: `ops` belongs to what the memory holds.
            shielded("failing an ask", || unsafe { (ops.fail)(self.slot().memory.get(), why) });
        }
        self.clear();
    }

    /// Drops the future, if there is one.
    pub(crate) fn clear(&self) {
        if let Some(ops) = self.slot().ops.take() {
            // Dropped after the future, which borrows from what is kept, also if its drop panics.
            let _kept = LastUse(self.slot().kept.take());
            let _ended = (self.slot().timed.take(), self.slot().span.take());
            // SAFETY: `ops` belonged to what the memory holds; it was taken, so this happens once.
            unsafe { (ops.drop)(self.slot().memory.get()) }
        }
    }
}

/// Work that is polled for the first time: nearly all of it ends with that, so the slot names it
/// only if it waits or panics, when this drops.
struct Begun<'a> {
    slot: &'a Slot,
    ops: &'static Ops,
}

impl Drop for Begun<'_> {
    #[inline]
    fn drop(&mut self) {
        self.slot.ops.set(Some(self.ops));
    }
}

/// What a handler's future borrowed, which has ended. If its drop panics, that is no failure of the
/// actor.
struct LastUse(Option<Arc<dyn Any + Send + Sync>>);

impl Drop for LastUse {
    #[inline]
    fn drop(&mut self) {
        if let Some(kept) = self.0.take() {
            discard("the drop of an event", kept);
        }
    }
}

impl Drop for Body {
    #[inline]
    fn drop(&mut self) {
        if !self.is_empty() {
            shielded("dropping a handler", || self.clear());
        }
        if SPARE.get().is_null() {
            SPARE.set(self.slot.as_ptr());
        } else {
            give_to_pool(self.slot);
        }
    }
}

/// Keeps an empty slot that has no other owner, or frees it.
#[cold]
fn give_to_pool(slot: NonNull<Slot>) {
    let pooled = POOL.try_with(|pool| {
        if SPARE.get() == no_pool() {
            SPARE.set(slot.as_ptr());
            return true;
        }
        let mut pool = pool.borrow_mut();
        let room = pool.0.len() < POOLED_MAX;
        if room {
            pool.0.push(slot);
        }
        room
    });
    if !pooled.unwrap_or(false) {
        // SAFETY: the slot came from `Box::leak`, is empty, and our caller was its owner.
        drop(unsafe { Box::from_raw(slot.as_ptr()) });
    }
}

/// An empty slot with nobody's core.
#[cold]
fn take_from_pool() -> NonNull<Slot> {
    let pooled = POOL.try_with(|pool| pool.borrow_mut().0.pop()).ok().flatten();
    pooled.unwrap_or_else(|| {
        NonNull::from(Box::leak(Box::new(Slot {
            ops: Cell::new(None),
            kept: Cell::new(None),
            timed: Cell::new(None),
            span: Cell::new(None),
            core: UnsafeCell::new(RunCore::nobody()),
            memory: UnsafeCell::new(Memory(MaybeUninit::uninit())),
        })))
    })
}

// SAFETY: only `Work` is stored, which is `Send`; the core is `Send` too.
unsafe impl Send for Body {}

/// The empty slots of one thread but one, freed with it.
struct Pool(Vec<NonNull<Slot>>);

impl Drop for Pool {
    fn drop(&mut self) {
        let spare = SPARE.replace(no_pool());
        let spare = NonNull::new(spare).filter(|_| spare != no_pool());
        for slot in self.0.drain(..).chain(spare) {
            // SAFETY: pooled slots came from `Box::leak` and have no other owner.
            drop(unsafe { Box::from_raw(slot.as_ptr()) });
        }
    }
}

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool(Vec::new())) };
    /// One more empty slot, or null; `no_pool()` while the thread has no pool that would free it.
    /// Nearly every body is taken from here and given back: a pool must be asked first whether it
    /// still exists.
    static SPARE: Cell<*mut Slot> = const { Cell::new(no_pool()) };
}

/// Points to nothing.
const fn no_pool() -> *mut Slot {
    NonNull::dangling().as_ptr()
}

const fn fits<W>() -> bool {
    size_of::<W>() <= BODY_BYTES && align_of::<W>() <= align_of::<Memory>()
}

struct Typed<W>(PhantomData<W>);

impl<W: Work> Typed<W> {
    const OPS: &'static Ops = &Ops { poll: Self::poll, fail: Self::fail, drop: Self::drop };

    /// # Safety
    /// `memory` holds a `W` as `Body::start` stored it.
    #[inline(always)]
    unsafe fn work<'a>(memory: *mut Memory) -> &'a mut W {
        if fits::<W>() {
            // SAFETY: stored in place.
            unsafe { &mut *memory.cast::<W>() }
        } else {
            // SAFETY: stored as a box.
            unsafe { &mut *memory.cast::<Box<W>>() }
        }
    }

    /// Inlined into whoever has just stored the work: what is read back from memory too soon after
    /// smaller writes stalls the processor.
    ///
    /// # Safety
    /// As `Ops::poll`.
    #[inline(always)]
    unsafe fn poll(memory: *mut Memory, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: the caller's promise.
        let work = unsafe { Self::work(memory) };
        // SAFETY: bodies are boxed and never move their memory while `ops` is set; boxed work never
        // moves.
        unsafe { Pin::new_unchecked(work) }.poll(cx)
    }

    unsafe fn fail(memory: *mut Memory, why: AskError) {
        // SAFETY: the caller's promise.
        unsafe { Self::work(memory) }.fail(why);
    }

    #[inline]
    unsafe fn drop(memory: *mut Memory) {
        if fits::<W>() {
            // SAFETY: stored in place; dropped once.
            unsafe { memory.cast::<W>().drop_in_place() }
        } else {
            // SAFETY: stored as a box; dropped once.
            unsafe { memory.cast::<Box<W>>().drop_in_place() }
        }
    }
}
