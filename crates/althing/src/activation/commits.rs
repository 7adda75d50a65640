//! The commits of an actor whose turns are held: each turn's changes are made durable beside the
//! turns that follow, and what it let out leaves when that is done, in the order of the turns.
//!
//! A commit that fails ends the life as a failure of the actor: the turns after it were built on
//! what is not durable. They are aborted with it, and so are those that are on their way when a
//! life ends otherwise.

use std::collections::VecDeque;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::activation::run::{Run, Served};
use crate::activation::turn::{Effects, Holding};
use crate::error::{ActorError, AskError};
use crate::shield::shielded;

/// Turns on their way to be durable, at most: a store that is slow is waited for.
const COMMITS_MAX: usize = 1_024;

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

/// The turns of one run, where they are held.
#[derive(Default)]
pub(crate) struct Commits {
    /// What the turn whose handler waits has let out.
    open: Effects,
    on_the_way: VecDeque<(Commit, Effects)>,
}

impl Commits {
    fn abort(self) {
        self.open.abort();
        for (commit, effects) in self.on_the_way {
            shielded("dropping a commit", || drop(commit));
            effects.abort();
        }
    }
}

impl Run {
    /// Begins to keep what the handler polled next lets out, if turns are held.
    #[inline]
    pub(crate) fn hold_turn(&mut self) -> Option<Holding> {
        if !self.place.header().kind.holds_turns() {
            return None;
        }
        let commits = self.commits.get_or_insert_default();
        Some(Holding::resume(std::mem::take(&mut commits.open)))
    }

    /// Keeps what the handler has let out until it is polled again, or commits the turn that it has
    /// ended.
    #[inline]
    pub(crate) fn pause_turn(&mut self, holding: Option<Holding>, has_ended: bool) {
        if let Some(holding) = holding {
            self.put_turn_by(holding.pause(), has_ended);
        }
    }

    #[cold]
    fn put_turn_by(&mut self, effects: Effects, has_ended: bool) {
        // Kept here also while `commit` runs: if it panics, they are aborted like those of a
        // handler that does.
        self.commits.get_or_insert_default().open = effects;
        if !has_ended {
            return;
        }
        // SAFETY: the claim is ours, and no handler is left: turns that are held do not overlap.
        let commit = unsafe { self.place.commit(self.body.core()) };
        let commits = self.commits.get_or_insert_default();
        let effects = std::mem::take(&mut commits.open);
        commits.on_the_way.push_back((commit, effects));
    }

    /// Lets out what has become durable. `Some` if a commit has failed, or if so many are on their
    /// way that the next turn must wait.
    #[inline]
    pub(crate) fn settle_turns(&mut self, cx: &mut Context<'_>) -> Option<Served> {
        let commits = self.commits.as_mut()?;
        while let Some((commit, _)) = commits.on_the_way.front_mut() {
            let outcome = match Pin::new(commit).poll(cx) {
                Poll::Ready(outcome) => outcome,
                Poll::Pending if commits.on_the_way.len() < COMMITS_MAX => return None,
                Poll::Pending => return Some(self.suspend(cx)),
            };
            let (_, effects) = commits.on_the_way.pop_front().expect("it was the first");
            match outcome {
                Ok(()) => effects.release(),
                Err(error) => {
                    effects.abort();
                    self.abort_turns();
                    self.abort_handler();
                    return Some(Served::Failed(error));
                }
            }
        }
        None
    }

    /// Drops the handler that waits, whose turn is built on what has not become durable.
    fn abort_handler(&self) {
        let why = AskError::NotCommitted(self.place.header().id());
        shielded("dropping a handler", || self.body.fail(why));
    }

    /// Whether turns are on their way to be durable.
    #[inline]
    pub(crate) fn has_turns(&self) -> bool {
        self.commits.as_ref().is_some_and(|commits| !commits.on_the_way.is_empty())
    }

    /// Drops what has not become durable; whoever waits for a reply hears so.
    pub(crate) fn abort_turns(&mut self) {
        if let Some(commits) = self.commits.take() {
            commits.abort();
        }
    }
}
