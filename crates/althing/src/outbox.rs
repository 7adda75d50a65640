//! Tells from inside handlers, handed over in bulk: one lock for up to 32 messages to one target.
//!
//! The second tell in a row to one target reserves room there and starts a bundle; it is handed over when the target changes, when it is
//! full, before an ask or a publish, after a few messages, and at the latest when the handler waits or its batch ends. Order from one actor to
//! another is kept. Because room was reserved, handing over never fails for lack of it.
//!
//! Unsafe here: a tell writes its envelope straight into the spare room of the bundle's vector. Invariant: while `NEXT` and `END` differ from null,
//! the vector in `OUTBOX` is not touched, the envelopes from its start up to `NEXT` are live, and `END` is within its capacity; `take` makes
//! them the vector's own and sets both to null.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::Arc;

use crate::cell::{AnyCell, AsAnyCell, wake};
use crate::envelope::Envelope;
use crate::mailbox::Pushed;

/// Messages in one bundle.
const BUNDLE_LEN_MAX: u32 = 32;
/// Messages of the sending actor after which a bundle is handed over, so that slow handlers do not hold it back.
const BOUNDARIES_MAX: u32 = 16;

#[derive(Default)]
struct Outbox {
    target: Option<Arc<dyn AnyCell>>,
    /// The bundle; the vector is kept for the next one.
    envelopes: Vec<Envelope>,
    reserved: u32,
    boundaries: u32,
}

thread_local! {
    static OUTBOX: RefCell<Outbox> = const {
        RefCell::new(Outbox { target: None, envelopes: Vec::new(), reserved: 0, boundaries: 0 })
    };
    /// Where the bundle's next envelope goes; null without a bundle.
    static NEXT: Cell<*mut Envelope> = const { Cell::new(ptr::null_mut()) };
    /// Where the bundle is full.
    static END: Cell<*mut Envelope> = const { Cell::new(ptr::null_mut()) };
    /// The cell that the last tell went to; never dereferenced.
    static LAST: Cell<*const ()> = const { Cell::new(ptr::null()) };
}

/// Tells from inside a handler.
#[inline]
pub(crate) fn tell<C: AnyCell + AsAnyCell>(
    cell: &Arc<C>,
    make: impl FnOnce() -> Envelope,
) -> Pushed {
    let next = NEXT.get();
    if next != END.get() && LAST.get() == Arc::as_ptr(cell).cast() {
        // SAFETY: `next` is before `END`, so it is spare room of the vector.
        unsafe { next.write(make()) };
        // SAFETY: as above.
        NEXT.set(unsafe { next.add(1) });
        return Pushed::Queued;
    }
    tell_another(cell, make)
}

#[inline(never)]
fn tell_another<C: AnyCell + AsAnyCell>(cell: &Arc<C>, make: impl FnOnce() -> Envelope) -> Pushed {
    hand_over();
    let header = cell.header();
    let is_second = LAST.replace(Arc::as_ptr(cell).cast()) == Arc::as_ptr(cell).cast();
    if !is_second {
        return header.mailbox.push(header.kind.len_max, make, |what| wake(cell, what));
    }
    let mut inner = header.mailbox.lock();
    if inner.closed {
        return Pushed::Closed;
    }
    let reserved = inner.reserve(BUNDLE_LEN_MAX, header.kind.len_max, header.mailbox.tally());
    drop(inner);
    if reserved == 0 {
        return Pushed::Full;
    }
    OUTBOX.with_borrow_mut(|outbox| {
        outbox.target = Some(cell.as_any_cell());
        outbox.reserved = reserved;
        outbox.boundaries = 0;
        outbox.envelopes.reserve(reserved as usize);
        let first = outbox.envelopes.as_mut_ptr();
        // SAFETY: the vector is empty and has room for `reserved` envelopes, of which there is at least one.
        unsafe { first.write(make()) };
        // SAFETY: as above.
        NEXT.set(unsafe { first.add(1) });
        // SAFETY: as above.
        END.set(unsafe { first.add(reserved as usize) });
    });
    Pushed::Queued
}

/// Hands the bundle over, if there is one.
#[inline]
pub(crate) fn hand_over() {
    if !NEXT.get().is_null() {
        hand_over_bundle();
    }
}

/// Whether there is a bundle that is not handed over yet.
#[inline]
pub(crate) fn is_open() -> bool {
    !NEXT.get().is_null()
}

/// Says that the sending actor has finished some messages.
#[inline]
pub(crate) fn boundary(messages: u32) {
    if !NEXT.get().is_null() && OUTBOX.with_borrow_mut(|outbox| outbox.is_old(messages)) {
        hand_over_bundle();
    }
}

fn hand_over_bundle() {
    let (target, mut envelopes, reserved) = OUTBOX.with_borrow_mut(Outbox::take);
    let Some(target) = target else { return };
    let mut inner = target.header().mailbox.lock();
    let what = inner.deliver_reserved(&mut envelopes, reserved);
    drop(inner);
    wake(&target, what);
    // What is left was refused by a stopped actor; dropped outside the borrow, because a message's drop may tell.
    envelopes.clear();
    OUTBOX.with_borrow_mut(|outbox| {
        if outbox.envelopes.capacity() == 0 {
            outbox.envelopes = envelopes;
        }
    });
}

impl Outbox {
    /// Takes the bundle out.
    fn take(&mut self) -> (Option<Arc<dyn AnyCell>>, Vec<Envelope>, u32) {
        let mut envelopes = std::mem::take(&mut self.envelopes);
        let next = NEXT.replace(ptr::null_mut());
        END.set(ptr::null_mut());
        let len = (next.addr() - envelopes.as_ptr().addr()) / size_of::<Envelope>();
        // SAFETY: by the invariant, `len` envelopes are live and within capacity.
        unsafe { envelopes.set_len(len) };
        (self.target.take(), envelopes, self.reserved)
    }

    fn is_old(&mut self, messages: u32) -> bool {
        self.boundaries += messages;
        self.boundaries >= BOUNDARIES_MAX
    }
}
