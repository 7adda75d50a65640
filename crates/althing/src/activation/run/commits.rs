//! The commits of an actor whose turns are held: each turn's changes are made durable beside the
//! turns that follow, and what it let out leaves when that is done, in the order of the turns.
//!
//! A commit that fails ends the life as a failure of the actor: the turns after it were built on
//! what is not durable. They are aborted with it, and so are those that are on their way when a
//! life ends otherwise.

use std::pin::Pin;
use std::task::{Context, Poll};

use super::{Run, Served};
use crate::activation::body::Body;
use crate::activation::current;
use crate::activation::turn::{Effects, Holding};
use crate::error::AskError;
use crate::mail::outbox;
use crate::shield::shielded;

/// Turns on their way to be durable, at most: a store that is slow is waited for.
const COMMITS_MAX: usize = 1_024;

impl Run {
    /// Begins to keep what the handler polled next lets out, if turns are held.
    #[inline]
    pub(super) fn hold_turn(&mut self) -> Option<Holding> {
        if !self.place.header().kind.holds_turns() {
            return None;
        }
        // A lane of the handler below would let a tell out.
        outbox::hand_over();
        let commits = self.commits.get_or_insert_default();
        Some(Holding::resume(std::mem::take(&mut commits.open)))
    }

    /// Keeps what the handler has let out until it is polled again, or commits the turn that it has
    /// ended.
    #[inline]
    pub(super) fn pause_turn(&mut self, holding: Option<Holding>, has_ended: bool) {
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
    pub(super) fn settle_turns(&mut self, cx: &mut Context<'_>) -> Option<Served> {
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
        self.drop_body(|body| body.fail(why));
    }

    /// Drops a handler before its end. What its locals let out when they are dropped goes the way of
    /// its turn, which is aborted.
    pub(super) fn drop_body(&self, end: impl FnOnce(&Body)) {
        // Outside of a run nobody is polled who could hold anything.
        let is_held = self.place.header().kind.holds_turns() && current::depth() > 0;
        let holding = is_held.then(|| {
            outbox::hand_over();
            Holding::resume(Effects::default())
        });
        shielded("dropping a handler", || end(&self.body));
        if let Some(holding) = holding {
            holding.pause().abort();
        }
    }

    /// Whether turns are on their way to be durable.
    #[inline]
    pub(super) fn has_turns(&self) -> bool {
        self.commits.as_ref().is_some_and(|commits| !commits.on_the_way.is_empty())
    }

    /// Drops what has not become durable; whoever waits for a reply hears so.
    pub(super) fn abort_turns(&mut self) {
        if let Some(commits) = self.commits.take() {
            commits.abort();
        }
    }
}
