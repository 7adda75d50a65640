//! Makes a turn durable: what an actor whose turns are held hands to the runtime after each.

use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::error::ActorError;

/// When what a handler lets out leaves; [`Actor::TURNS`](crate::Actor::TURNS).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// At once, in the order in which it was made.
    AtOnce,
    /// Once [`Actor::commit`](crate::Actor::commit) has made the turn durable; if it fails, never.
    Held,
}

/// Makes a turn durable; what [`Actor::commit`](crate::Actor::commit) returns.
pub struct Commit {
    outcome: Outcome,
}

enum Outcome {
    Known(Ready<Result<(), ActorError>>),
    Coming(Pin<Box<dyn Future<Output = Result<(), ActorError>> + Send>>),
}

impl Commit {
    /// Nothing has changed: what the turn lets out waits only for the turns before it.
    pub fn unchanged() -> Self {
        Self { outcome: Outcome::Known(ready(Ok(()))) }
    }

    /// The changes are durable when `commit` is ready. It runs beside the turns that follow, so it
    /// owns what it writes.
    ///
    /// # Errors
    /// An error of it is a failure of the actor: its state is dropped, and supervision decides what
    /// follows.
    pub fn when(commit: impl Future<Output = Result<(), ActorError>> + Send + 'static) -> Self {
        Self { outcome: Outcome::Coming(Box::pin(commit)) }
    }
}

impl std::fmt::Debug for Commit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Commit(..)")
    }
}

impl Future for Commit {
    type Output = Result<(), ActorError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.get_mut().outcome {
            Outcome::Known(ready) => Pin::new(ready).poll(cx),
            Outcome::Coming(commit) => commit.as_mut().poll(cx),
        }
    }
}
