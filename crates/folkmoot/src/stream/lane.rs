//! Appends of one actor that are under way, settled strictly in the order in which they began.
//!
//! The actor decides and appends without waiting for the disk; a future waits beside it and comes
//! back with how many appends are durable, one message per group sync however many they are.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::storage::{Append, AppendError, Appended};

/// How the oldest appends ended.
#[derive(Debug)]
pub(crate) struct Settled {
    /// So many are durable.
    pub(crate) durable: usize,
    /// The next one failed, and with it all that followed.
    pub(crate) failed: Option<AppendError>,
    rest: VecDeque<Started>,
}

/// The appends of one actor. At most one `Wait` exists at a time.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    queued: VecDeque<Started>,
    is_waiting: bool,
    broken: Option<AppendError>,
}

/// An append that has begun, with its answer if it came at once.
#[derive(Debug)]
struct Started {
    append: Append,
    answer: Option<Result<Appended, AppendError>>,
}

impl Lane {
    /// Adds an append that has been started.
    pub(crate) fn push(&mut self, mut append: Append) {
        // The store refuses at once when it is full. The next append might be accepted, and would
        // leave a gap: so after a refusal nothing may follow until the state is loaded again.
        let mut cx = Context::from_waker(Waker::noop());
        let answer = match Pin::new(&mut append).poll(&mut cx) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        };
        if let (None, Some(Err(error))) = (&self.broken, &answer) {
            self.broken = Some(error.clone());
        }
        self.queued.push_back(Started { append, answer });
    }

    /// Why an append was refused, so that none may follow before `resume` tells of it.
    pub(crate) fn broken(&self) -> Option<&AppendError> {
        self.broken.as_ref()
    }

    /// A future to run beside the actor, if there is something to wait for and nobody waits.
    pub(crate) fn wait(&mut self) -> Option<Wait> {
        if self.is_waiting || self.queued.is_empty() {
            return None;
        }
        self.is_waiting = true;
        Some(Wait { durable: 0, appends: std::mem::take(&mut self.queued) })
    }

    /// Takes back what a `Wait` left over.
    pub(crate) fn resume(&mut self, settled: &mut Settled) {
        self.is_waiting = false;
        let newer = std::mem::replace(&mut self.queued, std::mem::take(&mut settled.rest));
        self.queued.extend(newer);
        if settled.failed.is_some() {
            // Their epoch ended: none of them can become durable any more.
            self.queued.clear();
            self.broken = None;
        }
    }
}

/// Resolves when the oldest append has settled, with all that settled at the same time.
#[derive(Debug)]
pub(crate) struct Wait {
    durable: usize,
    appends: VecDeque<Started>,
}

impl Future for Wait {
    type Output = Settled;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Settled> {
        let mut failed = None;
        while let Some(oldest) = self.appends.front_mut() {
            let answer = match oldest.answer.take() {
                Some(answer) => Poll::Ready(answer),
                None => Pin::new(&mut oldest.append).poll(cx),
            };
            match answer {
                Poll::Pending if self.durable == 0 => return Poll::Pending,
                Poll::Pending => break,
                Poll::Ready(Ok(Appended { .. })) => {
                    self.appends.pop_front();
                    self.durable += 1;
                }
                Poll::Ready(Err(error)) => {
                    self.appends.clear();
                    failed = Some(error);
                }
            }
        }
        let rest = std::mem::take(&mut self.appends);
        Poll::Ready(Settled { durable: self.durable, failed, rest })
    }
}
