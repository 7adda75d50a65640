//! Runs foreign code (drops, clones, hooks) whose panic must not stop the runtime's own work.
//!
//! The process's panic hook has already reported the panic when it arrives here, so it is only
//! logged with the place where it happened. A panic's payload may itself panic when it is dropped;
//! that second payload is leaked.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Runs `work`; a panic ends it and is logged. Returns what it yields.
pub(crate) fn shielded<T>(what: &str, work: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(output) => Some(output),
        Err(panic) => {
            tracing::error!(what, panic = panic_text(&*panic), "foreign code panicked");
            drop_payload(panic);
            None
        }
    }
}

/// Drops `value`, whose drop may run foreign code; no lock may be held.
#[inline]
pub(crate) fn discard<T>(what: &str, value: T) {
    if std::mem::needs_drop::<T>() {
        shielded(what, || drop(value));
    }
}

/// As `discard`, of what is seldom there.
#[inline]
pub(crate) fn discard_some<T>(what: &str, value: Option<T>) {
    if let Some(value) = value {
        discard(what, value);
    }
}

/// As `discard`, one after the other: a second panic while the first unwinds would end the process.
pub(crate) fn discard_all<T>(what: &str, values: impl IntoIterator<Item = T>) {
    for value in values {
        discard(what, value);
    }
}

/// Wakes them all; a waker that panics keeps nobody else from being woken.
pub(crate) fn wake_all(wakers: impl IntoIterator<Item = Waker>) {
    for waker in wakers {
        shielded("a waker", || waker.wake());
    }
}

/// Drops a panic's payload, whose own drop may panic.
pub(crate) fn drop_payload(panic: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(second);
    }
}

/// The text of something foreign, if it has one.
pub(crate) fn text_of(foreign: &impl std::fmt::Display) -> String {
    shielded("formatting", || foreign.to_string()).unwrap_or_else(|| "no text".to_owned())
}

/// What a panic says, if it is text.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no text")
}
