//! The actor's own address, and what ties it to others: children, watches, links, results to come.

use std::error::Error;
use std::future::Future;
use std::str::FromStr;
use std::sync::Arc;

use super::Context;
use crate::activation::pledge::Pledge;
use crate::actor::{Actor, Receives};
use crate::address::actor_ref::ActorRef;
use crate::address::key::{self, KeyError};
use crate::address::parent::Parent;
use crate::address::place::AsAnyPlace;
use crate::address::start::{Start, boxed_factory};
use crate::address::tie::{self, Tie, TieNumber};
use crate::address::typed::Place;
use crate::address::watching::forget_watcher;
use crate::error::ActorError;
use crate::mail::reply::ReplyTo;
use crate::shield::discard_all;

impl<A: Actor> Context<A> {
    /// The actor's own address.
    pub fn address(&self) -> ActorRef<A> {
        let place: *const Place<A> = std::ptr::from_ref(self.core.place()).cast();
        // SAFETY: a `Context<A>` is made only for places of type `A`, which an `Arc` in the run
        // keeps alive.
        unsafe { Arc::increment_strong_count(place) };
        // SAFETY: the count was raised for this `Arc`.
        ActorRef::from_place(unsafe { Arc::from_raw(place) })
    }

    /// Key of a named actor as the type that stands for it.
    ///
    /// # Errors
    /// The key is no such thing; the error names it and the actor's kind.
    pub fn key_as<K>(&self) -> Result<K, KeyError>
    where
        K: FromStr<Err: Error + Send + Sync + 'static>,
    {
        key::parse(A::NAME, self.key())
    }

    /// Starts an anonymous child, which stops when this actor stops, and restarts by its own
    /// policy.
    pub fn spawn<C, F, B>(&mut self, factory: F) -> ActorRef<C>
    where
        C: Actor,
        F: Fn(Start<C>) -> B + Send + Sync + 'static,
        B: Future<Output = Result<C, ActorError>> + Send + 'static,
    {
        let parent = Parent::of(self.address().place().as_any_place());
        self.node().spawn_child(boxed_factory(factory), Some(&parent))
    }

    /// Calls this actor's `terminated` hook once `other` has stopped; at once if it has already, for
    /// good. A named actor that can be built again has no such end: while it sleeps, its next life
    /// is watched. Watching twice tells once. The watch ends with this actor's own life, but not
    /// when it is unloaded.
    pub fn watch<B: Actor>(&mut self, other: &ActorRef<B>) {
        let me = self.address().place().as_any_place();
        let them = other.place().as_any_place();
        if Arc::ptr_eq(&me, &them) {
            // It cannot hear of its own end.
            return;
        }
        let number = TieNumber::next();
        let watch = Tie::new(number, Arc::downgrade(&them));
        let mut inner = self.core.header().mailbox.lock();
        tie::add(&mut inner.extras().watched, them.header().serial(), watch);
        drop(inner);
        other.add_watcher(Tie::new(number, me));
    }

    /// Takes `watch` back: the hook hears no more of an end that has been told by now.
    pub fn unwatch<B: Actor>(&mut self, other: &ActorRef<B>) {
        let them = other.place().as_any_place();
        let serial = them.header().serial();
        // Whoever runs this holds the claim: no later watch is there.
        forget_watcher(&them, self.core.header().serial(), TieNumber::next());
        let mut inner = self.core.header().mailbox.lock();
        let unheard = inner.extras.as_mut().map(|extras| {
            extras.watched.remove(&serial);
            extras.take_news_of(serial)
        });
        // Released before dropping: the cause of an end may be foreign.
        drop(inner);
        discard_all("dropping the news of an end", unheard.into_iter().flatten());
    }

    /// Ties two lives: when one of them stops, so does the other.
    pub fn link<B: Actor>(&mut self, other: &ActorRef<B>) {
        let me = self.address().place().as_any_place();
        let them = other.place().as_any_place();
        if Arc::ptr_eq(&me, &them) {
            return;
        }
        let number = TieNumber::next();
        let (serial, link) = (them.header().serial(), Tie::new(number, them));
        tie::add(&mut self.core.header().mailbox.lock().extras().linked, serial, link);
        other.add_link(Tie::new(number, me));
    }

    /// Runs `future` beside the actor; its output comes back as a message, exempt from the
    /// mailbox's bound, unless the actor has restarted or stopped meanwhile. Until then the actor
    /// is not unloaded for being idle.
    pub fn pipe<F, M, W>(&mut self, future: F, wrap: W)
    where
        A: Receives<M>,
        M: Send + 'static,
        F: Future + Send + 'static,
        W: FnOnce(F::Output) -> M + Send + 'static,
    {
        let me = self.address();
        // Settled when the message is queued, or the future is dropped unfinished.
        let pledge = Pledge::of(me.place().as_any_place());
        self.detach(async move {
            let output = future.await;
            me.push_result(pledge.life(), wrap(output), ReplyTo::nowhere());
        });
    }
}
