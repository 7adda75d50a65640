//! The way from one node to another: numbers, acknowledgements, and what is sent again.
//!
//! Each node dials every other one for what it sends itself, so two connections join two nodes and
//! no dial has to yield to another. What was sent is kept until the other side has it; a
//! connection that breaks is dialled again and goes on behind the last item that arrived. So each
//! item arrives exactly once and in order as long as both nodes live.
//!
//! Items are encoded one behind the other, and written in parts: all that has come since the last
//! one. A part is kept as a whole until the last of its items has arrived, and may be written a
//! second time for the sake of that one; the other side knows the rest by their numbers.

pub(crate) mod accept;
pub(crate) mod bundle;
pub(crate) mod dial;
mod hearing;
mod inbox;

use std::collections::VecDeque;
use std::sync::Arc;

use self::bundle::Open;

/// Items for one node that nobody has taken yet from which on senders wait.
pub(crate) const UNTAKEN_MAX: u64 = 4_096;

/// Bytes that the other node has not got from which on senders wait: what a node hangs for must not
/// fill the memory of all others. On a line that brings a gigabyte a second they last for 60 ms.
const KEPT_LEN_MAX: usize = 64 << 20;

/// Bytes of all buffers that are kept for later parts: one large message must not hold its memory
/// for ever.
const SPARE_LEN_MAX: usize = 256 << 10;

/// The sending side, without its socket.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    /// Number of the last item.
    last: u64,
    /// Parts that the other side may not have, each with the number of its last item.
    kept: VecDeque<(u64, Arc<Vec<u8>>)>,
    /// Their bytes.
    kept_len: usize,
    /// The frames behind them, of which no part was made yet.
    fresh: Vec<u8>,
    /// The bundle at the end of them, if more tells may go into it.
    open: Option<Open>,
    /// Buffers that are empty again, and their bytes.
    spares: Vec<Vec<u8>>,
    spare_len: usize,
    /// How many of `kept` were written to the present connection, and how many bytes of the next.
    written: usize,
    offset: usize,
    connection: u64,
    taken: u64,
}

/// What is to be written next.
pub(crate) struct Part {
    connection: u64,
    bytes: Arc<Vec<u8>>,
    offset: usize,
}

impl Part {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.offset..]
    }
}

impl Outgoing {
    /// Queues the next item; `encode` gets its number and appends its frame.
    ///
    /// # Errors
    /// The length of the frame, if that is more than `len_max`.
    pub(crate) fn push(
        &mut self,
        len_max: usize,
        encode: impl FnOnce(u64, &mut Vec<u8>),
    ) -> Result<(), usize> {
        self.end_bundle();
        let start = self.fresh.len();
        encode(self.last + 1, &mut self.fresh);
        let len = self.fresh.len() - start;
        if len > len_max {
            self.fresh.truncate(start);
            return Err(len);
        }
        self.last += 1;
        Ok(())
    }

    /// Queues a tell as the next item, in a bundle of tells of that view.
    #[inline]
    pub(crate) fn push_tell(&mut self, view: u64, route: u32, body: &[u8]) {
        if !self.open.is_some_and(|open| open.takes(view, &self.fresh)) {
            self.end_bundle();
            self.open = Some(Open::begin(self.last + 1, view, &mut self.fresh));
        }
        bundle::put_tell(route, body, &mut self.fresh);
        self.last += 1;
    }

    fn end_bundle(&mut self) {
        if let Some(open) = self.open.take() {
            open.end(&mut self.fresh);
        }
    }

    /// A new connection, on which the other side has said what it has.
    ///
    /// # Errors
    /// It says it has what was never sent.
    pub(crate) fn resume(&mut self, received: u64) -> Result<(), u64> {
        // What was written to the connection before may have arrived.
        self.written = self.kept.len();
        self.acknowledge(received, self.taken)?;
        (self.written, self.offset) = (0, 0);
        self.connection += 1;
        Ok(())
    }

    /// The other side has everything up to `received`.
    ///
    /// # Errors
    /// It says it has what was never sent.
    pub(crate) fn acknowledge(&mut self, received: u64, taken: u64) -> Result<(), u64> {
        if received > self.last || taken > self.last {
            return Err(received.max(taken));
        }
        self.taken = self.taken.max(taken);
        // One that is being written goes on to its end, whatever the other side says.
        while self.written > 0 && self.kept.front().is_some_and(|(last, _)| *last <= received) {
            self.written -= 1;
            let part = self.kept.pop_front();
            self.kept_len -= part.as_ref().map_or(0, |(_, bytes)| bytes.len());
            let part = part.and_then(|(_, bytes)| Arc::into_inner(bytes));
            let room = SPARE_LEN_MAX - self.spare_len;
            if let Some(mut bytes) = part.filter(|bytes| bytes.capacity() <= room) {
                bytes.clear();
                self.spare_len += bytes.capacity();
                self.spares.push(bytes);
            }
        }
        Ok(())
    }

