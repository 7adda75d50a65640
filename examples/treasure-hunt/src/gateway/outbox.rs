//! What waits for one client: bytes of frames, gathered until the socket can take them.
//!
//! Answers are sent at once, views wait a little for company. A client that does not read is let go when its outbox is full: its
//! players stay, and it may come back.

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::limits::{OUTBOX_LEN_MAX, OUTBOX_LINGER};
use crate::wire::Notice;

/// An outbox; many fill it, one empties it.
#[derive(Debug, Default)]
pub struct Outbox {
    waiting: Mutex<Waiting>,
    /// Something is there.
    filled: Notify,
    /// Something is there that does not wait.
    urgent: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    has_urgent: bool,
    is_over: bool,
    is_closed: bool,
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
        self.add(true, |bytes| notice.write(bytes));
    }

    /// Adds frames that may wait a little.
    pub fn add_soon(&self, frames: &[u8]) {
        self.add(false, |bytes| bytes.extend_from_slice(frames));
    }

    fn add(&self, is_urgent: bool, write: impl FnOnce(&mut Vec<u8>)) {
        let mut waiting = self.waiting.lock();
        if waiting.is_over {
            return;
        }
        let was_empty = waiting.bytes.is_empty();
        write(&mut waiting.bytes);
        waiting.is_over = waiting.bytes.len() > OUTBOX_LEN_MAX;
        let is_first_urgent = is_urgent && !waiting.has_urgent;
        waiting.has_urgent |= is_urgent;
        drop(waiting);
        if was_empty {
            self.filled.notify_one();
        }
        if is_first_urgent {
            self.urgent.notify_one();
        }
    }

    /// Says that nothing will come any more; what waits is still sent.
    pub fn close(&self) {
        self.waiting.lock().is_closed = true;
        self.filled.notify_one();
        self.urgent.notify_one();
    }

    /// The next message.
    ///
    /// # Errors
    /// `Ended`.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    pub async fn next(&self) -> Result<Bytes, Ended> {
        loop {
            if let Some(next) = self.take_if(|waiting| waiting.has_urgent) {
                return next;
            }
            if self.waiting.lock().bytes.is_empty() {
                self.filled.notified().await;
                continue;
            }
            let lingered = timeout(OUTBOX_LINGER, self.urgent.notified()).await;
            if let Some(next) = self.take_if(|_| lingered.is_err()) {
                return next;
            }
        }
    }

    fn take_if(&self, now: impl FnOnce(&Waiting) -> bool) -> Option<Result<Bytes, Ended>> {
        let mut waiting = self.waiting.lock();
        if waiting.is_over {
            return Some(Err(Ended::Overflow));
        }
        if waiting.bytes.is_empty() {
            return waiting.is_closed.then_some(Err(Ended::Closed));
        }
        if !now(&waiting) && !waiting.is_closed {
            return None;
        }
        waiting.has_urgent = false;
        Some(Ok(std::mem::take(&mut waiting.bytes).into()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use tokio::time::Instant;

    fn fault(text: &str) -> Notice {
        Notice::Fault(text.into())
    }

    #[tokio::test(start_paused = true)]
    async fn answers_go_at_once_and_take_waiting_views_along() {
        let (outbox, start) = (Outbox::default(), Instant::now());
        outbox.add_soon(&[1, 2]);
        outbox.answer(&fault("x"));
        assert_eq!(outbox.next().await.unwrap().len(), 5);
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn views_wait_for_company_but_not_for_ever() {
        let (outbox, start) = (Outbox::default(), Instant::now());
        outbox.add_soon(&[1]);
        assert_eq!(outbox.next().await.unwrap(), [1].as_slice());
        assert_eq!(start.elapsed(), OUTBOX_LINGER);
        outbox.add_soon(&[2]);
        let late = async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            outbox.answer(&fault(""));
        };
        let (next, ()) = tokio::join!(outbox.next(), late);
        assert_eq!(next.unwrap(), [2, 6, 0].as_slice());
        assert!(start.elapsed() < 2 * OUTBOX_LINGER);
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_outbox_ends_and_a_closed_one_is_emptied_first() {
        let outbox = Outbox::default();
        outbox.add_soon(&vec![0; OUTBOX_LEN_MAX + 1]);
        assert_eq!(outbox.next().await, Err(Ended::Overflow));
        let outbox = Outbox::default();
        outbox.answer(&fault(""));
        outbox.close();
        assert_eq!(outbox.next().await.unwrap(), [6, 0].as_slice());
        assert_eq!(outbox.next().await, Err(Ended::Closed));
    }
}
