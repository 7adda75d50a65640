//! One ordered stream of events, of a room or of a user, from the decision to those who listen:
//! records are appended without waiting for the disk, what became durable is published in order,
//! and after a failed append everything behind it is taken back.
//!
//! The state of whoever owns a stream runs ahead of the disk; the stream is what others may see.
//! Appends are fenced by (stream, epoch): a failed one ends the epoch of its stream, and of no
//! other.

mod event;
mod lane;
mod publication;
mod recovery;
mod tail;
mod wire;

use std::collections::VecDeque;
use std::sync::Arc;

use althing::Topic;
use folkmoot_protocol::Channel;

pub(crate) use event::{of_room, of_user};
pub(crate) use lane::{Settled, Wait};
pub(crate) use publication::{Coming, Place, Presence, Publication, Removed};
pub(crate) use recovery::{Attached, Missed, Since, events, missed};
pub(crate) use tail::Tail;

use crate::storage::contract::StreamLog;
use crate::storage::{Append, AppendError, Offset, Record, WriteEpoch};
use lane::Lane;

/// Why publishing to a topic of a room or a user cannot be refused.
pub(crate) const NO_OTHER_PUBLISHER: &str = "nobody claims the topics of rooms and users";

/// A stream, with what its owner keeps about each record under way to the disk.
#[derive(Debug)]
pub(crate) struct Stream<P> {
    channel: Channel,
    epoch: WriteEpoch,
    lane: Lane,
    pending: VecDeque<P>,
    tail: Tail,
    topic: Topic<Arc<Publication>>,
}

/// How the oldest appends ended.
#[derive(Debug)]
pub(crate) struct Completed<P> {
    /// These are durable, in order.
    pub(crate) durable: Vec<P>,
    /// The next one failed, and with it all that followed: [`Stream::take_back`] gives them.
    pub(crate) failed: Option<AppendError>,
}

impl<P> Stream<P> {
    /// A stream of which nothing is known yet.
    pub(crate) fn new(channel: Channel, topic: Topic<Arc<Publication>>) -> Self {
        let tail = Tail::new(Offset::from_u64(0), 0);
        let (epoch, lane, pending) = (WriteEpoch::default(), Lane::default(), VecDeque::new());
        Self { channel, epoch, lane, pending, tail, topic }
    }

    /// Begins where the store says, under the epoch that it says.
    pub(crate) fn begin(&mut self, epoch: WriteEpoch, tail: Tail) {
        (self.epoch, self.tail) = (epoch, tail);
    }

    /// Whether an append would be taken now. Asked before a state is changed: then a refusal leaves
    /// nothing to take back, and a store that has too much to do is not asked to load the state
    /// again.
    pub(crate) fn admits(&self, store: &impl StreamLog) -> Result<(), AppendError> {
        match self.lane.broken() {
            Some(error) => Err(error.clone()),
            None => store.admits(self.epoch, self.channel),
        }
    }

    /// Why an append was refused, so that none may follow before it is settled.
    pub(crate) fn broken(&self) -> Option<&AppendError> {
        self.lane.broken()
    }

    /// Appends the record of the stream's next offset.
    pub(crate) fn append(&mut self, store: &impl StreamLog, record: &Record, pending: P) {
        self.lane.push(store.append(self.epoch, record));
        self.pending.push_back(pending);
    }

    /// Logs something beside the stream, which merges in any order.
    pub(crate) fn log(&self, store: &impl StreamLog, record: &Record) -> Append {
        store.append(self.epoch, record)
    }

    /// A future to run beside the actor, if there is something to wait for and nobody waits.
    pub(crate) fn wait(&mut self) -> Option<Wait> {
        self.lane.wait()
    }

    /// Takes what a [`Wait`] came back with.
    pub(crate) fn settle(&mut self, mut settled: Settled) -> Completed<P> {
        self.lane.resume(&mut settled);
        let durable = self.pending.drain(..settled.durable).collect();
        Completed { durable, failed: settled.failed }
    }

    /// All that did not become durable after a failed append. The state has to be loaded again
    /// before anything follows.
    pub(crate) fn take_back(&mut self) -> VecDeque<P> {
        std::mem::take(&mut self.pending)
    }

    /// Shows a durable event to who listens and to who comes back.
    pub(crate) fn publish(&mut self, publication: Publication) {
        let publication = Arc::new(publication);
        self.tail.push(publication.clone());
        self.topic.publish(publication).expect(NO_OTHER_PUBLISHER);
    }

    /// Shows something that is true for a moment only to who listens now.
    pub(crate) fn tell(&self, data: bytes::Bytes) {
        let fleeting = Publication::new(self.channel, Place::Fleeting, data);
        self.topic.publish(Arc::new(fleeting)).expect(NO_OTHER_PUBLISHER);
    }

    /// Ends the stream for all who listen: nothing of it is kept in memory, and nobody may read on.
    pub(crate) fn end(&mut self, data: bytes::Bytes) {
        self.clear();
        let mut end = Publication::new(self.channel, Place::Fleeting, data);
        end.removes = Some(Removed::Everybody);
        self.topic.publish(Arc::new(end)).expect(NO_OTHER_PUBLISHER);
    }

    /// Forgets the events in memory.
    pub(crate) fn clear(&mut self) {
        self.tail = Tail::new(self.tail.last(), 0);
    }

    /// Forgets the events in memory up to the last one of those that are gone.
    pub(crate) fn forget<E: serde::de::DeserializeOwned>(&mut self, is_gone: impl Fn(&E) -> bool) {
        self.tail.forget(is_gone);
    }

    /// Changes the events in memory that hold what must not be shown any more; `change` says
    /// whether it has changed one.
    pub(crate) fn redact<E>(&mut self, change: impl FnMut(&mut E) -> bool)
    where
        E: serde::de::DeserializeOwned + serde::Serialize,
    {
        self.tail.redact(change);
    }

    /// The last durable event.
    pub(crate) fn last(&self) -> Offset {
        self.tail.last()
    }

    /// The record of an offset, while it is under way.
    pub(crate) fn pending_at(&mut self, offset: Offset) -> Option<&mut P> {
        // Offsets have no gaps, so the distance to the last durable one is the place in line.
        let place = offset.as_u64().checked_sub(self.last().as_u64() + 1)?;
        self.pending.get_mut(usize::try_from(place).ok()?)
    }

    /// The last record that is under way, if any is.
    pub(crate) fn newest_pending(&mut self) -> Option<&mut P> {
        self.pending.back_mut()
    }

    /// Whether nothing is under way.
    pub(crate) fn is_settled(&self) -> bool {
        self.pending.is_empty()
    }

    pub(crate) fn pending_len(&self) -> usize {
        self.pending.len()
    }

    /// Accepts a subscriber that was away; `Err`: from where on it asks, further back than memory
    /// reaches.
    pub(crate) fn accept(
        &self,
        since: Option<Since>,
        stream_epoch: &str,
    ) -> Result<Attached, Offset> {
        let offset = self.last();
        let missed = match since {
            None => Missed::NotAsked,
            Some(since) if since.is_elsewhere(stream_epoch) => Missed::TooMuch,
            Some(since) => match self.tail.after(since.offset) {
                Some(publications) => Missed::from_memory(&publications),
                None => return Err(since.offset),
            },
        };
        Ok(Attached { offset, missed })
    }
}
