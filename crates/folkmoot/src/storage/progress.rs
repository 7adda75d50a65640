//! How far the log and SQLite have come, and who waits for them.
//!
//! Every append gets a ticket when it enters the queue; an lsn only once it is written, and a
//! failed append never gets one. A barrier waits for a ticket, so it also covers appends still in
//! flight: a room that is loaded again after a crash of its actor must not hand out their offsets a
//! second time.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use folkmoot_protocol::Channel;
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::error::ReadError;
use super::ids::{Lsn, RoomId, UserId};

/// Counts appends in the order in which they entered the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(pub(crate) u64);

/// Something whose rows in SQLite can lag behind the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stream {
    Room(RoomId),
    User(UserId),
}

impl From<Channel> for Stream {
    fn from(channel: Channel) -> Self {
        match channel {
            Channel::Room(room) => Self::Room(room),
            Channel::User(user) => Self::User(user),
        }
    }
}

/// A batch that is durable, or has failed: once `lsn` is applied, everything up to `ticket` is
/// settled.
#[derive(Clone, Copy, Debug)]
struct Settled {
    lsn: Lsn,
    ticket: Ticket,
    bytes: u64,
}

#[derive(Debug)]
struct State {
    last_ticket: Ticket,
    applied_ticket: Ticket,
    durable: Lsn,
    applied: Lsn,
    /// Settled batches that are not applied yet, oldest first.
    unapplied: VecDeque<Settled>,
    lag_bytes: u64,
    /// The last ticket of every stream with records that are not applied.
    pending: HashMap<Stream, Ticket>,
    barriers: Vec<(Ticket, oneshot::Sender<Result<(), ReadError>>)>,
    /// Why the mover cannot go on; cleared when it can.
    stalled: Option<String>,
    closed: bool,
    /// Somebody has other work for the mover's thread.
    nudged: bool,
}

/// Shared by callers, the log's thread and the mover.
#[derive(Debug)]
pub(crate) struct Progress {
    state: Mutex<State>,
    /// Wakes the mover.
    work: Condvar,
}

/// What the mover should do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lag {
    pub(crate) durable: Lsn,
    pub(crate) applied: Lsn,
    /// Bytes of durable records that are not applied.
    pub(crate) bytes: u64,
    /// Whether a batch is settled but not applied; it may hold nothing but failed appends.
    pub(crate) is_behind: bool,
    /// Whether a barrier waits.
    pub(crate) is_awaited: bool,
}

impl Progress {
    /// Begins with everything up to `applied` in SQLite.
    pub(crate) fn new(applied: Lsn) -> Self {
        let state = State {
            last_ticket: Ticket(0),
            applied_ticket: Ticket(0),
            durable: applied,
            applied,
            unapplied: VecDeque::new(),
            lag_bytes: 0,
            pending: HashMap::new(),
            barriers: Vec::new(),
            stalled: None,
            closed: false,
            nudged: false,
        };
        Self { state: Mutex::new(state), work: Condvar::new() }
    }

    /// Counts an append that enters the queue. The caller holds the queue's lock, so tickets and
    /// the queue have the same order.
    pub(crate) fn enter(&self, streams: [Option<Stream>; 2]) -> Ticket {
        let mut state = self.state.lock();
        state.last_ticket.0 += 1;
        let ticket = state.last_ticket;
        for stream in streams.into_iter().flatten() {
            state.pending.insert(stream, ticket);
        }
        ticket
    }

    /// Notes that the appends up to `ticket` are durable up to `lsn`, or have failed if `lsn` has
    /// not moved.
    pub(crate) fn settle(&self, lsn: Lsn, ticket: Ticket, bytes: u64) {
        let mut state = self.state.lock();
        let was_idle = state.unapplied.is_empty();
        state.durable = lsn;
        state.lag_bytes += bytes;
        state.unapplied.push_back(Settled { lsn, ticket, bytes });
        // The mover paces itself by time while there is a lag; it only sleeps without end when
        // idle.
        if was_idle || !state.barriers.is_empty() {
            state.nudged |= !state.barriers.is_empty();
            self.work.notify_all();
        }
    }

