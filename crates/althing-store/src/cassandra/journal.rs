//! The journal: its youngest events are beside the head, where a turn can write them; older ones
//! are in buckets of a fixed number of events, so that no partition grows for ever.
//!
//! An event is copied to its bucket before it is removed from beside the head, and never changes.
//! So copies may be made twice, and need no fence.

use althing::ActorId;

use super::batch::owner;
use super::core::Core;
use super::head::Head;
use super::session::{Cells, Failure, Values, blob, number};
use crate::store::Event;

/// Events in one bucket.
const BUCKET_EVENTS: u64 = 256;
/// Events that are read or copied at once.
const PAGE_EVENTS: usize = 32;
/// Bytes that are copied at once, unless a single event has more.
const COPY_BYTES_MAX: usize = 1 << 20;

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
            let mut events = Vec::new();
            let mut from = after;
            while from < head.moved && events.len() < limit {
                let bucket = from / BUCKET_EVENTS;
                let until = head.moved.min((bucket + 1) * BUCKET_EVENTS);
                let is_of = Some(bucket);
                from = self.pages(id, is_of, (from, until), limit, &mut events).await?;
            }
            self.pages(id, None, (from, head.last_event), limit, &mut events).await?;
            // Otherwise somebody has moved what was looked for in the old place.
            if self.own_head(id).await?.moved == head.moved {
                return Ok(events);
            }
        }
    }

    /// Reads events of a bucket, or of those that are in none, after a number and until another;
    /// returns up to which it has read.
    async fn pages(
        &self,
        id: &ActorId,
        bucket: Option<u64>,
        (mut from, until): (u64, u64),
        limit: usize,
        events: &mut Vec<Event>,
    ) -> Result<u64, Failure> {
        let all = &self.session.statements;
        let statement = if bucket.is_some() { &all.bucket_read } else { &all.event_read };
        while from < until && events.len() < limit {
            let most = PAGE_EVENTS.min(limit - events.len());
            let mut values = owner(id);
            values.extend(bucket.map(number));
            values.extend([number(from), number(until), page(most)]);
            let rows = self.session.rows(statement, values).await?;
            let is_last = rows.len() < most;
            events.extend(rows.into_iter().map(event));
            from = if is_last { until } else { events.last().map_or(until, |it| it.number) };
        }
        Ok(from)
    }

    /// The head as this store's own writes have left it.
    async fn own_head(&self, id: &ActorId) -> Result<Head, Failure> {
        let rows = self.session.rows(&self.session.statements.head_read, owner(id)).await?;
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
        let mut events = Vec::new();
        self.pages(id, None, (from, until), usize::MAX, &mut events).await?;
        let (mut copies, mut bytes) = (Vec::new(), 0);
        for event in &events {
            let mut values = owner(id);
            values.extend([number(from / BUCKET_EVENTS), number(event.number)]);
            values.extend([number(u64::from(event.schema)), blob(&event.bytes)]);
            copies.push((&all.bucket_write, values));
            bytes += event.bytes.len();
            if bytes > COPY_BYTES_MAX || copies.len() == PAGE_EVENTS {
                self.session.write_all(std::mem::take(&mut copies)).await?;
                bytes = 0;
            }
        }
        if !copies.is_empty() {
            self.session.write_all(copies).await?;
        }
        let mut set: Values = vec![number(until)];
        set.extend(owner(id));
        set.push(number(from));
        let mut forget = owner(id);
        forget.push(number(until));
        self.session.write_all_if(vec![(&all.head_moved, set), (&all.event_forget, forget)]).await
    }
}

/// A limit in a statement.
pub(super) fn page(rows: usize) -> Option<scylla::value::CqlValue> {
    Some(scylla::value::CqlValue::Int(i32::try_from(rows).unwrap_or(i32::MAX)))
}
