//! Marks an actor as the one that this thread polls, and hands over what it told when it no longer
//! is.

use std::sync::Arc;

use crate::activation::current::{self, Frame};
use crate::activation::turn;
use crate::address::place::AnyPlace;
use crate::mail::outbox;

/// Shrinks the stack again.
pub(crate) struct Guard(());

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        let depth = current::leave();
        // A lane left open would let a tell of the held handler below out.
        if depth == 0 || turn::is_held() {
            outbox::hand_over();
        }
    }
}

/// Marks `actor` as the one being polled until the guard drops. The guard must not outlive `actor`.
#[inline]
pub(crate) fn polling(actor: &Arc<dyn AnyPlace>, frame: Frame) -> Guard {
    current::enter(actor, frame);
    Guard(())
}