    /// Notes that SQLite holds everything up to `lsn`, and answers the barriers that waited for it.
    pub(crate) fn applied(&self, lsn: Lsn) {
        let mut state = self.state.lock();
        state.applied = lsn;
        state.stalled = None;
        while state.unapplied.front().is_some_and(|settled| settled.lsn <= lsn) {
            let settled = state.unapplied.pop_front().expect("the front was just seen");
            state.applied_ticket = settled.ticket;
            state.lag_bytes -= settled.bytes;
        }
        let applied_ticket = state.applied_ticket;
        state.pending.retain(|_, ticket| *ticket > applied_ticket);
        let barriers = std::mem::take(&mut state.barriers);
        let (done, waiting) =
            barriers.into_iter().partition(|(ticket, _)| *ticket <= applied_ticket);
        state.barriers = waiting;
        drop(state);
        answer(done, &|| Ok(()));
    }

    /// Notes that the mover cannot go on, and refuses all barriers until it can.
    pub(crate) fn stall(&self, reason: &str) {
        let mut state = self.state.lock();
        state.stalled = Some(reason.to_owned());
        let barriers = std::mem::take(&mut state.barriers);
        drop(state);
        answer(barriers, &|| Err(ReadError::Stalled(reason.to_owned())));
    }

    /// Ends the wait of everybody; nothing moves any more.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.nudged = true;
        let barriers = std::mem::take(&mut state.barriers);
        self.work.notify_all();
        drop(state);
        answer(barriers, &|| Err(ReadError::ShuttingDown));
    }

    /// Waits until SQLite holds what the log held of these streams; of all, if none is named.
    ///
    /// # Cancel safety
    /// Dropping the future gives up the wait and changes nothing.
    pub(crate) async fn barrier(&self, streams: &[Stream]) -> Result<(), ReadError> {
        let waiter = {
            let mut state = self.state.lock();
            let target = if streams.is_empty() {
                state.last_ticket
            } else {
                let tickets = streams.iter().filter_map(|stream| state.pending.get(stream));
                tickets.copied().max().unwrap_or_default()
            };
            if target <= state.applied_ticket {
                return Ok(());
            }
            if state.closed {
                return Err(ReadError::ShuttingDown);
            }
            if let Some(reason) = &state.stalled {
                return Err(ReadError::Stalled(reason.clone()));
            }
            let (tx, rx) = oneshot::channel();
            state.barriers.push((target, tx));
            state.nudged = true;
            self.work.notify_all();
            rx
        };
        waiter.await.unwrap_or(Err(ReadError::ShuttingDown))
    }

    /// The mover's view.
    pub(crate) fn lag(&self) -> Lag {
        let state = self.state.lock();
        Lag {
            durable: state.durable,
            applied: state.applied,
            bytes: state.lag_bytes,
            is_behind: !state.unapplied.is_empty(),
            is_awaited: !state.barriers.is_empty(),
        }
    }

    /// Gives the mover's thread a reason to look around.
    pub(crate) fn nudge(&self) {
        self.state.lock().nudged = true;
        self.work.notify_all();
    }

    /// Blocks the mover's thread until it is nudged, something settles while it was idle, or a
    /// barrier waits; at the latest after `timeout`.
    pub(crate) fn wait(&self, timeout: Option<Duration>) {
        let mut state = self.state.lock();
        if !state.nudged {
            match timeout {
                Some(timeout) => drop(self.work.wait_for(&mut state, timeout)),
                // A batch that settled since the mover looked must not be slept through.
                None if state.unapplied.is_empty() => self.work.wait(&mut state),
                None => {}
            }
        }
        state.nudged = false;
    }

    /// Why the mover cannot go on, if it cannot.
    pub(crate) fn stalled(&self) -> Option<String> {
        self.state.lock().stalled.clone()
    }
}

fn answer(
    barriers: Vec<(Ticket, oneshot::Sender<Result<(), ReadError>>)>,
    result: &dyn Fn() -> Result<(), ReadError>,
) {
    for (_, waiter) in barriers {
        // The caller may have given up waiting.
        let _ = waiter.send(result());
    }
}
