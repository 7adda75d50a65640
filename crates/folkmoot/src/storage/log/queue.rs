//! What waits to be written, and who may add to it.
//!
//! An append enters the queue when it is called, not when its future is first polled, so one
//! caller's appends keep their order without awaiting each other. A failed write refuses everything
//! queued behind it and ends the write epoch of the streams whose records failed: one already on
//! its way would leave a gap in its stream. Streams that lost nothing go on under the epoch that
//! they have.

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use tokio::sync::{Notify, oneshot};

use super::append_times::AppendTimer;
use super::segment::PAYLOAD_LEN_MAX;
use crate::storage::error::AppendError;
use crate::storage::ids::{Lsn, WriteEpoch};
use crate::storage::progress::{Progress, Stream, Ticket};

/// Streams that are fenced one by one; beyond, all streams load again, which costs each a read.
const FENCES_MAX: usize = 65_536;

/// How much may wait. Above the first number [`Queue::ready`] waits, above twice it appends are
/// refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueLimits {
    /// Bytes not written yet. 16 MiB is a few hundred milliseconds of this disk's work.
    pub(crate) queued_bytes_max: usize,
    /// Bytes written but not moved into SQLite yet; they are replayed on start.
    pub(crate) backlog_bytes_max: u64,
}

/// What an acknowledged append was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The record's number in the log; it is on disk.
    pub lsn: Lsn,
}

/// A record that waits to be written.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) payload: Vec<u8>,
    /// Whose order it belongs to; `None`: its order does not matter.
    order: Option<Order>,
    /// Its stream has grown by another node since: it is not to be written.
    pub(crate) is_lost: bool,
    pub(crate) queued_at: Instant,
    pub(crate) done: oneshot::Sender<Result<Appended, AppendError>>,
}

/// In which order a record has its place.
#[derive(Clone, Copy, Debug)]
enum Order {
    Stream(Stream),
    /// In that of a caller whom nothing else tells from others.
    Unnamed,
}

/// What the log's thread takes at once.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) entries: Vec<Entry>,
    pub(crate) bytes: usize,
    /// The last entry's ticket.
    pub(crate) ticket: Ticket,
}

#[derive(Debug)]
struct State {
    entries: Vec<Entry>,
    bytes: usize,
    last_ticket: Ticket,
    epoch: WriteEpoch,
    /// The first epoch that counts for streams whose records failed.
    fences: HashMap<Stream, WriteEpoch>,
    /// The first epoch that counts for all others.
    floor: WriteEpoch,
    /// Why appends are refused at present.
    refusal: Option<AppendError>,
    closing: bool,
}

/// The queue in front of the log's thread.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    /// Wakes the log's thread.
    work: Condvar,
    /// Wakes those who wait in [`Queue::ready`].
    pub(super) room: Notify,
    progress: Arc<Progress>,
    limits: QueueLimits,
    /// How long acknowledged appends took.
    pub(crate) timer: AppendTimer,
}

impl Queue {
    pub(crate) fn new(progress: Arc<Progress>, limits: QueueLimits) -> Self {
        let state = State {
            entries: Vec::new(),
            bytes: 0,
            last_ticket: Ticket(0),
            epoch: WriteEpoch(1),
            fences: HashMap::new(),
            floor: WriteEpoch(1),
            refusal: None,
            closing: false,
        };
        Self {
            state: Mutex::new(state),
            work: Condvar::new(),
            room: Notify::new(),
            progress,
            limits,
            timer: AppendTimer::default(),
        }
    }

