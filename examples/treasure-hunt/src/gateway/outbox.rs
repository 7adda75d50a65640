//! What waits for one client: bytes of frames, gathered until the socket can take them.
//!
//! Answers are sent at once and take waiting views along; views alone wait until the patrol finds
//! them old. There is no timer per client, and no memory while nothing waits. A client that does
//! not read is let go when its outbox is full: its players stay, and it may come back.

use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::limits::OUTBOX_LEN_MAX;
use crate::websocket::Written;
use crate::wire::Notice;

/// Room for an answer and a few views, taken at once instead of by doubling.
const FIRST_LEN: usize = 256;

/// An outbox; many fill it, one empties it.
#[derive(Debug, Default)]
pub struct Outbox {
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Frames after room for a header; empty when nothing waits.
    bytes: Vec<u8>,
    /// Since when, if nothing among it is urgent.
    since: Option<Instant>,
    is_due: bool,
    ping: bool,
    is_over: bool,
    is_closed: bool,
    waker: Option<Waker>,
}

/// What to send next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// A message, after room for a header.
    Frames(Vec<u8>),
    /// A ping.
    Ping,
}

/// The outbox is full, or closed and empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The client reads too slowly.
    Overflow,
    /// Nothing will come any more.
    Closed,
}

impl Outbox {
    /// Adds an answer.
    pub fn answer(&self, notice: &Notice) {
        let mut waiting = self.waiting.lock();
        waiting.add(|bytes| notice.write(bytes));
        waiting.is_due = true;
        let waker = waiting.waker.take();
        // Released before waking: the socket's task would wait for us.
        drop(waiting);
        wake(waker);
    }

    /// Adds frames that may wait a little.
    pub fn add_soon(&self, frames: &[u8]) {
        let mut waiting = self.waiting.lock();
        if waiting.bytes.is_empty() {
            waiting.since = Some(Instant::now());
        }
        waiting.add(|bytes| bytes.extend_from_slice(frames));
        let waker = if waiting.is_over { waiting.waker.take() } else { None };
        drop(waiting);
        wake(waker);
    }

    /// Sends what has waited for that long.
    pub fn send_older_than(&self, age: Duration) {
        let mut waiting = self.waiting.lock();
        if !waiting.is_due && waiting.since.is_some_and(|since| since.elapsed() >= age) {
            waiting.is_due = true;
            let waker = waiting.waker.take();
            drop(waiting);
            wake(waker);
        }
    }

    /// Asks the client for a sign of life, which keeps what lies between from forgetting the
    /// connection.
    pub fn ping(&self) {
        let mut waiting = self.waiting.lock();
        waiting.ping = true;
        let waker = waiting.waker.take();
        drop(waiting);
        wake(waker);
    }

    /// Says that nothing will come any more; what waits is still sent.
    pub fn close(&self) {
        let mut waiting = self.waiting.lock();
        waiting.is_closed = true;
        let waker = waiting.waker.take();
        drop(waiting);
        wake(waker);
    }

    /// Whether nothing will come any more.
    pub fn is_closed(&self) -> bool {
        self.waiting.lock().is_closed
    }

    /// The next message, when there is one to be sent.
    ///
    /// # Errors
    /// `Ended`.
    pub fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Result<Next, Ended>> {
        let mut waiting = self.waiting.lock();
        if waiting.is_over {
            return Poll::Ready(Err(Ended::Overflow));
        }
        if !waiting.bytes.is_empty() && (waiting.is_due || waiting.is_closed) {
            waiting.is_due = false;
            waiting.since = None;
            return Poll::Ready(Ok(Next::Frames(std::mem::take(&mut waiting.bytes))));
        }
        if waiting.is_closed {
            return Poll::Ready(Err(Ended::Closed));
        }
        if std::mem::take(&mut waiting.ping) {
            return Poll::Ready(Ok(Next::Ping));
        }
        if !waiting.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            waiting.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl Waiting {
    fn add(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.is_over || self.is_closed {
            return;
        }
        if self.bytes.is_empty() {
            self.bytes.reserve(FIRST_LEN);
            Written::reserve(&mut self.bytes);
        }
        write(&mut self.bytes);
        self.is_over = self.bytes.len() > OUTBOX_LEN_MAX;
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;
    use crate::websocket::HEADER_LEN_MAX;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn fault(text: &str) -> Notice {
        Notice::Fault(text.into())
    }

    fn frames(outbox: &Outbox) -> Poll<Result<Vec<u8>, Ended>> {
        outbox.poll_next(&mut Context::from_waker(Waker::noop())).map_ok(|next| match next {
            Next::Frames(bytes) => bytes[HEADER_LEN_MAX..].to_vec(),
            Next::Ping => b"ping".to_vec(),
        })
    }

    #[test]
    fn answers_go_at_once_and_take_waiting_views_along() {
        let (outbox, wakes) = (Outbox::default(), Arc::new(Wakes::default()));
        let waker = Waker::from(wakes.clone());
        assert!(outbox.poll_next(&mut Context::from_waker(&waker)).is_pending());
        outbox.add_soon(&[1, 2]);
        assert_eq!((wakes.0.load(Ordering::Relaxed), frames(&outbox)), (0, Poll::Pending));
        assert!(outbox.poll_next(&mut Context::from_waker(&waker)).is_pending());
        outbox.answer(&fault("x"));
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
        assert_eq!(frames(&outbox), Poll::Ready(Ok(vec![1, 2, 6, 1, b'x'])));
        assert_eq!(frames(&outbox), Poll::Pending);
    }

    #[test]
    fn views_wait_for_company_but_not_for_ever() {
        let outbox = Outbox::default();
        outbox.add_soon(&[1]);
        outbox.send_older_than(Duration::from_secs(3_600));
        assert_eq!(frames(&outbox), Poll::Pending);
        outbox.send_older_than(Duration::ZERO);
        assert_eq!(frames(&outbox), Poll::Ready(Ok(vec![1])));
        outbox.ping();
        assert_eq!(frames(&outbox), Poll::Ready(Ok(b"ping".to_vec())));
    }

    #[test]
    fn a_full_outbox_ends_and_a_closed_one_is_emptied_first() {
        let outbox = Outbox::default();
        outbox.add_soon(&vec![0; OUTBOX_LEN_MAX + 1]);
        assert_eq!(frames(&outbox), Poll::Ready(Err(Ended::Overflow)));
        let outbox = Outbox::default();
        outbox.answer(&fault(""));
        outbox.close();
        assert_eq!(frames(&outbox), Poll::Ready(Ok(vec![6, 0])));
        assert_eq!(frames(&outbox), Poll::Ready(Err(Ended::Closed)));
    }
}
