//! Runs code of users where no panic of theirs may pass: drops of events and of actors' states,
//! wakers.
//!
//! The panic hook has reported the panic by then; what is added here is only where it was stopped.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `f`; a panic of it ends here.
#[inline]
pub(super) fn contain(what: &'static str, f: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(f)) {
        report(what, panic);
    }
}

#[cold]
fn report(what: &'static str, panic: Box<dyn std::any::Any + Send>) {
    tracing::error!(what, "a panic beside the delivery of an event");
    // A panic's payload may panic in its own drop.
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(second);
    }
}

/// Drops `value`, whose drop may run user code; no lock may be held.
#[inline]
pub(super) fn discard<T>(what: &'static str, value: T) {
    if std::mem::needs_drop::<T>() {
        contain(what, || drop(value));
    }
}