    /// Adds a record; `epoch` is checked unless its order does not matter.
    pub(crate) fn append(
        &self,
        epoch: Option<WriteEpoch>,
        payload: Vec<u8>,
        streams: [Option<Stream>; 2],
    ) -> Append {
        if payload.len() > PAYLOAD_LEN_MAX {
            let limit = PAYLOAD_LEN_MAX;
            return Append::refused(AppendError::TooLarge { bytes: payload.len(), limit });
        }
        let backlog = self.progress.lag().bytes;
        let (tx, rx) = oneshot::channel();
        let mut state = self.state.lock();
        if let Some(error) = self.refusal(&state, epoch, streams[0], backlog) {
            return Append::refused(error);
        }
        let order = epoch.map(|_| streams[0].map_or(Order::Unnamed, Order::Stream));
        state.last_ticket = self.progress.enter(streams);
        state.bytes += payload.len();
        state.entries.push(Entry {
            payload,
            order,
            is_lost: false,
            queued_at: Instant::now(),
            done: tx,
        });
        let was_empty = state.entries.len() == 1;
        drop(state);
        if was_empty {
            self.work.notify_one();
        }
        Append(Outcome::Waiting(rx))
    }

    fn refusal(
        &self,
        state: &State,
        epoch: Option<WriteEpoch>,
        stream: Option<Stream>,
        backlog: u64,
    ) -> Option<AppendError> {
        if state.closing {
            return Some(AppendError::ShuttingDown);
        }
        if let Some(refusal) = &state.refusal {
            return Some(refusal.clone());
        }
        let fence = stream.and_then(|stream| state.fences.get(&stream).copied());
        let first = fence.unwrap_or(state.floor);
        if let Some(given) = epoch.filter(|given| *given < first) {
            return Some(AppendError::StaleEpoch { given, current: state.epoch });
        }
        let limit = self.limits.queued_bytes_max * 2;
        if state.bytes > limit {
            return Some(AppendError::Overloaded { bytes: state.bytes, limit });
        }
        if backlog > self.limits.backlog_bytes_max * 2 {
            return Some(match self.progress.stalled() {
                Some(reason) => AppendError::Failed(reason),
                None => AppendError::Overloaded {
                    bytes: usize::try_from(backlog).unwrap_or(usize::MAX),
                    limit: usize::try_from(self.limits.backlog_bytes_max * 2).unwrap_or(usize::MAX),
                },
            });
        }
        None
    }

    /// Whether an append to `stream` would be taken now, with room to spare: whoever changes a
    /// state before appending asks first, and has nothing to take back when the answer is no.
    pub(crate) fn admits(&self, epoch: WriteEpoch, stream: Stream) -> Result<(), AppendError> {
        let backlog = self.progress.lag().bytes;
        let state = self.state.lock();
        if let Some(error) = self.refusal(&state, Some(epoch), Some(stream), backlog) {
            return Err(error);
        }
        let limit = self.limits.queued_bytes_max;
        if state.bytes > limit {
            return Err(AppendError::Overloaded { bytes: state.bytes, limit });
        }
        if backlog > self.limits.backlog_bytes_max {
            let number = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
            let (bytes, limit) = (number(backlog), number(self.limits.backlog_bytes_max));
            return Err(AppendError::Overloaded { bytes, limit });
        }
        Ok(())
    }

    /// Waits until the queue and the backlog are under their limits.
    ///
    /// # Cancel safety
    /// Dropping the future gives up the wait and changes nothing.
    pub(crate) async fn ready(&self) -> Result<(), AppendError> {
        loop {
            let changed = self.room.notified();
            {
                let lag = self.progress.lag();
                let state = self.state.lock();
                if let Some(error) = self.refusal(&state, None, None, lag.bytes) {
                    if !matches!(error, AppendError::Overloaded { .. }) {
                        return Err(error);
                    }
                } else if state.bytes <= self.limits.queued_bytes_max
                    && lag.bytes <= self.limits.backlog_bytes_max
                {
                    return Ok(());
                }
            }
            changed.await;
        }
    }

    /// Wakes those who wait for room; called whenever some may have come free.
    pub(crate) fn notify_room(&self) {
        self.room.notify_waiters();
    }

    /// The epoch that appends are accepted under.
    pub(crate) fn epoch(&self) -> WriteEpoch {
        self.state.lock().epoch
    }