    /// The next part to write; `wrote` says how far that went.
    pub(crate) fn part(&mut self) -> Option<Part> {
        if self.written == self.kept.len() {
            if self.fresh.is_empty() {
                return None;
            }
            self.end_bundle();
            let spare = self.spares.pop().unwrap_or_default();
            self.spare_len -= spare.capacity();
            let bytes = std::mem::replace(&mut self.fresh, spare);
            self.kept_len += bytes.len();
            self.kept.push_back((self.last, Arc::new(bytes)));
        }
        let (_, bytes) = self.kept.get(self.written)?;
        Some(Part { connection: self.connection, bytes: bytes.clone(), offset: self.offset })
    }

    /// So many more bytes of the part were written; to a connection that was replaced, none.
    pub(crate) fn wrote(&mut self, part: &Part, count: usize) {
        if part.connection != self.connection {
            return;
        }
        self.offset += count;
        if self.offset == part.bytes.len() {
            self.offset = 0;
            self.written += 1;
        }
    }

    /// Whether something is to be written.
    pub(crate) fn has_more(&self) -> bool {
        self.written < self.kept.len() || !self.fresh.is_empty()
    }

    /// Whether a part was written up to somewhere in its middle.
    pub(crate) fn is_amid(&self) -> bool {
        self.offset > 0
    }

    /// Whether senders should wait.
    pub(crate) fn is_crowded(&self) -> bool {
        self.last - self.taken >= UNTAKEN_MAX || self.is_full()
    }

    /// Whether so much is kept that nothing more should come.
    fn is_full(&self) -> bool {
        self.kept_len + self.fresh.len() >= KEPT_LEN_MAX
    }

    /// Items that nobody has to wait with.
    pub(crate) fn room(&self) -> u64 {
        if self.is_full() { 0 } else { UNTAKEN_MAX.saturating_sub(self.last - self.taken) }
    }

    /// Whether the other side has everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.fresh.is_empty()
    }
}

/// The receiving side of one life of another node.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    received: u64,
    /// Rises with each connection; only the latest one counts.
    connection: u64,
}

/// What to do with an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It is the next one.
    Next,
    /// It has come before.
    Again,
    /// Something before it is missing, or its connection was replaced: end the connection.
    Wrong,
}

impl Incoming {
    /// A new connection; returns its number.
    pub(crate) fn connect(&mut self) -> u64 {
        self.connection += 1;
        self.connection
    }

    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    pub(crate) fn arrive(&mut self, connection: u64, number: u64) -> Arrival {
        if connection != self.connection || number > self.received + 1 {
            return Arrival::Wrong;
        }
        if number <= self.received {
            return Arrival::Again;
        }
        self.received = number;
        Arrival::Next
    }

    /// As `arrive`, of `count` items from `first` on: how many of them have come before, the others
    /// come now; `None` if the connection has to end.
    pub(crate) fn arrive_all(&mut self, connection: u64, first: u64, count: u64) -> Option<u64> {
        let last = first.checked_add(count)?.checked_sub(1)?;
        if connection != self.connection || first > self.received + 1 {
            return None;
        }
        let again = (self.received + 1 - first).min(count);
        self.received = self.received.max(last);
        Some(again)
    }
}

#[cfg(test)]
mod tests {
    use super::bundle::{self, Tells};
    use super::inbox::Inbox;
    use super::{Arrival, Incoming, Outgoing};

    fn push(out: &mut Outgoing) {
        let encode = |number: u64, bytes: &mut Vec<u8>| {
            bytes.extend([0, 0, 0, 8]);
            bytes.extend(number.to_be_bytes());
        };
        out.push(12, encode).expect("it is short enough");
    }

