//! A task that delivers what publishers had no time for, one chunk's events in order, and lets
//! other tasks run in between.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::chunk::{Ended, Role};
use super::fan_out::Visitor;
use super::share::Share;
use super::shared::{Shared, TopicChunk};
use crate::shield::shielded;

/// The worker of a chunk; there is one at most.
pub(super) struct Worker<T: Send + Sync + 'static> {
    shared: Arc<Shared<T>>,
    chunk: Arc<TopicChunk<T>>,
    is_done: bool,
}

impl<T: Send + Sync + 'static> Worker<T> {
    /// For a chunk that was told that it has a worker.
    pub(super) fn new(shared: Arc<Shared<T>>, chunk: Arc<TopicChunk<T>>) -> Self {
        Self { shared, chunk, is_done: false }
    }
}

impl<T: Send + Sync + 'static> Future for Worker<T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut ended = Ended::default();
        let mut visitor = Visitor::new(true, Share::of_worker(&self.shared.node));
        shielded("the delivery of events", || {
            ended = self.chunk.deliver(Role::Worker, |delivery| visitor.bring(&delivery));
        });
        self.shared.count_missed(visitor.take_missed());
        if ended.is_empty {
            self.shared.forget_if_empty(&self.chunk);
        }
        if ended.is_unfinished {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.is_done = true;
        Poll::Ready(())
    }
}

impl<T: Send + Sync + 'static> Drop for Worker<T> {
    fn drop(&mut self) {
        if !self.is_done {
            // Its runtime ends, or its simulated world: another one may still come.
            self.chunk.lose_worker();
        }
    }
}
