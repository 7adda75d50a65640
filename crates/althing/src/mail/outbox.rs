//! Tells from inside handlers: from the second in a row to one actor on they go through a lane, one
//! lock for up to 32 messages.
//!
//! The lane is detached, and the actor woken, when the target changes, before an ask or a publish,
//! after a few messages, and at the latest when the handler waits or its batch ends. What has been
//! written counts as queued before that (see `lane`), so order and causality hold without it. Room
//! is reserved when the lane is attached, so a tell never fails later.
//!
//! Invariant: `OPEN` is null or points to the lane that the thread's `OUTBOX` owns and that is
//! attached to its target's mailbox.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::Arc;

use crate::activation::turn;
use crate::address::place::{AnyPlace, AsAnyPlace, wake};
use crate::address::refusal::refuse;
use crate::mail::envelope::Envelope;
use crate::mail::lane::Lane;
use crate::mail::mailbox::Pushed;
use crate::mail::priority::Priority;

/// Messages of the sending actor after which a lane is detached, so that slow handlers do not hold
/// its messages back.
const BOUNDARIES_MAX: u32 = 16;

#[derive(Default)]
struct Outbox {
    target: Option<Arc<dyn AnyPlace>>,
    /// Kept for the next target.
    lane: Option<Arc<Lane<Envelope>>>,
    boundaries: u32,
}

thread_local! {
    static OUTBOX: RefCell<Outbox> = const {
        RefCell::new(Outbox { target: None, lane: None, boundaries: 0 })
    };
    static OPEN: Cell<*const Lane<Envelope>> = const { Cell::new(ptr::null()) };
    /// The place that the last tell went to; never dereferenced.
    static LAST: Cell<*const ()> = const { Cell::new(ptr::null()) };
}

/// Tells from inside a handler.
#[inline]
pub(crate) fn tell<C: AnyPlace + AsAnyPlace>(
    place: &Arc<C>,
    make: impl FnOnce() -> Envelope,
) -> Pushed {
    let open = OPEN.get();
    if !open.is_null() && LAST.get() == Arc::as_ptr(place).cast() {
        // SAFETY: by the invariant the lane is alive.
        let lane = unsafe { &*open };
        // SAFETY: this thread opened it.
        if unsafe { lane.has_room() } {
            // SAFETY: as above, and there is room.
            unsafe { lane.write(make()) };
            return Pushed::Queued;
        }
        renew(place, lane);
        if OPEN.get() == open && LAST.get() == Arc::as_ptr(place).cast() {
            // SAFETY: as above: the waker that was called has not had the lane closed.
            let lane = unsafe { &*open };
            // SAFETY: as above.
            if unsafe { lane.has_room() } {
                // SAFETY: as above.
                unsafe { lane.write(make()) };
                return Pushed::Queued;
            }
        }
    }
    tell_another(place, make)
}

/// Hands over what is in the open lane, which is full, and has it take more, if there is room for
/// more, under one lock. Then wakes the target, which may run foreign code.
#[inline(never)]
fn renew<C: AnyPlace + AsAnyPlace>(place: &Arc<C>, lane: &Lane<Envelope>) {
    let header = place.header();
    let mut inner = header.mailbox.lock();
    inner.absorb();
    let capacity = inner.lane_capacity(header.kind.len_max, header.mailbox.tally());
    if capacity == 0 {
        return;
    }
    // SAFETY: this thread opened the lane, and what was in it has just been taken.
    unsafe { inner.renew(lane, capacity) };
    let what = inner.claim();
    drop(inner);
    OUTBOX.with_borrow_mut(|outbox| outbox.boundaries = 0);
    wake(place, what);
}

#[inline(never)]
fn tell_another<C: AnyPlace + AsAnyPlace>(
    place: &Arc<C>,
    make: impl FnOnce() -> Envelope,
) -> Pushed {
    if turn::is_held() {
        return turn::tell(&place.as_any_place(), Priority::Normal, make);
    }
    hand_over();
    let header = place.header();
    let is_second = LAST.replace(Arc::as_ptr(place).cast()) == Arc::as_ptr(place).cast();
    if !is_second {
        return header.mailbox.push(header.kind.len_max, make, |what| wake(place, what));
    }
    let mut inner = header.mailbox.lock();
    // What another handler writes into a lane of its own from now on may follow from what we write
    // into ours, and the other way round, and nobody could tell. So there is one lane at a time,
    // and who pushes queues behind what is in it.
    let capacity = if inner.has_lanes() {
        0
    } else {
        inner.lane_capacity(header.kind.len_max, header.mailbox.tally())
    };
    if capacity == 0 {
        return header
            .mailbox
            .push_locked(inner, header.kind.len_max, make, |what| wake(place, what));
    }
    let lane = OUTBOX
        .with_borrow_mut(|outbox| outbox.lane.take())
        .unwrap_or_else(|| Arc::new(Lane::new()));
    // SAFETY: a lane in the outbox, or a new one, is attached to nothing, and this thread writes to
    // it.
    unsafe { inner.attach(&lane, capacity) };
    drop(inner);
    // SAFETY: this thread opened the lane, and a new one has room.
    unsafe { lane.write(make()) };
    OPEN.set(Arc::as_ptr(&lane));
    OUTBOX.with_borrow_mut(|outbox| {
        outbox.target = Some(place.as_any_place());
        outbox.lane = Some(lane);
        outbox.boundaries = 0;
    });
    Pushed::Queued
}

/// Says that a place's memory is given back: another place at its place has not been told anything.
pub(crate) fn forget(place: *const ()) {
    if LAST.get() == place {
        LAST.set(ptr::null());
    }
}

/// Detaches the lane, if one is open, and wakes its target.
#[inline]
pub(crate) fn hand_over() {
    // A refused message's drop may tell, which may open the next lane.
    while !OPEN.get().is_null() {
        hand_over_lane();
    }
}

/// Whether there is a bundle that is not handed over yet.
#[inline]
pub(crate) fn is_open() -> bool {
    !OPEN.get().is_null()
}

/// Says that the sending actor has finished some messages.
#[inline]
pub(crate) fn boundary(messages: u32) {
    if !OPEN.get().is_null() && OUTBOX.with_borrow_mut(|outbox| outbox.is_old(messages)) {
        hand_over();
    }
}

fn hand_over_lane() {
    OPEN.set(ptr::null());
    let (target, lane) =
        OUTBOX.with_borrow_mut(|outbox| (outbox.target.take(), outbox.lane.take()));
    let (Some(target), Some(lane)) = (target, lane) else { return };
    let mut inner = target.header().mailbox.lock();
    let (what, refused) = inner.detach(&lane);
    drop(inner);
    give_back(lane);
    wake(&target, what);
    refuse(&target, refused);
}

fn give_back(lane: Arc<Lane<Envelope>>) {
    OUTBOX.with_borrow_mut(|outbox| {
        outbox.lane.get_or_insert(lane);
    });
}

impl Outbox {
    fn is_old(&mut self, messages: u32) -> bool {
        self.boundaries += messages;
        self.boundaries >= BOUNDARIES_MAX
    }
}
