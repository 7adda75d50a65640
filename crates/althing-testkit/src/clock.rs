//! Virtual time: it stands still while anybody has something to do, then jumps to the next sleeper.
//!
//! All who sleep until the same instant wake together, so that the seed decides who goes first.
//! Housekeeping that sleeps is passed over where its look would find nothing new: nobody else has
//! run since it lay down. It wakes before those for whom time jumps, because they must find the
//! house kept.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;

/// Whether a task or a sleep keeps the world going.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ground {
    /// Somebody's own: the world goes on for it.
    Fore,
    /// The runtime's housekeeping: the world does not go on for it alone.
    Back,
}

/// Time since the world began, and who sleeps until when.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    now: Duration,
    fore: BTreeMap<(Duration, u64), Waker>,
    back: BTreeMap<(Duration, u64), Housekeeper>,
    /// Counts polls of tasks in the foreground.
    activity: u64,
    next_id: u64,
}

/// Housekeeping that sleeps.
#[derive(Debug)]
struct Housekeeper {
    waker: Waker,
    /// The activity when it lay down.
    activity: u64,
}

impl Clock {
    pub(crate) fn now(&self) -> Duration {
        self.inner.lock().now
    }

    /// Resolves once `delay` has passed.
    pub(crate) fn sleep(self: &Arc<Self>, delay: Duration, ground: Ground) -> Sleep {
        let mut inner = self.inner.lock();
        inner.next_id += 1;
        let place = (inner.now.saturating_add(delay), inner.next_id);
        Sleep { clock: self.clone(), place, ground }
    }

    /// Says that a task in the foreground is polled: housekeeping may find something new.
    pub(crate) fn note_activity(&self) {
        self.inner.lock().activity += 1;
    }

    /// When the next one wakes for whom the world goes on.
    pub(crate) fn next_foreground(&self) -> Option<Duration> {
        self.inner.lock().fore.first_key_value().map(|((until, _), _)| *until)
    }

    /// When the next housekeeper wakes who may find something new.
    pub(crate) fn next_background(&self) -> Option<Duration> {
        let inner = self.inner.lock();
        let mut news = inner.back.iter().filter(|(_, back)| back.activity != inner.activity);
        news.next().map(|((until, _), _)| *until)
    }

    /// Jumps to `until` and wakes the housekeepers who sleep until then; if there are none,
    /// everybody else who does.
    pub(crate) fn skip_to(&self, until: Duration) {
        let mut inner = self.inner.lock();
        inner.now = inner.now.max(until);
        let later = (until, u64::MAX);
        let mut due: Vec<Waker> =
            take_until(&mut inner.back, later).map(|back| back.waker).collect();
        if due.is_empty() {
            due = take_until(&mut inner.fore, later).collect();
        }
        // Released before waking: the woken task may look at the clock.
        drop(inner);
        due.into_iter().for_each(Waker::wake);
    }
}

fn take_until<T>(
    sleepers: &mut BTreeMap<(Duration, u64), T>,
    last: (Duration, u64),
) -> impl Iterator<Item = T> + use<T> {
    let later = sleepers.split_off(&last);
    std::mem::replace(sleepers, later).into_values()
}

/// A sleep in virtual time.
pub(crate) struct Sleep {
    clock: Arc<Clock>,
    place: (Duration, u64),
    ground: Ground,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.clock.inner.lock();
        if inner.now >= self.place.0 {
            return Poll::Ready(());
        }
        let waker = cx.waker().clone();
        let before = match self.ground {
            Ground::Fore => inner.fore.insert(self.place, waker),
            Ground::Back => {
                let activity = inner.activity;
                let back = Housekeeper { waker, activity };
                inner.back.insert(self.place, back).map(|back| back.waker)
            }
        };
        drop(inner);
        drop(before);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let mut inner = self.clock.inner.lock();
        let waker = match self.ground {
            Ground::Fore => inner.fore.remove(&self.place),
            Ground::Back => inner.back.remove(&self.place).map(|back| back.waker),
        };
        // Released before the waker drops, which may hold the last reference to a task.
        drop(inner);
        drop(waker);
    }
}