    #[test]
    fn each_item_arrives_once_and_in_order_over_connections_that_break_anywhere() {
        for cut in 0..60 {
            let (mut out, mut into, mut arrived) =
                (Outgoing::default(), Incoming::default(), vec![]);
            let mut connection = into.connect();
            let (mut wire, mut written) = (std::collections::VecDeque::new(), 0);
            for n in 1..=20_u64 {
                push(&mut out);
                // Two in one part, now and then.
                if n % 5 == cut % 5 && n < 20 {
                    continue;
                }
                while let Some(part) = out.part() {
                    // In pieces of half a frame.
                    wire.push_back(part.bytes()[..6].to_vec());
                    out.wrote(&part, 6);
                    written += 1;
                    // Some frames are on the way when the connection breaks.
                    if written % 3 == cut % 3 && wire.len() > 1 {
                        let bytes: Vec<u8> = wire.drain(..2).flatten().collect();
                        arrive(&mut into, connection, &bytes[4..], &mut arrived);
                    }
                    if written == cut {
                        wire.clear();
                        connection = into.connect();
                        out.resume(into.received()).expect("it was sent");
                    }
                }
                if n % 4 == cut % 4 {
                    out.acknowledge(into.received(), 0).expect("it was sent");
                }
            }
            let rest: Vec<u8> = wire.drain(..).flatten().collect();
            rest.chunks(12)
                .for_each(|frame| arrive(&mut into, connection, &frame[4..], &mut arrived));
            assert_eq!(arrived, (1..=20).collect::<Vec<_>>(), "cut after {cut}");
            out.acknowledge(20, 20).expect("it was sent");
            assert!(out.is_empty());
        }
    }

    #[test]
    fn tells_in_bundles_arrive_once_and_in_order_over_connections_that_break_anywhere() {
        for cut in 0..200_usize {
            let (mut out, mut into, mut arrived) =
                (Outgoing::default(), Incoming::default(), Vec::new());
            let mut connection = into.connect();
            let (mut inbox, mut written) = (Inbox::new(1 << 20), 0);
            for n in 1..=40_u8 {
                match n % 7 {
                    0 => push(&mut out),
                    _ => out.push_tell(u64::from(n / 16), 3, &[n]),
                }
                if usize::from(n) % 6 != cut % 6 && n < 40 {
                    continue;
                }
                while let Some(part) = out.part() {
                    let piece = &part.bytes()[..part.bytes().len().min(9)];
                    inbox.room().extend(piece);
                    out.wrote(&part, piece.len());
                    written += piece.len();
                    hear(&mut into, connection, &mut inbox, &mut arrived);
                    if written / 9 == cut && connection == 1 {
                        inbox = Inbox::new(1 << 20);
                        connection = into.connect();
                        out.resume(into.received()).expect("it was sent");
                    }
                }
            }
            assert_eq!(arrived, (1..=40).collect::<Vec<u64>>(), "cut after {cut}");
            out.acknowledge(40, 40).expect("it was sent");
            assert!(out.is_empty());
        }
    }

    /// Takes frames: bundles, and the numbers of `push` with a length before them.
    fn hear(into: &mut Incoming, connection: u64, inbox: &mut Inbox, arrived: &mut Vec<u64>) {
        while let Some(frame) = inbox.frame().expect("none is too long") {
            let Some(bundle) = bundle::read(frame).expect("it can be read") else {
                arrive(into, connection, frame, arrived);
                continue;
            };
            let bodies: Vec<_> = Tells::new(&frame[bundle.tells]).collect();
            let count = bodies.len() as u64;
            let again = into.arrive_all(connection, bundle.first, count).expect("without gaps");
            let fresh = bodies.into_iter().skip(usize::try_from(again).expect("it is few"));
            arrived.extend(fresh.map(|body| u64::from(body[0])));
            assert_eq!(arrived.len() as u64, into.received());
        }
    }

    fn arrive(into: &mut Incoming, connection: u64, bytes: &[u8], arrived: &mut Vec<u64>) {
        let number = u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
        match into.arrive(connection, number) {
            Arrival::Next => arrived.push(number),
            Arrival::Again => {}
            Arrival::Wrong => panic!("{number} leaves a gap"),
        }
    }

    #[test]
    fn a_connection_that_was_replaced_and_a_gap_are_refused() {
        let mut into = Incoming::default();
        let first = into.connect();
        assert_eq!(into.arrive(first, 1), Arrival::Next);
        assert_eq!(into.arrive(first, 3), Arrival::Wrong, "the second is missing");
        let second = into.connect();
        assert_eq!(into.arrive(first, 2), Arrival::Wrong, "it was replaced");
        assert_eq!(into.arrive(second, 1), Arrival::Again);
        assert_eq!(into.arrive(second, 2), Arrival::Next);
    }

    #[test]
    fn an_acknowledgement_of_what_was_never_sent_is_refused() {
        let mut out = Outgoing::default();
        push(&mut out);
        assert_eq!(out.acknowledge(2, 0), Err(2));
        assert_eq!(out.resume(9), Err(9));
        assert_eq!(out.acknowledge(1, 1), Ok(()));
    }
}
