//! Tasks that wait for room: each once, however often it looks, in the order in which they came.

use std::collections::HashSet;
use std::ptr;
use std::task::Waker;
use std::time::Duration;

use tokio::time::sleep;

/// How often all who wait look again by themselves. Nobody says that it has given up; it is forgotten
/// then, so that those that ask in vain for hours are not remembered for hours.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Tasks that are woken together.
#[derive(Default)]
pub(crate) struct Waiters {
    wakers: Vec<Waker>,
    /// What tells each of them from the others, as `Waker::will_wake` does.
    known: HashSet<(usize, usize)>,
}

impl Waiters {
    pub(crate) fn add(&mut self, waker: &Waker) {
        if self.known.insert((waker.data().addr(), ptr::from_ref(waker.vtable()).addr())) {
            self.wakers.push(waker.clone());
        }
    }

    /// Takes all of them, to be woken without a lock.
    pub(crate) fn take(&mut self) -> Vec<Waker> {
        self.known.clear();
        std::mem::take(&mut self.wakers)
    }
}

/// Has all who wait be woken now and then, for ever.
pub(crate) async fn look_again(wake: impl Fn()) {
    loop {
        sleep(LOOK_EVERY).await;
        wake();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn who_looks_again_and_again_waits_once_and_is_woken_once() {
        let counts = [Arc::new(Count::default()), Arc::new(Count::default())];
        let wakers = counts.clone().map(Waker::from);
        let mut waiters = Waiters::default();
        for turn in 1..=3 {
            for _ in 0..1_000 {
                wakers.iter().for_each(|waker| waiters.add(&waker.clone()));
            }
            let woken = waiters.take();
            assert_eq!(woken.len(), 2);
            assert!(woken[0].will_wake(&wakers[0]), "in the order in which they came");
            woken.into_iter().for_each(Waker::wake);
            assert_eq!(counts.clone().map(|count| count.0.load(Ordering::Relaxed)), [turn; 2]);
        }
    }
}
