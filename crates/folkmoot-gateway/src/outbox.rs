//! The outgoing queue of one connection: encoded messages, bounded in bytes.
//!
//! Anyone may push; only the connection's write half takes. A push never waits: who cannot keep
//! up loses the connection (code 3008) instead of the server's memory. A reply waits for room, and
//! the reading of further commands waits with it, so that nobody loses a connection by what they
//! asked for themselves, or by how much there is to answer. After the first disconnect reason
//! nothing more is accepted, and that reason is the one the client sees.

use std::borrow::Cow;

use bytes::Bytes;
use folkmoot_protocol::DisconnectCode;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// What an entry costs beside its bytes, so that a flood of tiny messages is bounded too.
const ENTRY_OVERHEAD_BYTES: usize = 32;

/// What the write half does next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Write these, in this order.
    Messages(Vec<Bytes>),
    /// Write the close frame with this code and stop.
    Close(Close),
}

/// Why a connection is ended, as its client hears it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Close {
    /// Below 5000; SDKs do not come back after one from 3500 to 3999 or from 4500 on.
    pub code: u16,
    /// At most [`Self::REASON_BYTES_MAX`] bytes.
    pub reason: Cow<'static, str>,
}

impl Close {
    /// What WebSocket's close frame carries beside its code.
    pub const REASON_BYTES_MAX: usize = 123;
}

impl From<DisconnectCode> for Close {
    fn from(code: DisconnectCode) -> Self {
        let number = u16::try_from(code.code()).expect("close codes are below 5000");
        Self { code: number, reason: Cow::Borrowed(code.text()) }
    }
}

/// What waits to be written to one connection.
#[derive(Debug)]
pub struct Outbox {
    bytes_max: usize,
    queue: Mutex<Queue>,
    /// For the write half, the only one to wait for it.
    pushed: Notify,
    /// For the read half.
    ended: Notify,
    /// For replies that wait for room.
    taken: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    messages: Vec<Bytes>,
    /// Of what was pushed. Counted apart from replies: a long reply must not make the next event
    /// the one too many.
    pushed_bytes: usize,
    /// Of the first that was pushed, which is not counted: one that is larger than the queue would
    /// cut off everybody, however well they read.
    first_bytes: usize,
    reply_bytes: usize,
    /// Replies that wait for room.
    replies_waiting: usize,
    /// How often the write half came back for more.
    takes: u64,
    closing: Option<Close>,
}

