//! Waits for the end of an actor's life.
//!
//! Each waiter has one number in the actor's list, under a number of its own; it renews its waker
//! there and leaves when it drops.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::activation::current;
use crate::address::place::AnyPlace;
use crate::address::tie::TieNumber;
use crate::remote::outgoing;

/// Resolves when the life that an actor was in has ended; see
/// [`ActorRef::stop`](crate::ActorRef::stop) and [`ActorRef::stopped`](crate::ActorRef::stopped).
///
/// # Cancel safety
/// Dropping it ends the waiting and nothing else.
#[must_use = "to wait for the end, await it; to stop without waiting, drop it"]
pub struct Stopped {
    place: Arc<dyn AnyPlace>,
    life: u32,
    /// Our number in the list, once we have waited.
    number: Option<TieNumber>,
}

impl Stopped {
    pub(crate) fn of(place: Arc<dyn AnyPlace>) -> Self {
        let life = place.header().mailbox.lock().life_to_await();
        Self::of_life(place, life)
    }

    pub(crate) fn of_life(place: Arc<dyn AnyPlace>, life: u32) -> Self {
        Self { place, life, number: None }
    }
}

impl Future for Stopped {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let header = this.place.header();
        // Its own handler would wait for itself.
        if current::is(header.serial()) {
            return Poll::Ready(());
        }
        // Wakers are foreign: cloned and dropped outside the lock.
        let waker = cx.waker().clone();
        let mut inner = header.mailbox.lock();
        let is_elsewhere = inner.is_elsewhere();
        let is_asleep = inner.sleeps_now() && !is_elsewhere;
        // Who is still on the list has not been told: what ended elsewhere was a former life.
        let listed = inner.extras.as_ref().zip(this.number);
        if listed.is_some_and(|(extras, number)| extras.stop_waiters.contains_key(&number)) {
            this.life = inner.lives();
        }
        if inner.lives() != this.life || inner.has_ended() || is_asleep {
            return Poll::Ready(());
        }
        let is_first = this.number.is_none();
        let number = *this.number.get_or_insert_with(TieNumber::next);
        let waiters = &mut inner.extras().stop_waiters;
        let old = waiters.insert(number, waker);
        drop(inner);
        drop(old);
        if is_elsewhere && is_first {
            outgoing::ship_watch(&this.place, true);
        }
        Poll::Pending
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let mut inner = self.place.header().mailbox.lock();
        let gone = inner.extras.as_mut().and_then(|extras| extras.stop_waiters.remove(&number));
        let until = gone.as_ref().and_then(|_| outgoing::left_by_all(&inner));
        // Released before dropping: a waker may be anybody's.
        drop(inner);
        drop(gone);
        outgoing::ship_unwatch(&self.place, until);
    }
}

impl std::fmt::Debug for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Stopped").field(&self.place.header().id()).finish()
    }
}
