//! An outbox in which its socket lies: whoever comes by writes what waits, the connection's carrier
//! or its own write half. All of them do so under the lock of the queue, so that frames leave in the
//! order of the queue and one at a time.

use std::io;

use bytes::Bytes;
use folkmoot_protocol::DisconnectCode;

use super::{Close, Outbox, Queue};
use crate::outlet::{Outlet, Taken};

/// What has come of writing what waits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// All is written.
    All,
    /// The socket is full: the rest is the write half's.
    Part,
    /// All is written, and the connection is to end.
    Closing(Close),
}

impl Outbox {
    /// Writes what is queued, if it is short and nobody waits for the socket; all else is left to
    /// the write half. For the carrier.
    pub(crate) fn carry(&self, room: &mut Vec<u8>) {
        let mut queue = self.queue.lock();
        queue.is_named = false;
        if queue.is_stuck || queue.is_ending || queue.messages.is_empty() {
            return;
        }
        let is_short = Outlet::are_short(&queue.messages);
        let is_written = is_short && matches!(queue.flush(room), Ok(Taken::All));
        self.call_replies(&queue);
        if !is_written {
            // An error is met again by the write half, which ends the connection.
            queue.is_stuck = true;
            drop(queue);
            self.pushed.notify_one();
        }
    }

    /// Writes what is queued. For the write half.
    pub(crate) fn flush(&self) -> io::Result<Flushed> {
        let mut queue = self.queue.lock();
        let taken = queue.flush(&mut Vec::new())?;
        self.call_replies(&queue);
        queue.is_stuck = taken == Taken::Part;
        Ok(match (taken, &queue.closing) {
            (Taken::Part, _) => Flushed::Part,
            (Taken::All, Some(why)) if !queue.is_ending => Flushed::Closing(why.clone()),
            (Taken::All, _) => Flushed::All,
        })
    }

    /// Puts a frame of WebSocket's own in front of what is queued.
    pub(crate) fn interpose(&self, frame: Bytes) {
        if let Some(outlet) = &mut self.queue.lock().outlet {
            outlet.add(frame);
        }
    }

    /// Has only what is left of the frame under way go out, and then this last one.
    pub(crate) fn end_with(&self, frame: Bytes) {
        let mut queue = self.queue.lock();
        queue.is_ending = true;
        if let Some(outlet) = &mut queue.outlet {
            outlet.add(frame);
        }
    }

    /// Waits until something goes before what is queued: the reason for the end, if messages were
    /// dropped because the client is slow, or an answer. For the write half, while it is stuck.
    pub(crate) async fn overtaken(&self) -> Option<Close> {
        let slow = Close::from(DisconnectCode::Slow);
        loop {
            {
                let queue = self.queue.lock();
                if queue.closing.as_ref() == Some(&slow) {
                    return Some(slow);
                }
                if queue.answer.is_some() {
                    return None;
                }
            }
            self.pushed.notified().await;
        }
    }

    /// Waits until something was queued for the write half, or the connection is to end.
    pub(crate) async fn called(&self) {
        self.pushed.notified().await;
    }

    /// Whether the socket was full at the last look.
    #[cfg(test)]
    pub(crate) fn is_stuck(&self) -> bool {
        self.queue.lock().is_stuck
    }

    /// Lets go of the socket: others may keep the outbox for longer.
    pub(crate) fn hang_up(&self) {
        let mut queue = self.queue.lock();
        queue.messages = Vec::new();
        let outlet = queue.outlet.take();
        drop(queue);
        drop(outlet);
    }
}

impl Queue {
    /// Writes as much as the socket takes.
    fn flush(&mut self, room: &mut Vec<u8>) -> io::Result<Taken> {
        let Some(outlet) = &mut self.outlet else { return Ok(Taken::All) };
        let before = outlet.len();
        let taken = outlet.finish()?;
        self.takes += u64::from(outlet.len() < before);
        if taken == Taken::Part || self.is_ending || self.messages.is_empty() {
            return Ok(taken);
        }
        let messages = self.take();
        match &mut self.outlet {
            Some(outlet) => outlet.write(messages, room),
            None => Ok(Taken::All),
        }
    }
}
