//! The journal: its youngest events are beside the head, where a turn can write them; older ones
//! are in buckets of a fixed number of events, so that no partition grows for ever.
//!
//! An event is copied to its bucket before it is removed from beside the head, and never changes.
//! So copies may be made twice, and need no fence.

use althing::ActorId;

use super::batch::named;
use super::core::Core;
use super::head::Head;
use super::session::{Cells, Failure, Values, blob, number};
use crate::store::Event;

/// Events in one bucket.
const BUCKET_EVENTS: u64 = 256;
/// Events that are read first, whose size nobody knows: with eight times the largest turn the
/// server still works.
const PAGE_FIRST: usize = 4;
/// Events that are read or copied at once.
const PAGE_EVENTS: usize = 256;
/// Bytes that are read at once, if events are as large as those before them.
const PAGE_BYTES: usize = 1 << 20;
/// Bytes that are copied at once, unless a single event has more.
const COPY_BYTES_MAX: usize = 1 << 20;

/// Events of one journal that were read at once.
struct Page {
    events: Vec<Event>,
    /// Up to which number everything was read.
    read: u64,
}

/// How many events to read next.
struct Pace(usize);

impl Pace {
    fn follow(&mut self, events: &[Event]) {
        let bytes = events.iter().map(|event| event.bytes.len()).sum::<usize>();
        let each = (bytes / events.len().max(1)).max(1);
        self.0 = (PAGE_BYTES / each).clamp(1, PAGE_EVENTS);
    }
}

/// In the order in which statements read it.
fn event(mut cells: Cells) -> Event {
    Event { number: cells.number(), schema: cells.number() as u32, bytes: cells.bytes() }
}

impl Core {
    /// Events after a number, the oldest first.
    pub(super) async fn events(
        &self,
        id: &ActorId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, Failure> {
        loop {
            let head = self.own_head(id).await?;
            let (mut events, mut from, mut pace) = (Vec::new(), after, Pace(PAGE_FIRST));
            while from < head.last_event && events.len() < limit {
                let bucket = (from < head.moved).then_some(from / BUCKET_EVENTS);
                let ends = bucket.map(|bucket| head.moved.min((bucket + 1) * BUCKET_EVENTS));
                let range = (from, ends.unwrap_or(head.last_event));
                let most = pace.0.min(limit - events.len());
                let page = self.page(id, bucket, range, most).await?;
                pace.follow(&page.events);
                from = page.read;
                events.extend(page.events);
            }
            // Otherwise somebody has moved what was looked for in the old place.
            if self.own_head(id).await?.moved == head.moved {
                return Ok(events);
            }
        }
    }

    /// Reads events of a bucket, or of those that are in none, after a number and until another.
    async fn page(
        &self,
        id: &ActorId,
        bucket: Option<u64>,
        (from, until): (u64, u64),
        most: usize,
    ) -> Result<Page, Failure> {
        let all = &self.session.statements;
        let statement = if bucket.is_some() { &all.bucket_read } else { &all.event_read };
        let mut values = if bucket.is_some() { named(id) } else { self.session.owner(id) };
        values.extend(bucket.map(number));
        values.extend([number(from), number(until), page(most)]);
        let rows = self.session.rows(statement, values).await?;
        let events: Vec<_> = rows.into_iter().map(event).collect();
        let is_last = events.len() < most;
        let read = if is_last { until } else { events.last().map_or(until, |it| it.number) };
        Ok(Page { events, read })
    }

    /// The head as this store's own writes have left it.
    async fn own_head(&self, id: &ActorId) -> Result<Head, Failure> {
        let rows =
            self.session.rows(&self.session.statements.head_read, self.session.owner(id)).await?;
        Ok(rows.into_iter().next().map(|mut cells| Head::read(&mut cells)).unwrap_or_default())
    }

    /// Moves events into buckets that they fill. What fails is tried again after a later turn.
    pub(super) async fn move_events(&self, id: &ActorId, mut head: Head) {
        while head.last_event >= head.moved + 2 * BUCKET_EVENTS {
            let moved = head.moved + BUCKET_EVENTS;
            match self.move_bucket(id, head.moved, moved).await {
                Ok(true) => head.moved = moved,
                Ok(false) => return self.lanes.remember(id, None),
                Err(failure) => {
                    tracing::debug!(cause = %failure.cause(), %id, "events stay where they are");
                    return self.lanes.remember(id, None);
                }
            }
            self.lanes.remember(id, Some(head.clone()));
        }
    }

    /// Moves the events after one number up to another; `false` if somebody else has.
    async fn move_bucket(&self, id: &ActorId, from: u64, until: u64) -> Result<bool, Failure> {
        let all = &self.session.statements;
        let (mut copied, mut read, mut pace) = (0, from, Pace(PAGE_FIRST));
        while read < until {
            let page = self.page(id, None, (read, until), pace.0).await?;
            pace.follow(&page.events);
            (copied, read) = (copied + page.events.len() as u64, page.read);
            self.copy(id, from / BUCKET_EVENTS, &page.events).await?;
        }
        if copied != until - from {
            // Somebody else has moved them; what is not there must not be forgotten.
            tracing::debug!(%id, from, until, copied, "events are not there, and are not moved");
            return Ok(false);
        }
        let mut set: Values = vec![number(until)];
        set.extend(self.session.owner(id));
        set.push(number(from));
        let mut forget = self.session.owner(id);
        forget.push(number(until));
        let part = self.session.part(id);
        let moved = vec![(&all.head_moved, set), (&all.event_forget, forget)];
        self.session.write_all_if(part, moved).await
    }

    /// Writes events into their bucket.
    async fn copy(&self, id: &ActorId, bucket: u64, events: &[Event]) -> Result<(), Failure> {
        let (mut copies, mut bytes) = (Vec::new(), 0);
        for event in events {
            let mut values = named(id);
            values.extend([number(bucket), number(event.number)]);
            values.extend([number(u64::from(event.schema)), blob(&event.bytes)]);
            copies.push((&self.session.statements.bucket_write, values));
            bytes += event.bytes.len();
            if bytes > COPY_BYTES_MAX {
                self.session.write_all(std::mem::take(&mut copies)).await?;
                bytes = 0;
            }
        }
        if copies.is_empty() { Ok(()) } else { self.session.write_all(copies).await }
    }
}

/// A limit in a statement.
pub(super) fn page(rows: usize) -> Option<scylla::value::CqlValue> {
    Some(scylla::value::CqlValue::Int(i32::try_from(rows).unwrap_or(i32::MAX)))
}
