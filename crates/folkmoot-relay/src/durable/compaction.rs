//! Keeps the log from growing for ever. When it has grown enough, a segment is begun and the owners
//! of channels are asked for all that they keep; once that is in the log, the segments before it
//! say nothing that is not said again, and go.
//!
//! An owner looks by itself whether it is asked, and hands its channels over between two of its
//! batches: so what it hands over is what all before it in the log comes to. It does so a portion
//! at a time, and only one portion of all owners is under way: what is published meanwhile waits for
//! no more than that one.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Restored;

/// What the log may grow by in any case: a small one is not worth the work.
const GROWTH_BYTES_MIN: u64 = 64 << 20;
/// And by how many times what was handed over the last time.
const GROWTH_FACTOR: u64 = 2;
/// Each start begins a segment, and so many are few to open.
const SEGMENTS_MAX: usize = 64;

/// How owners are asked.
#[derive(Debug, Clone)]
pub(super) struct Calls {
    /// How often.
    count: Arc<AtomicU64>,
    /// Whose turn it is.
    turn: Arc<Semaphore>,
}

/// Whoever has it may hand one portion over. It is given back when that is written, or dropped.
#[derive(Debug)]
pub(crate) struct Turn(#[allow(dead_code)] OwnedSemaphorePermit);

/// Some durable channels of an owner, as what it has sent before comes to.
#[derive(Debug)]
pub(crate) struct Portion {
    pub(crate) owner: usize,
    /// By which it was asked for them.
    pub(crate) call: u64,
    pub(crate) channels: Vec<(Arc<str>, Restored)>,
    /// Whether the owner has no others.
    pub(crate) is_last: bool,
}

impl Default for Calls {
    fn default() -> Self {
        Self { count: Arc::default(), turn: Arc::new(Semaphore::new(1)) }
    }
}

impl Calls {
    pub(super) fn count(&self) -> u64 {
        // Acquire: who sees the number sends to a thread that has begun its segment.
        self.count.load(Ordering::Acquire)
    }

    /// Waits until nobody else hands something over; who waits for longer comes first.
    pub(super) fn turn(&self) -> impl Future<Output = Turn> + use<> {
        let turn = self.turn.clone();
        async move { Turn(turn.acquire_owned().await.expect("it is never closed")) }
    }
}

#[derive(Debug)]
pub(super) struct Compaction {
    calls: Calls,
    /// Owners that are there to be asked; `None`: not all have their channels yet, and what they
    /// would hand over is less than what there is.
    owners: Option<usize>,
    /// What the log had when the last one ended.
    rest_bytes: u64,
    under_way: Option<UnderWay>,
}

#[derive(Debug)]
struct UnderWay {
    /// The segment that begins with it.
    first: u64,
    call: u64,
    done: HashSet<usize>,
}

impl Compaction {
    pub(super) fn new(calls: Calls) -> Self {
        Self { calls, owners: None, rest_bytes: 0, under_way: None }
    }

    /// All owners have their channels.
    pub(super) fn allow(&mut self, owners: usize) {
        self.owners = Some(owners);
    }

    pub(super) fn is_due(&self, log_bytes: u64, segments: usize) -> bool {
        let growth = log_bytes.saturating_sub(self.rest_bytes);
        let growth_max = GROWTH_BYTES_MIN.max(GROWTH_FACTOR * self.rest_bytes);
        let is_large = growth > growth_max || segments > SEGMENTS_MAX;
        is_large && self.owners.is_some() && self.under_way.is_none()
    }

    /// A segment was begun for it.
    pub(super) fn begin(&mut self, first: u64) {
        let call = self.calls.count.fetch_add(1, Ordering::Release) + 1;
        self.under_way = Some(UnderWay { first, call, done: HashSet::new() });
    }

    /// Whether what this call has asked for is still wanted.
    pub(super) fn wants(&self, call: u64) -> bool {
        self.under_way.as_ref().is_some_and(|one| one.call == call)
    }

    /// All that an owner was asked for is on disk.
    pub(super) fn handed_over(&mut self, owner: usize, call: u64) {
        if let Some(under_way) = self.under_way.as_mut().filter(|one| one.call == call) {
            under_way.done.insert(owner);
        }
    }

    /// Something that may have been handed over was not written: it is begun anew when it is due.
    pub(super) fn give_up(&mut self) {
        self.under_way = None;
    }

    /// Before which segment nothing is needed any more, once all have handed over.
    pub(super) fn done(&mut self) -> Option<u64> {
        let owners = self.owners?;
        let under_way = self.under_way.take_if(|one| one.done.len() >= owners)?;
        Some(under_way.first)
    }

    /// What is left of the log.
    pub(super) fn rests(&mut self, log_bytes: u64) {
        self.rest_bytes = log_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_due_once_the_owners_are_there_and_the_log_has_grown() {
        let mut compaction = Compaction::new(Calls::default());
        assert!(!compaction.is_due(GROWTH_BYTES_MIN + 1, 1), "nobody has its channels yet");
        compaction.allow(2);
        assert!(!compaction.is_due(GROWTH_BYTES_MIN, 1));
        assert!(compaction.is_due(GROWTH_BYTES_MIN + 1, 1));
        assert!(compaction.is_due(1, SEGMENTS_MAX + 1));
        compaction.rests(GROWTH_BYTES_MIN);
        assert!(!compaction.is_due((1 + GROWTH_FACTOR) * GROWTH_BYTES_MIN, 1));
    }

    #[test]
    fn it_has_ended_once_every_owner_has_answered_this_call() {
        let calls = Calls::default();
        let mut compaction = Compaction::new(calls.clone());
        compaction.allow(2);
        compaction.begin(5);
        compaction.handed_over(0, calls.count());
        compaction.handed_over(0, calls.count());
        assert_eq!(compaction.done(), None, "one owner alone");
        compaction.give_up();
        compaction.begin(7);
        compaction.handed_over(0, calls.count());
        compaction.handed_over(1, calls.count() - 1);
        assert_eq!(compaction.done(), None, "an answer to the call before");
        compaction.handed_over(1, calls.count());
        assert_eq!(compaction.done(), Some(7));
        assert_eq!(compaction.done(), None);
    }
}
