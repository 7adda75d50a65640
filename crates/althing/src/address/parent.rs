//! The life that a child belongs to, and how the child becomes part of it.

use std::sync::Arc;

use crate::address::place::AnyPlace;
use crate::address::signal::send_system;
use crate::address::watching::leave_parent;
use crate::mail::extras::System;
use crate::mail::mailbox::Life;
use crate::stop_reason::StopReason;

/// The life that a child belongs to.
pub(crate) struct Parent {
    place: Arc<dyn AnyPlace>,
    life: Life,
}

impl Parent {
    /// The life that the actor is in.
    pub(crate) fn of(place: Arc<dyn AnyPlace>) -> Self {
        let life = place.header().mailbox.lock().life();
        Self { place, life }
    }

    /// Makes an actor that nobody else knows yet the parent's child; returns whether that life goes
    /// on.
    pub(crate) fn adopt(&self, child: &Arc<dyn AnyPlace>) -> bool {
        child.header().mailbox.lock().extras().parent = Some(self.place.clone());
        let mut inner = self.place.header().mailbox.lock();
        let goes_on = inner.life() == self.life;
        if goes_on {
            inner.extras().children.insert(child.header().serial(), child.clone());
        }
        drop(inner);
        if !goes_on {
            self.disown(child);
        }
        goes_on
    }

    /// Takes `adopt` back.
    pub(crate) fn disown(&self, child: &Arc<dyn AnyPlace>) {
        let parent = child.header().mailbox.lock().extras().parent.take();
        leave_parent(&self.place, child);
        drop(parent);
    }

    /// Ends a child that was started too late, as the end of its parent would have.
    pub(crate) fn end(&self, child: &Arc<dyn AnyPlace>) {
        send_system(child, System::Fail(StopReason::Linked(self.place.header().id())));
    }
}
