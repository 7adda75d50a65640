//! The outgoing queue of one connection: encoded messages, bounded in bytes.
//!
//! Anyone may push; only the connection's write half takes. A push never waits: who cannot keep
//! up loses the connection (code 3008) instead of the server's memory. A reply waits for room, and
//! the reading of further commands waits with it, so that nobody loses a connection by what they
//! asked for themselves, or by how much there is to answer. After the first disconnect reason
//! nothing more is accepted, and that reason is the one the client sees.
//!
//! Who writes depends on the socket. One in the clear lies in the outbox itself, and whoever comes
//! by writes what waits (`carried`); else the write half takes what it writes.

mod carried;

use std::borrow::Cow;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use folkmoot_protocol::{DisconnectCode, Format};
use parking_lot::Mutex;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::Notify;

pub(crate) use carried::Flushed;

use crate::carrier::Carrier;
use crate::outlet::Outlet;

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

/// The same, of a WebSocket.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// Write this frame before all else.
    Answer(Bytes),
    Queued(Next),
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
    /// Of a socket in the clear.
    carried: Option<Carried>,
}

/// How a connection is named to its carrier.
#[derive(Debug)]
struct Carried {
    carrier: Arc<Carrier>,
    own: Weak<Outbox>,
}

/// Whom to wake when something has been queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wake {
    Nobody,
    WriteHalf,
    Carrier,
}

