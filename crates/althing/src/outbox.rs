//! Tells from inside handlers, handed over in bulk: one lock for up to 32 messages to one target.
//!
//! The second tell in a row to one target reserves room there and starts a bundle; it is handed over when the target changes, when it is
//! full, before an ask or a publish, after a few messages, and at the latest when the handler waits or its batch ends. Order from one actor to
//! another is kept. Because room was reserved, handing over never fails for lack of it.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use crate::cell::{AnyCell, AsAnyCell, wake};
use crate::envelope::Envelope;
use crate::mailbox::Refused;

/// Messages in one bundle.
const BUNDLE_LEN_MAX: u32 = 32;
/// Messages of the sending actor after which a bundle is handed over, so that slow handlers do not hold it back.
const BOUNDARIES_MAX: u32 = 16;

#[derive(Default)]
struct Outbox {
    bundle: Option<Bundle>,
    /// The cell that the last tell went to; never dereferenced.
    last: Option<*const ()>,
    /// An empty buffer, kept for the next bundle.
    spare: Vec<Envelope>,
}

struct Bundle {
    target: Arc<dyn AnyCell>,
    envelopes: Vec<Envelope>,
    reserved: u32,
    boundaries: u32,
}

thread_local! {
    static OUTBOX: RefCell<Outbox> = const {
        RefCell::new(Outbox { bundle: None, last: None, spare: Vec::new() })
    };
    /// Whether there is a bundle: a look that costs nothing.
    static FILLED: Cell<bool> = const { Cell::new(false) };
}

/// What became of an offered message.
pub(crate) enum Offered {
    /// In the bundle.
    Taken,
    /// Better sent alone.
    Alone(Envelope),
    /// Refused by the target.
    Refused(Refused),
}

/// Offers a tell from inside a handler.
pub(crate) fn offer<C: AnyCell + AsAnyCell>(cell: &Arc<C>, envelope: Envelope) -> Offered {
    let place = Arc::as_ptr(cell).cast::<()>();
    let envelope = match OUTBOX.with_borrow_mut(|outbox| outbox.add(place, envelope)) {
        Ok(()) => return Offered::Taken,
        Err(envelope) => envelope,
    };
    hand_over();
    let is_second = OUTBOX.with_borrow_mut(|outbox| outbox.last.replace(place) == Some(place));
    if !is_second {
        return Offered::Alone(envelope);
    }
    let header = cell.header();
    let mut inner = header.mailbox.lock();
    if inner.closed {
        return Offered::Refused(Refused::Closed(envelope));
    }
    let reserved = inner.reserve(BUNDLE_LEN_MAX, header.kind.len_max);
    drop(inner);
    if reserved == 0 {
        return Offered::Refused(Refused::Full(envelope));
    }
    OUTBOX.with_borrow_mut(|outbox| outbox.begin(cell.as_any_cell(), envelope, reserved));
    FILLED.set(true);
    Offered::Taken
}

/// Hands the bundle over, if there is one.
#[inline]
pub(crate) fn hand_over() {
    if FILLED.get() {
        hand_over_bundle();
    }
}

/// Says that the sending actor has finished a message.
#[inline]
pub(crate) fn boundary() {
    if FILLED.get() && OUTBOX.with_borrow_mut(Outbox::is_old) {
        hand_over_bundle();
    }
}

fn hand_over_bundle() {
    FILLED.set(false);
    let Some(mut bundle) = OUTBOX.with_borrow_mut(|outbox| outbox.bundle.take()) else { return };
    let mut inner = bundle.target.header().mailbox.lock();
    let what = inner.deliver_reserved(&mut bundle.envelopes, bundle.reserved);
    drop(inner);
    wake(&bundle.target, what);
    // What is left was refused by a stopped actor; dropped outside the borrow, because a message's drop may tell.
    bundle.envelopes.clear();
    OUTBOX.with_borrow_mut(|outbox| outbox.spare = bundle.envelopes);
}

impl Outbox {
    fn add(&mut self, place: *const (), envelope: Envelope) -> Result<(), Envelope> {
        match &mut self.bundle {
            Some(bundle)
                if Arc::as_ptr(&bundle.target).cast::<()>() == place
                    && bundle.envelopes.len() < bundle.reserved as usize =>
            {
                bundle.envelopes.push(envelope);
                Ok(())
            }
            _ => Err(envelope),
        }
    }

    fn begin(&mut self, target: Arc<dyn AnyCell>, envelope: Envelope, reserved: u32) {
        let mut envelopes = std::mem::take(&mut self.spare);
        envelopes.push(envelope);
        self.bundle = Some(Bundle { target, envelopes, reserved, boundaries: 0 });
    }

    fn is_old(&mut self) -> bool {
        let Some(bundle) = &mut self.bundle else { return false };
        bundle.boundaries += 1;
        bundle.boundaries >= BOUNDARIES_MAX
    }
}
