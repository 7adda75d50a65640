//! Tells from inside handlers, handed over in bulk: one lock for up to 32 messages to one target.
//!
//! The second tell in a row to one target reserves room there and starts a bundle; it is handed over when the target changes, when it is
//! full, before an ask or a publish, after a few messages, and at the latest when the handler waits or its batch ends. Order from one actor to
//! another is kept. Because room was reserved, handing over never fails for lack of it.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use crate::cell::{AnyCell, AsAnyCell, wake};
use crate::envelope::Envelope;
use crate::mailbox::{Pushed, Wake};

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
    /// Whether there is a bundle: a look that costs nothing.
    static FILLED: Cell<bool> = const { Cell::new(false) };
    /// Messages that the bundle still takes.
    static ROOM: Cell<u32> = const { Cell::new(0) };
    /// The cell that the last tell went to; never dereferenced.
    static LAST: Cell<*const ()> = const { Cell::new(std::ptr::null()) };
}

/// Tells from inside a handler.
#[inline]
pub(crate) fn tell<C: AnyCell + AsAnyCell>(
    cell: &Arc<C>,
    make: impl FnOnce() -> Envelope,
) -> Pushed {
    let place = Arc::as_ptr(cell).cast::<()>();
    if ROOM.get() > 0 && LAST.get() == place {
        ROOM.set(ROOM.get() - 1);
        OUTBOX.with_borrow_mut(|outbox| outbox.envelopes.push(make()));
        return Pushed::Queued(Wake::Nothing);
    }
    tell_another(cell, make)
}

fn tell_another<C: AnyCell + AsAnyCell>(cell: &Arc<C>, make: impl FnOnce() -> Envelope) -> Pushed {
    hand_over();
    let header = cell.header();
    let is_second = LAST.replace(Arc::as_ptr(cell).cast()) == Arc::as_ptr(cell).cast();
    if !is_second {
        return header.mailbox.push(header.kind.len_max, make);
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
        outbox.envelopes.push(make());
    });
    ROOM.set(reserved - 1);
    FILLED.set(true);
    Pushed::Queued(Wake::Nothing)
}

/// Hands the bundle over, if there is one.
#[inline]
pub(crate) fn hand_over() {
    if FILLED.get() {
        hand_over_bundle();
    }
}

/// Says that the sending actor has finished some messages.
#[inline]
pub(crate) fn boundary(messages: u32) {
    if FILLED.get() && OUTBOX.with_borrow_mut(|outbox| outbox.is_old(messages)) {
        hand_over_bundle();
    }
}

fn hand_over_bundle() {
    FILLED.set(false);
    ROOM.set(0);
    let (target, mut envelopes, reserved) = OUTBOX.with_borrow_mut(|outbox| {
        (outbox.target.take(), std::mem::take(&mut outbox.envelopes), outbox.reserved)
    });
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
    fn is_old(&mut self, messages: u32) -> bool {
        self.boundaries += messages;
        self.boundaries >= BOUNDARIES_MAX
    }
}
