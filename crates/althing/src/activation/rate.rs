//! How many messages a `#[rate_limit]` admits: a number, or a function that asks the actor.

use crate::actor::Actor;

/// A number of messages, for actors of type `A`: a `u32`, or a function `fn(&A) -> u32`, so that a
/// deployment can decide.
pub trait Rate<A: Actor> {
    /// The number, for this actor at this moment.
    fn of(self, actor: &A) -> u32;
}

impl<A: Actor> Rate<A> for u32 {
    fn of(self, _: &A) -> u32 {
        self
    }
}

impl<A: Actor, F: FnOnce(&A) -> u32> Rate<A> for F {
    fn of(self, actor: &A) -> u32 {
        self(actor)
    }
}