    /// Blocks the log's thread until there is something to write; `None` once closed and empty.
    pub(crate) fn take(&self, reuse: Vec<Entry>) -> Option<Batch> {
        let mut state = self.state.lock();
        while state.entries.is_empty() {
            if state.closing {
                return None;
            }
            self.work.wait(&mut state);
        }
        let entries = std::mem::replace(&mut state.entries, reuse);
        let bytes = std::mem::take(&mut state.bytes);
        let ticket = state.last_ticket;
        drop(state);
        self.room.notify_waiters();
        Some(Batch { entries, bytes, ticket })
    }

    /// Refuses all that is queued and all that comes, until [`Queue::reopen`], and ends the epoch
    /// of the streams that lose a record: `failed` and what is queued.
    pub(crate) fn refuse(&self, why: &AppendError, failed: &[Entry]) -> Batch {
        let mut state = self.state.lock();
        state.refusal = Some(why.clone());
        state.epoch = state.epoch.next();
        let entries = std::mem::take(&mut state.entries);
        state.fence(failed.iter().chain(&entries));
        let bytes = std::mem::take(&mut state.bytes);
        let ticket = state.last_ticket;
        drop(state);
        self.room.notify_waiters();
        Batch { entries, bytes, ticket }
    }

    /// Ends the epoch of streams that another node has appended to, and marks what is queued of
    /// them; all others go on.
    pub(crate) fn lose(&self, streams: &HashSet<Stream>) {
        let mut state = self.state.lock();
        state.epoch = state.epoch.next();
        let epoch = state.epoch;
        state.fences.extend(streams.iter().map(|stream| (*stream, epoch)));
        for entry in &mut state.entries {
            let is_lost = matches!(entry.order, Some(Order::Stream(of)) if streams.contains(&of));
            entry.is_lost |= is_lost;
        }
        state.bound_fences();
    }

    /// Takes appends again.
    pub(crate) fn reopen(&self) {
        self.state.lock().refusal = None;
        self.room.notify_waiters();
    }

    /// Refuses what comes from now on; what is queued is still written.
    pub(crate) fn close(&self) {
        self.state.lock().closing = true;
        self.work.notify_all();
        self.room.notify_waiters();
    }

    /// Blocks the log's thread for `pause`, or until the queue is closed; says whether it is.
    pub(crate) fn wait_closing(&self, pause: std::time::Duration) -> bool {
        let mut state = self.state.lock();
        if !state.closing {
            self.work.wait_for(&mut state, pause);
        }
        state.closing
    }
}

impl State {
    /// Ends the epoch of the streams that these records belong to.
    fn fence<'a>(&mut self, lost: impl Iterator<Item = &'a Entry>) {
        for entry in lost {
            match entry.order {
                None => {}
                Some(Order::Stream(stream)) => {
                    self.fences.insert(stream, self.epoch);
                }
                Some(Order::Unnamed) => self.floor = self.epoch,
            }
        }
        self.bound_fences();
    }

    fn bound_fences(&mut self) {
        if self.fences.len() > FENCES_MAX {
            self.floor = self.epoch;
        }
        let floor = self.floor;
        self.fences.retain(|_, first| *first > floor);
    }
}

/// The answer to an append: resolves when the record is on disk, or to why it is not.
///
/// The record is queued already; polling only waits.
///
/// # Cancel safety
/// Dropping it does not take the record back; it is written all the same.
#[derive(Debug)]
#[must_use = "a record is not durable before this resolves"]
pub struct Append(Outcome);

#[derive(Debug)]
enum Outcome {
    Waiting(oneshot::Receiver<Result<Appended, AppendError>>),
    Refused(Option<AppendError>),
}

impl Append {
    fn refused(error: AppendError) -> Self {
        Self(Outcome::Refused(Some(error)))
    }
}

impl Future for Append {
    type Output = Result<Appended, AppendError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Outcome::Waiting(rx) => {
                Pin::new(rx).poll(cx).map(|answer| answer.unwrap_or(Err(AppendError::ShuttingDown)))
            }
            Outcome::Refused(error) => {
                Poll::Ready(Err(error.take().expect("a future is not polled after it resolved")))
            }
        }
    }
}
