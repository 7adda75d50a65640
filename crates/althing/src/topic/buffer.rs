//! The events that wait for a reader without an actor: bounded, and filled by the topic.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use super::published::Published;
use crate::shield::{discard, shielded};

/// Events that wait for a reader at most; as many as messages for an actor by default. Then the
/// oldest go.
const BUFFER_LEN_MAX: usize = 1_024;

/// Where the topic puts what the reader has still to take.
pub(super) struct Buffer<T> {
    inner: Mutex<Inner<T>>,
}

struct Inner<T> {
    events: VecDeque<Arc<Published<T>>>,
    waker: Option<Waker>,
    is_closed: bool,
}

impl<T> Buffer<T> {
    /// An empty one.
    pub(super) fn new() -> Self {
        let inner = Inner { events: VecDeque::new(), waker: None, is_closed: false };
        Self { inner: Mutex::new(inner) }
    }

    /// Takes over what waits, into `ready`, which is empty; nothing if the topic is closed.
    pub(super) fn poll(
        &self,
        ready: &mut VecDeque<Arc<Published<T>>>,
        cx: &Context<'_>,
    ) -> Poll<()> {
        if self.take(ready) {
            return Poll::Ready(());
        }
        // Wakers are foreign: cloned and dropped outside the lock.
        let waker = cx.waker().clone();
        let mut inner = self.inner.lock();
        let old = inner.waker.replace(waker);
        drop(inner);
        shielded("the waker of a stream", || drop(old));
        // It may have come before the waker.
        if self.take(ready) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Moves what waits into `ready`; returns whether there is no need to wait.
    fn take(&self, ready: &mut VecDeque<Arc<Published<T>>>) -> bool {
        let mut inner = self.inner.lock();
        let is_there = !inner.events.is_empty() || inner.is_closed;
        if is_there {
            std::mem::swap(ready, &mut inner.events);
        }
        is_there
    }

    /// Adds an event; the oldest goes if there are too many. Returns whether it had to.
    pub(super) fn push(&self, event: Arc<Published<T>>) -> bool {
        let mut inner = self.inner.lock();
        let is_full = inner.events.len() >= BUFFER_LEN_MAX;
        let oldest = if is_full { inner.events.pop_front() } else { None };
        inner.events.push_back(event);
        let waker = inner.waker.take();
        drop(inner);
        discard("the drop of an event", oldest);
        wake(waker);
        is_full
    }

    /// Nothing comes any more.
    pub(super) fn close(&self) {
        let mut inner = self.inner.lock();
        inner.is_closed = true;
        let waker = inner.waker.take();
        drop(inner);
        wake(waker);
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        for event in self.inner.get_mut().events.drain(..) {
            discard("the drop of an event", event);
        }
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        shielded("the waker of a stream", || waker.wake());
    }
}
