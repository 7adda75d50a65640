//! What all clients of a run count together.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use folkmoot_protocol::RoomId;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::histogram::Histogram;
use super::socket::SocketError;

/// Messages of one run; senders stop at it. Four megabytes of counters.
const MESSAGES_MAX: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Tally {
    /// Times in messages count from here.
    began: Instant,
    /// How many listen in each room; known when all have come in.
    listeners: OnceLock<HashMap<RoomId, u32>>,
    /// Who has not got a message of a number yet.
    waited_for: Vec<AtomicU32>,
    /// A permit for each message that may go out before one that is on its way has reached all.
    in_flight: Semaphore,
    pub(super) sent: AtomicU64,
    pub(super) acknowledged: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) delivered: AtomicU64,
    pub(super) doubled: AtomicU64,
    /// Events that a later one came instead of.
    pub(super) skipped: AtomicU64,
    /// Connections that ended by themselves.
    pub(super) broken: AtomicU64,
    /// Channels whose missed events the server did not have any more.
    pub(super) unrecovered: AtomicU64,
    /// Connections that broke on their way back in, and were tried again.
    pub(super) retried: AtomicU64,
    /// Events that came with a recovery.
    pub(super) recovered: AtomicU64,
    /// Connections that ended and went on at another node.
    pub(super) resumed: AtomicU64,
    /// What the first one that failed was told.
    trouble: OnceLock<String>,
    pub(super) to_acknowledgement: Histogram,
    pub(super) to_delivery: Histogram,
    /// To the last of all who listen.
    pub(super) to_last: Histogram,
    /// From the beginning of a return of all to that of one.
    pub(super) to_return: Histogram,
    /// From the end of a connection until the next one has all its rooms again, and what it missed.
    pub(super) to_resume: Histogram,
}

/// What a message of a run says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) number: u64,
    pub(super) at: Duration,
}

impl Tally {
    /// Of a run with so many messages on their way at a time; 0: any number.
    pub(super) fn new(in_flight: usize) -> Self {
        let waited_for = (0..MESSAGES_MAX).map(|_| AtomicU32::new(0)).collect();
        Self {
            began: Instant::now(),
            listeners: OnceLock::new(),
            waited_for,
            in_flight: Semaphore::new(match in_flight {
                0 => Semaphore::MAX_PERMITS / 2,
                limit => limit,
            }),
            sent: AtomicU64::new(0),
            acknowledged: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            delivered: AtomicU64::new(0),
            doubled: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            broken: AtomicU64::new(0),
            unrecovered: AtomicU64::new(0),
            retried: AtomicU64::new(0),
            recovered: AtomicU64::new(0),
            resumed: AtomicU64::new(0),
            trouble: OnceLock::new(),
            to_acknowledgement: Histogram::default(),
            to_delivery: Histogram::default(),
            to_last: Histogram::default(),
            to_return: Histogram::default(),
            to_resume: Histogram::default(),
        }
    }

    /// Nothing is sent before it is known who listens where.
    pub(super) fn expect(&self, listeners: HashMap<RoomId, u32>) {
        self.listeners.set(listeners).expect("all come in once");
    }

