//! The line of senders that wait for room in a full mailbox.
//!
//! Who is called up goes on sending, usually until the mailbox is full again; so few are called at
//! a time, because each parked thread costs a switch and each awake one contends for the lock. Two
//! rather than one, because a runtime hands the second to another worker. While those called leave
//! the mailbox empty, twice as many are called next time.

mod sender;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

pub(crate) use sender::Line;

/// Senders called up at once, at least.
const CALLED_MIN: usize = 2;

/// The number of the next place in a line; in each line, whose mailbox is locked, they rise. Of all
/// lines of the process, so that a line need not be kept for those who have left it: a place that
/// somebody still holds must not come again.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Senders that wait for room, in the order in which they came.
#[derive(Default)]
pub(crate) struct WaitingSenders {
    waiters: VecDeque<(u64, Waker)>,
    /// How many to call up at once besides `CALLED_MIN`.
    more: usize,
}

impl WaitingSenders {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Takes the wakers of those who may send now that there is `room`. `is_drained`: the runner is
    /// about to leave.
    pub(crate) fn call_up(&mut self, room: usize, len_max: usize, is_drained: bool) -> Vec<Waker> {
        if room * 2 < len_max {
            return Vec::new();
        }
        if is_drained {
            self.more = self.more.saturating_mul(2).saturating_add(1).min(len_max);
        }
        let called = (CALLED_MIN + self.more).min(room).min(self.waiters.len());
        self.waiters.drain(..called).map(|(_, waker)| waker).collect()
    }

    /// Takes all wakers.
    pub(crate) fn call_all(&mut self) -> Vec<Waker> {
        self.waiters.drain(..).map(|(_, waker)| waker).collect()
    }

    /// Queues up, or renews the waker of a place in the line; returns the place and the old waker.
    fn wait(&mut self, place: Option<u64>, waker: Waker) -> (u64, Option<Waker>) {
        // The mailbox is full: those called before were enough.
        self.more = 0;
        if let Some(id) = place
            && let Ok(index) = self.position(id)
        {
            return (id, Some(std::mem::replace(&mut self.waiters[index].1, waker)));
        }
        let place = NEXT.fetch_add(1, Ordering::Relaxed);
        self.waiters.push_back((place, waker));
        (place, None)
    }

    /// Gives up a place; one who had been called up passes the call on.
    fn leave(&mut self, place: u64) -> Left {
        match self.position(place) {
            Ok(index) => Left::Waiting(self.waiters.remove(index).map(|(_, waker)| waker)),
            Err(_) => Left::Called(self.waiters.pop_front().map(|(_, waker)| waker)),
        }
    }

    /// Where a place in the line is. Places rise from front to back.
    fn position(&self, place: u64) -> Result<usize, usize> {
        self.waiters.binary_search_by_key(&place, |waiter| waiter.0)
    }
}

/// How a sender left the line.
enum Left {
    /// Before its turn; its own waker.
    Waiting(Option<Waker>),
    /// After it had been called up; the next one's waker.
    Called(Option<Waker>),
}

#[cfg(all(test, althing_loom))]
mod model {
    //! Every interleaving of a runner and two senders at a mailbox of one place: `make loom`.

    use std::sync::Arc;
    use std::task::Waker;

    use loom::sync::{Arc as LoomArc, Mutex};
    use loom::thread;

    use super::{Left, WaitingSenders};
    use crate::sync::Bell;

    /// A mailbox in small: whether a message waits, and whether somebody runs the actor.
    #[derive(Default)]
    struct Mailbox {
        is_full: bool,
        is_run: bool,
        handled: u32,
        line: WaitingSenders,
    }

    type Shared = LoomArc<Mutex<Mailbox>>;

    /// One message waits, and the caller is to run it.
    fn full() -> Shared {
        LoomArc::new(Mutex::new(Mailbox { is_full: true, is_run: true, ..Mailbox::default() }))
    }

    fn run(mailbox: &Shared) {
        loop {
            let mut inner = mailbox.lock().unwrap();
            let had_message = std::mem::take(&mut inner.is_full);
            inner.handled += u32::from(had_message);
            inner.is_run = had_message;
            let called = inner.line.call_up(1, 1, true);
            drop(inner);
            called.into_iter().for_each(Waker::wake);
            if !had_message {
                return;
            }
        }
    }

    /// Sends one message, trying again when called up and not before.
    fn send(mailbox: &Shared) {
        let bell = Bell::new();
        let mut place = None;
        loop {
            let mut inner = mailbox.lock().unwrap();
            if !inner.is_full {
                inner.is_full = true;
                let runs = !std::mem::replace(&mut inner.is_run, true);
                drop(inner);
                if runs {
                    run(mailbox);
                }
                return;
            }
            place = Some(inner.line.wait(place, Waker::from(bell.clone())).0);
            drop(inner);
            bell.wait();
        }
    }

    /// Joins the line and leaves it again.
    fn give_up(mailbox: &Shared) {
        let mut inner = mailbox.lock().unwrap();
        if !inner.is_full {
            return;
        }
        let (place, _) = inner.line.wait(None, Waker::from(Arc::clone(&Bell::new())));
        drop(inner);
        let left = mailbox.lock().unwrap().line.leave(place);
        if let Left::Called(Some(next)) = left {
            next.wake();
        }
    }

    fn check(other: fn(&Shared), handled: u32) {
        let mut model = loom::model::Builder::new();
        // All interleavings of three threads take hours; nearly every bug needs two preemptions at
        // most.
        model.preemption_bound = Some(2);
        model.check(move || {
            let mailbox = full();
            let senders = [send as fn(&Shared), other].map(|act| {
                let mailbox = mailbox.clone();
                thread::spawn(move || act(&mailbox))
            });
            run(&mailbox);
            for sender in senders {
                sender.join().expect("the model's thread ends");
            }
            assert_eq!(mailbox.lock().unwrap().handled, handled);
        });
    }

    #[test]
    fn no_sender_waits_for_ever() {
        check(send, 3);
    }

    #[test]
    fn a_sender_that_goes_passes_its_call_on() {
        check(give_up, 2);
    }
}
