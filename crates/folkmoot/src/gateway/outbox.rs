//! The outgoing queue of one connection: encoded messages, bounded in bytes.
//!
//! Anyone may push; only the connection's write half takes. A push never waits: who cannot keep
//! up loses the connection (code 3008) instead of the server's memory. After the first
//! disconnect reason nothing more is accepted, and that reason is the one the client sees.

use bytes::Bytes;
use folkmoot_protocol::DisconnectCode;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// What an entry costs beside its bytes, so that a flood of tiny messages is bounded too.
const ENTRY_OVERHEAD_BYTES: usize = 32;

/// What the write half does next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Write these, in this order.
    Messages(Vec<Bytes>),
    /// Write the close frame with this code and stop.
    Close(DisconnectCode),
}

#[derive(Debug)]
pub(crate) struct Outbox {
    bytes_max: usize,
    queue: Mutex<Queue>,
    /// For the write half, the only one to wait for it.
    pushed: Notify,
    /// For the read half.
    ended: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    messages: Vec<Bytes>,
    bytes: usize,
    closing: Option<DisconnectCode>,
}

impl Outbox {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            queue: Mutex::new(Queue::default()),
            pushed: Notify::new(),
            ended: Notify::new(),
        }
    }

    /// Queues an encoded message; drops it if the connection is closing.
    pub(crate) fn push(&self, message: Bytes) {
        {
            let mut queue = self.queue.lock();
            if queue.closing.is_some() {
                return;
            }
            queue.bytes += message.len() + ENTRY_OVERHEAD_BYTES;
            if queue.bytes > self.bytes_max {
                queue.close(DisconnectCode::Slow);
                self.ended.notify_one();
            } else {
                queue.messages.push(message);
                // The write half was told by whoever made the queue non-empty.
                if queue.messages.len() > 1 {
                    return;
                }
            }
        }
        self.pushed.notify_one();
    }

    /// Ends the connection after what is queued already; the first reason given wins.
    pub(crate) fn close(&self, reason: DisconnectCode) {
        {
            let mut queue = self.queue.lock();
            if queue.closing.is_some() {
                return;
            }
            queue.closing = Some(reason);
        }
        self.ended.notify_one();
        self.pushed.notify_one();
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.queue.lock().closing.is_some()
    }

    /// Waits until the connection is to end, for whatever reason. For the read half.
    pub(crate) async fn closed(&self) {
        while !self.is_closing() {
            self.ended.notified().await;
        }
    }

    /// Waits until messages were dropped because the client is slow. For the write half, while it
    /// is stuck.
    pub(crate) async fn overflowed(&self) -> DisconnectCode {
        loop {
            if self.queue.lock().closing == Some(DisconnectCode::Slow) {
                return DisconnectCode::Slow;
            }
            self.pushed.notified().await;
        }
    }

    /// Waits for something to write. Cancel safe: what is not returned stays queued.
    pub(crate) async fn next(&self) -> Next {
        loop {
            if let Some(next) = self.take() {
                return next;
            }
            self.pushed.notified().await;
        }
    }

    fn take(&self) -> Option<Next> {
        let mut queue = self.queue.lock();
        if !queue.messages.is_empty() {
            queue.bytes = 0;
            return Some(Next::Messages(std::mem::take(&mut queue.messages)));
        }
        queue.closing.map(Next::Close)
    }
}

impl Queue {
    /// A slow reader's backlog is dropped: it recovers by offset when it connects again.
    fn close(&mut self, reason: DisconnectCode) {
        self.messages = Vec::new();
        self.bytes = 0;
        self.closing = Some(reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_come_out_in_order_and_all_at_once() {
        let outbox = Outbox::new(1024);
        outbox.push(Bytes::from_static(b"a"));
        outbox.push(Bytes::from_static(b"b"));
        let both = vec![Bytes::from_static(b"a"), Bytes::from_static(b"b")];
        assert_eq!(outbox.next().await, Next::Messages(both));
    }

    #[tokio::test]
    async fn a_full_queue_closes_as_slow_and_holds_nothing() {
        let outbox = Outbox::new(100);
        for _ in 0..10 {
            outbox.push(Bytes::from_static(&[0; 30]));
        }
        assert_eq!(outbox.next().await, Next::Close(DisconnectCode::Slow));
        assert_eq!(outbox.queue.lock().messages.capacity(), 0);
    }

    #[tokio::test]
    async fn what_was_queued_before_a_close_is_still_written() {
        let outbox = Outbox::new(1024);
        outbox.push(Bytes::from_static(b"last words"));
        outbox.close(DisconnectCode::Shutdown);
        outbox.close(DisconnectCode::Slow);
        outbox.push(Bytes::from_static(b"too late"));
        assert_eq!(outbox.next().await, Next::Messages(vec![Bytes::from_static(b"last words")]));
        assert_eq!(outbox.next().await, Next::Close(DisconnectCode::Shutdown));
    }

    #[tokio::test]
    async fn a_waiting_write_half_is_woken() {
        let outbox = std::sync::Arc::new(Outbox::new(1024));
        let writer = tokio::spawn({
            let outbox = outbox.clone();
            async move { outbox.next().await }
        });
        tokio::task::yield_now().await;
        outbox.push(Bytes::from_static(b"x"));
        assert_eq!(writer.await.unwrap(), Next::Messages(vec![Bytes::from_static(b"x")]));
    }
}