    /// Waits until one more message may be on its way. Who sends one forgets the permit: it comes
    /// back when the message has reached all.
    pub(super) async fn permit(&self) -> SemaphorePermit<'_> {
        self.in_flight.acquire().await.expect("it is never closed")
    }

    /// Counts a message that is about to be sent; `None`: the run has had enough of them.
    pub(super) fn send(&self, room: RoomId) -> Option<Stamp> {
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        let Some(waited_for) = self.waited_for.get(number as usize) else {
            self.sent.fetch_sub(1, Ordering::Relaxed);
            self.in_flight.add_permits(1);
            return None;
        };
        let listeners = self.listeners.get().and_then(|listeners| listeners.get(&room));
        waited_for.store(listeners.copied().unwrap_or(0), Ordering::Relaxed);
        Some(Stamp { number, at: self.began.elapsed() })
    }

    pub(super) fn acknowledge(&self, stamp: Stamp) {
        self.acknowledged.fetch_add(1, Ordering::Relaxed);
        self.to_acknowledgement.note(self.age(stamp));
    }

    /// Nobody gets it.
    pub(super) fn refuse(&self, stamp: Stamp, why: &SocketError) {
        self.trouble.get_or_init(|| why.to_string());
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.waited_for[stamp.number as usize].store(0, Ordering::Relaxed);
        self.in_flight.add_permits(1);
    }

    pub(super) fn deliver(&self, stamp: Stamp) {
        let Some(waited_for) = self.waited_for.get(stamp.number as usize) else { return };
        let age = self.age(stamp);
        self.delivered.fetch_add(1, Ordering::Relaxed);
        self.to_delivery.note(age);
        let less = |waiting: u32| waiting.checked_sub(1);
        match waited_for.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
            Ok(1) => {
                self.to_last.note(age);
                self.in_flight.add_permits(1);
            }
            Ok(_) => {}
            // Somebody has it twice, or has what was refused.
            Err(_) => drop(self.doubled.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// Deliveries that have not happened, of messages that were not refused.
    pub(super) fn missing(&self) -> u64 {
        let sent = self.sent.load(Ordering::Relaxed) as usize;
        let sent = &self.waited_for[..sent.min(MESSAGES_MAX)];
        sent.iter().map(|waited_for| u64::from(waited_for.load(Ordering::Relaxed))).sum()
    }

    /// Messages that were neither acknowledged nor refused.
    pub(super) fn unanswered(&self) -> u64 {
        let answered =
            self.acknowledged.load(Ordering::Relaxed) + self.refused.load(Ordering::Relaxed);
        self.sent.load(Ordering::Relaxed).saturating_sub(answered)
    }

    /// A connection ended by itself.
    pub(super) fn lose(&self, why: &SocketError) {
        self.trouble.get_or_init(|| why.to_string());
        self.broken.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn trouble(&self) -> Option<&str> {
        self.trouble.get().map(String::as_str)
    }

    fn age(&self, stamp: Stamp) -> Duration {
        self.began.elapsed().saturating_sub(stamp.at)
    }
}

/// What a message of a run begins with.
const MARK: &str = "load";

impl Stamp {
    /// The text of the message, `len` bytes long or as short as it can be.
    pub(super) fn text(self, len: usize) -> String {
        let mut text = format!("{MARK} {} {} ", self.number, self.at.as_nanos());
        let missing = len.saturating_sub(text.len());
        text.extend(std::iter::repeat_n('x', missing));
        text
    }

    /// Reads it back; `None` for what somebody else has said.
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let is_ours = words.next() == Some(MARK);
        let number = words.next()?.parse().ok()?;
        let at = Duration::from_nanos(words.next()?.parse().ok()?);
        is_ours.then_some(Self { number, at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: RoomId = RoomId::from_u64(1);

    #[test]
    fn a_message_says_its_number_and_when_it_was_sent() {
        let stamp = Stamp { number: 7, at: Duration::from_nanos(123) };
        let text = stamp.text(100);
        assert_eq!(text.len(), 100);
        assert_eq!(Stamp::of(&text), Some(stamp));
        assert_eq!(Stamp::of(&stamp.text(0)), Some(stamp));
        assert_eq!(Stamp::of("hello 7 123 "), None);
        assert_eq!(Stamp::of("load of bricks"), None);
    }

    #[test]
    fn what_was_not_delivered_is_missing_until_it_is_refused() {
        let tally = Tally::new(0);
        tally.expect(HashMap::from([(ROOM, 2)]));
        let (first, second) = (tally.send(ROOM).unwrap(), tally.send(ROOM).unwrap());
        tally.deliver(first);
        assert_eq!((tally.missing(), tally.unanswered()), (3, 2));
        assert_eq!(tally.to_last.percentile(50.0), None, "one waits for it still");
        tally.deliver(first);
        tally.acknowledge(first);
        tally.refuse(second, &SocketError::Closed(String::new()));
        assert_eq!((tally.missing(), tally.unanswered()), (0, 0));
        assert!(tally.to_last.percentile(50.0).is_some());
    }
}
