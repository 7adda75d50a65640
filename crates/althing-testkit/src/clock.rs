//! Virtual time: it stands still while anybody has something to do, then jumps to the next sleeper.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;

/// Time since the world began, and who sleeps until when.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    now: Duration,
    sleepers: BTreeMap<(Duration, u64), Waker>,
    next_id: u64,
}

impl Clock {
    pub(crate) fn now(&self) -> Duration {
        self.inner.lock().now
    }

    /// Resolves once `delay` has passed.
    pub(crate) fn sleep(self: &Arc<Self>, delay: Duration) -> Sleep {
        let mut inner = self.inner.lock();
        inner.next_id += 1;
        let place = (inner.now.saturating_add(delay), inner.next_id);
        Sleep { clock: self.clone(), place }
    }

    /// Jumps to the next sleeper and wakes it; `None` if nobody sleeps.
    pub(crate) fn skip(&self) -> Option<Duration> {
        let mut inner = self.inner.lock();
        let ((until, _), waker) = inner.sleepers.pop_first()?;
        inner.now = inner.now.max(until);
        let now = inner.now;
        // Released before waking: the woken task may look at the clock.
        drop(inner);
        waker.wake();
        Some(now)
    }
}

/// A sleep in virtual time.
pub(crate) struct Sleep {
    clock: Arc<Clock>,
    place: (Duration, u64),
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.clock.inner.lock();
        if inner.now >= self.place.0 {
            return Poll::Ready(());
        }
        inner.sleepers.insert(self.place, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.clock.inner.lock().sleepers.remove(&self.place);
    }
}