impl Outbox {
    /// An empty queue for `bytes_max` of events, and as much of replies.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            queue: Mutex::new(Queue::default()),
            pushed: Notify::new(),
            ended: Notify::new(),
            taken: Notify::new(),
        }
    }

    /// Queues an encoded event; drops it if the connection is closing. What waits behind the first
    /// one is bounded.
    pub fn push(&self, message: Bytes) {
        {
            let mut queue = self.queue.lock();
            if queue.closing.is_some() {
                return;
            }
            let len = message.len() + ENTRY_OVERHEAD_BYTES;
            if queue.pushed_bytes == 0 {
                queue.first_bytes = len;
            }
            queue.pushed_bytes += len;
            if queue.pushed_bytes - queue.first_bytes > self.bytes_max {
                queue.close(DisconnectCode::Slow);
                self.ended.notify_one();
                self.taken.notify_waiters();
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

    /// Queues the encoded answer to a command once there is room; drops it if the connection is
    /// closing. One larger than the whole queue goes alone.
    ///
    /// # Cancel safety
    /// Dropping the future before it resolves drops the reply.
    pub async fn reply(&self, message: Bytes) {
        let len = message.len() + ENTRY_OVERHEAD_BYTES;
        let mut is_waiting = false;
        loop {
            // Before looking: what is taken in between must wake this.
            let mut taken = std::pin::pin!(self.taken.notified());
            taken.as_mut().enable();
            {
                let mut queue = self.queue.lock();
                let has_room = queue.reply_bytes == 0 || queue.reply_bytes + len <= self.bytes_max;
                let is_over = has_room || queue.closing.is_some();
                queue.replies_waiting += usize::from(!is_over && !is_waiting);
                queue.replies_waiting -= usize::from(is_over && is_waiting);
                is_waiting = !is_over;
                if queue.closing.is_some() {
                    return;
                }
                if has_room {
                    queue.reply_bytes += len;
                    queue.messages.push(message);
                    break;
                }
            }
            taken.await;
        }
        self.pushed.notify_one();
    }

    /// Queues the encoded answer to a command at once, for who cannot wait; drops it if the
    /// connection is closing. Further commands are not read until it is written, if it leaves no
    /// room.
    pub fn reply_now(&self, message: Bytes) {
        {
            let mut queue = self.queue.lock();
            if queue.closing.is_some() {
                return;
            }
            queue.reply_bytes += message.len() + ENTRY_OVERHEAD_BYTES;
            queue.messages.push(message);
        }
        self.pushed.notify_one();
    }

    /// Whether replies have used up their room, so that nothing more should be asked.
    pub fn is_congested(&self) -> bool {
        let queue = self.queue.lock();
        let is_overdrawn = queue.closing.is_none() && queue.reply_bytes > self.bytes_max;
        queue.replies_waiting > 0 || is_overdrawn
    }

    /// How often the write half has taken what waited: rises as long as the client reads.
    pub(crate) fn takes(&self) -> u64 {
        self.queue.lock().takes
    }

    /// Ends the connection after what is queued already; the first reason given wins.
    pub fn close(&self, reason: impl Into<Close>) {
        {
            let mut queue = self.queue.lock();
            if queue.closing.is_some() {
                return;
            }
            queue.closing = Some(reason.into());
        }
        self.ended.notify_one();
        self.taken.notify_waiters();
        self.pushed.notify_one();
    }

    /// Why the connection is to end, if it is.
    pub(crate) fn ending(&self) -> Option<Close> {
        self.queue.lock().closing.clone()
    }

    /// Whether the connection is to end.
    pub fn is_closing(&self) -> bool {
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
    pub(crate) async fn overflowed(&self) -> Close {
        let slow = Close::from(DisconnectCode::Slow);
        loop {
            if self.queue.lock().closing.as_ref() == Some(&slow) {
                return slow;
            }
            self.pushed.notified().await;
        }
    }

    /// Waits for something to write. Cancel safe: what is not returned stays queued.
    pub async fn next(&self) -> Next {
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
            (queue.pushed_bytes, queue.reply_bytes) = (0, 0);
            queue.takes += 1;
            self.taken.notify_waiters();
            return Some(Next::Messages(std::mem::take(&mut queue.messages)));
        }
        queue.closing.clone().map(Next::Close)
    }
}

impl Queue {
    /// A slow reader's backlog is dropped: it recovers by offset when it connects again.
    fn close(&mut self, reason: DisconnectCode) {
        self.messages = Vec::new();
        (self.pushed_bytes, self.reply_bytes) = (0, 0);
        self.closing = Some(reason.into());
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
        assert_eq!(outbox.next().await, Next::Close(DisconnectCode::Slow.into()));
        assert_eq!(outbox.queue.lock().messages.capacity(), 0);
    }

    #[tokio::test]
    async fn an_event_larger_than_the_queue_reaches_who_reads() {
        let outbox = Outbox::new(100);
        let (large, small) = (Bytes::from_static(&[0; 1_000]), Bytes::from_static(b"behind it"));
        for _ in 0..3 {
            outbox.push(large.clone());
            outbox.push(small.clone());
            assert_eq!(outbox.next().await, Next::Messages(vec![large.clone(), small.clone()]));
        }
        outbox.push(small);
        outbox.push(large);
        assert_eq!(outbox.next().await, Next::Close(DisconnectCode::Slow.into()));
    }

    #[tokio::test]
    async fn what_was_queued_before_a_close_is_still_written() {
        let outbox = Outbox::new(1024);
        outbox.push(Bytes::from_static(b"last words"));
        outbox.close(DisconnectCode::Shutdown);
        outbox.close(DisconnectCode::Slow);
        outbox.push(Bytes::from_static(b"too late"));
        assert_eq!(outbox.next().await, Next::Messages(vec![Bytes::from_static(b"last words")]));
        assert_eq!(outbox.next().await, Next::Close(DisconnectCode::Shutdown.into()));
    }

    #[tokio::test]
    async fn replies_wait_for_room_instead_of_ending_the_connection() {
        let outbox = std::sync::Arc::new(Outbox::new(100));
        let answering = tokio::spawn({
            let outbox = outbox.clone();
            async move {
                for _ in 0..3 {
                    outbox.reply(Bytes::from_static(&[0; 90])).await;
                }
            }
        });
        for _ in 0..3 {
            let Next::Messages(taken) = outbox.next().await else { panic!("closed") };
            assert_eq!(taken.len(), 1);
            tokio::task::yield_now().await;
        }
        answering.await.unwrap();
        assert!(!outbox.is_congested());
        assert_eq!(outbox.takes(), 3);
    }

    #[tokio::test]
    async fn a_reply_larger_than_the_queue_goes_alone_and_leaves_room_for_events() {
        let outbox = Outbox::new(100);
        outbox.reply(Bytes::from_static(&[0; 1000])).await;
        outbox.push(Bytes::from_static(b"event"));
        let mut second = Box::pin(outbox.reply(Bytes::from_static(b"reply")));
        assert!(futures_util::FutureExt::now_or_never(second.as_mut()).is_none());
        assert!(outbox.is_congested());
        assert!(matches!(outbox.next().await, Next::Messages(taken) if taken.len() == 2));
        second.await;
        assert!(matches!(outbox.next().await, Next::Messages(taken) if taken.len() == 1));
    }

    #[tokio::test]
    async fn a_reply_that_waits_gives_up_when_the_connection_closes() {
        let outbox = Outbox::new(100);
        outbox.reply(Bytes::from_static(&[0; 90])).await;
        let mut second = Box::pin(outbox.reply(Bytes::from_static(&[0; 90])));
        assert!(futures_util::FutureExt::now_or_never(second.as_mut()).is_none());
        outbox.close(DisconnectCode::Shutdown);
        second.await;
        assert!(!outbox.is_congested());
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