#[derive(Debug, Default)]
struct Queue {
    messages: Vec<Bytes>,
    /// A frame of WebSocket's own, which goes before the messages: a pong, or the answer to a close
    /// frame. Only one: of several pings the last may be answered alone, and nothing follows a close.
    answer: Option<Bytes>,
    /// Of what was pushed. Counted apart from replies: a long reply must not make the next event
    /// the one too many.
    pushed_bytes: usize,
    /// Of the first that was pushed, which is not counted: one that is larger than the queue would
    /// cut off everybody, however well they read.
    first_bytes: usize,
    reply_bytes: usize,
    /// Replies that wait for room.
    replies_waiting: u32,
    /// How often the write half came back for more.
    takes: u64,
    closing: Option<Close>,
    /// The socket, if it lies here.
    outlet: Option<Outlet>,
    /// Whether the carrier is on its way.
    is_named: bool,
    /// Whether the write half waits for the socket, and all that is queued is left to it.
    is_stuck: bool,
    /// Whether the last frame is under way, after which nothing goes out.
    is_ending: bool,
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
            carried: None,
        }
    }

    /// The same over a socket that lies in it.
    pub(crate) fn over(
        socket: Arc<OwnedWriteHalf>,
        format: Format,
        bytes_max: usize,
        carrier: Arc<Carrier>,
    ) -> Arc<Self> {
        let outlet = Some(Outlet::new(socket, format));
        let queue = Mutex::new(Queue { outlet, ..Queue::default() });
        Arc::new_cyclic(|own| {
            let carried = Some(Carried { carrier, own: own.clone() });
            Self { queue, carried, ..Self::new(bytes_max) }
        })
    }

    /// How much of the queue a message takes.
    pub fn cost(message: &Bytes) -> usize {
        message.len() + ENTRY_OVERHEAD_BYTES
    }

    /// How much it holds.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Queues an encoded event; drops it if the connection is closing. What waits behind the first
    /// one is bounded.
    pub fn push(&self, message: Bytes) {
        let wake = {
            let mut queue = self.queue.lock();
            if queue.closing.is_some() {
                return;
            }
            let len = Self::cost(&message);
            if queue.pushed_bytes == 0 {
                queue.first_bytes = len;
            }
            queue.pushed_bytes += len;
            if queue.pushed_bytes - queue.first_bytes > self.bytes_max {
                queue.close(DisconnectCode::Slow);
                self.ended.notify_one();
                self.taken.notify_waiters();
                Wake::WriteHalf
            } else {
                queue.messages.push(message);
                queue.whom_to_wake()
            }
        };
        match (wake, &self.carried) {
            (Wake::Carrier, Some(Carried { carrier, own })) => {
                if let Some(own) = own.upgrade() {
                    carrier.name(own);
                }
            }
            (Wake::WriteHalf, _) => self.pushed.notify_one(),
            (Wake::Nobody | Wake::Carrier, _) => {}
        }
    }

    /// Queues the encoded answer to a command once there is room; drops it if the connection is
    /// closing. One larger than the whole queue goes alone.
    ///
    /// # Cancel safety
    /// Dropping the future before it resolves drops the reply.
    pub async fn reply(&self, message: Bytes) {
        let len = Self::cost(&message);
        let mut is_waiting = false;
        loop {
            // Before looking: what is taken in between must wake this.
            let mut taken = std::pin::pin!(self.taken.notified());
            taken.as_mut().enable();
            {
                let mut queue = self.queue.lock();
                let has_room = queue.reply_bytes == 0 || queue.reply_bytes + len <= self.bytes_max;
                let is_over = has_room || queue.closing.is_some();
                queue.replies_waiting += u32::from(!is_over && !is_waiting);
                queue.replies_waiting -= u32::from(is_over && is_waiting);
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
            queue.reply_bytes += Self::cost(&message);
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

    /// Waits until the connection is to end, for whatever reason. For the read half, and while it lets
    /// the connection in for the application: one waits at a time.
    pub async fn closed(&self) {
        while !self.is_closing() {
            self.ended.notified().await;
        }
    }

    /// Waits until the connection is to end; what is queued before that is not written any more. For
    /// the write half.
    pub(crate) async fn close_reason(&self) -> Close {
        loop {
            if let Some(why) = self.ending() {
                return why;
            }
            self.pushed.notified().await;
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

    /// Has a frame of WebSocket's own go out before what is queued; it replaces one that waits.
    pub(crate) fn give(&self, answer: Bytes) {
        self.queue.lock().answer = Some(answer);
        self.pushed.notify_one();
    }

    /// The frame that goes before what is queued, if there is one.
    pub(crate) fn take_answer(&self) -> Option<Bytes> {
        self.queue.lock().answer.take()
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

    /// The same of a WebSocket, with frames of its own.
    pub(crate) async fn outgoing(&self) -> Outgoing {
        loop {
            if let Some(answer) = self.take_answer() {
                return Outgoing::Answer(answer);
            }
            if let Some(next) = self.take() {
                return Outgoing::Queued(next);
            }
            self.pushed.notified().await;
        }
    }

    fn take(&self) -> Option<Next> {
        let mut queue = self.queue.lock();
        if !queue.messages.is_empty() {
            let messages = queue.take();
            self.call_replies(&queue);
            return Some(Next::Messages(messages));
        }
        queue.closing.clone().map(Next::Close)
    }

    fn call_replies(&self, queue: &Queue) {
        if queue.replies_waiting > 0 {
            self.taken.notify_waiters();
        }
    }
}

impl Queue {
    /// A slow reader's backlog is dropped: it recovers by offset when it connects again.
    fn close(&mut self, reason: DisconnectCode) {
        self.messages = Vec::new();
        (self.pushed_bytes, self.reply_bytes) = (0, 0);
        self.closing = Some(reason.into());
    }

    /// After something was pushed.
    fn whom_to_wake(&mut self) -> Wake {
        match self.outlet {
            // Who comes next, or waits for the socket, finds it.
            Some(_) if self.is_named || self.is_stuck => Wake::Nobody,
            Some(_) => {
                self.is_named = true;
                Wake::Carrier
            }
            // The write half was told by whoever made the queue non-empty.
            None if self.messages.len() > 1 => Wake::Nobody,
            None => Wake::WriteHalf,
        }
    }

    fn take(&mut self) -> Vec<Bytes> {
        (self.pushed_bytes, self.reply_bytes) = (0, 0);
        self.takes += 1;
        std::mem::take(&mut self.messages)
    }
}

#[cfg(test)]
mod tests;
