//! The way from one node to another: numbers, acknowledgements, and what is sent again.
//!
//! Each node dials every other one for what it sends itself, so two connections join two nodes and
//! no dial has to yield to another. What was sent is kept until the other side has it; a
//! connection that breaks is dialled again and goes on behind the last item that arrived. So each
//! item arrives exactly once and in order as long as both nodes live.

pub(crate) mod accept;
pub(crate) mod dial;

use std::collections::VecDeque;
use std::sync::Arc;

/// Items for one node that nobody has taken yet from which on senders wait.
pub(crate) const UNTAKEN_MAX: u64 = 4_096;

/// The sending side, without its socket.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    /// Number of the last item.
    last: u64,
    /// Frames that the other side may not have, each with its number.
    kept: VecDeque<(u64, Arc<[u8]>)>,
    /// The first item that was not written to the present connection.
    next: u64,
    taken: u64,
}

impl Outgoing {
    /// The number of the next item; its frame follows by `push`.
    pub(crate) fn number(&self) -> u64 {
        self.last + 1
    }

    pub(crate) fn push(&mut self, frame: Arc<[u8]>) {
        self.last += 1;
        self.kept.push_back((self.last, frame));
    }

    /// A new connection, on which the other side has said what it has.
    ///
    /// # Errors
    /// It says it has what was never sent.
    pub(crate) fn resume(&mut self, received: u64) -> Result<(), u64> {
        self.acknowledge(received, self.taken)?;
        self.next = received + 1;
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
        while self.kept.front().is_some_and(|(number, _)| *number <= received) {
            self.kept.pop_front();
        }
        Ok(())
    }

    /// The next frame to write.
    pub(crate) fn take(&mut self) -> Option<Arc<[u8]>> {
        let first = self.kept.front()?.0;
        let at = usize::try_from(self.next.max(first) - first).ok()?;
        let (number, frame) = self.kept.get(at)?;
        self.next = number + 1;
        Some(frame.clone())
    }

    /// Whether senders should wait.
    pub(crate) fn is_crowded(&self) -> bool {
        self.last - self.taken >= UNTAKEN_MAX
    }

    /// Whether the other side has everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
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
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Arrival, Incoming, Outgoing};

    fn frame(number: u64) -> Arc<[u8]> {
        Arc::from(number.to_be_bytes())
    }

    #[test]
    fn each_item_arrives_once_and_in_order_over_connections_that_break_anywhere() {
        for cut in 0..60 {
            let (mut out, mut into, mut arrived) =
                (Outgoing::default(), Incoming::default(), vec![]);
            let mut connection = into.connect();
            let (mut wire, mut written) = (std::collections::VecDeque::new(), 0);
            for n in 1..=20_u64 {
                assert_eq!(out.number(), n);
                out.push(frame(n));
                while let Some(bytes) = out.take() {
                    wire.push_back(bytes);
                    written += 1;
                    // Some frames are on the way when the connection breaks.
                    if written % 3 == cut % 3
                        && let Some(bytes) = wire.pop_front()
                    {
                        arrive(&mut into, connection, &bytes, &mut arrived);
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
            wire.drain(..).for_each(|bytes| arrive(&mut into, connection, &bytes, &mut arrived));
            assert_eq!(arrived, (1..=20).collect::<Vec<_>>(), "cut after {cut}");
            out.acknowledge(20, 20).expect("it was sent");
            assert!(out.is_empty());
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
        out.push(frame(1));
        assert_eq!(out.acknowledge(2, 0), Err(2));
        assert_eq!(out.resume(9), Err(9));
        assert_eq!(out.acknowledge(1, 1), Ok(()));
    }
}
