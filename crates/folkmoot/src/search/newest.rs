//! Collects the newest hits that the asker may read. Rooms are filtered here, for every document
//! and whatever the query says, so that no form of a query gets around it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::sync::Arc;

use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::ColumnValues;
use tantivy::{DocId, Score, SegmentOrdinal, SegmentReader};

use super::place::Place;
use crate::storage::{RoomId, Seq, UnixMillis};

/// Which hits count.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    /// The rooms that may be looked into.
    pub(crate) rooms: HashSet<RoomId>,
    /// Sent then or later.
    pub(crate) after: Option<UnixMillis>,
    /// Sent earlier than that.
    pub(crate) before: Option<UnixMillis>,
    /// Only what comes after this in the order of hits.
    pub(crate) cursor: Option<Place>,
    /// So many.
    pub(crate) limit: usize,
}

impl Bounds {
    fn allow(&self, place: &Place) -> bool {
        self.after.is_none_or(|after| place.at >= after)
            && self.before.is_none_or(|before| place.at < before)
            && self.cursor.is_none_or(|cursor| *place < cursor)
            && self.rooms.contains(&place.room)
    }
}

/// A collector of places, newest first.
pub(crate) struct Newest(pub(crate) Arc<Bounds>);

pub(crate) struct NewestOfSegment {
    bounds: Arc<Bounds>,
    at: Arc<dyn ColumnValues<u64>>,
    room: Arc<dyn ColumnValues<u64>>,
    seq: Arc<dyn ColumnValues<u64>>,
    /// The oldest of the newest is on top.
    newest: BinaryHeap<Reverse<Place>>,
}

impl Collector for Newest {
    type Fruit = Vec<Place>;
    type Child = NewestOfSegment;

    fn for_segment(
        &self,
        _: SegmentOrdinal,
        segment: &SegmentReader,
    ) -> tantivy::Result<NewestOfSegment> {
        let column = |name: &str| -> tantivy::Result<Arc<dyn ColumnValues<u64>>> {
            Ok(segment.fast_fields().u64(name)?.first_or_default_col(0))
        };
        Ok(NewestOfSegment {
            bounds: self.0.clone(),
            at: column("at")?,
            room: column("room")?,
            seq: column("seq")?,
            newest: BinaryHeap::new(),
        })
    }

    fn requires_scoring(&self) -> bool {
        false
    }

    fn merge_fruits(&self, segments: Vec<Vec<Place>>) -> tantivy::Result<Vec<Place>> {
        let mut places = segments.concat();
        places.sort_unstable_by_key(|place| Reverse(*place));
        places.truncate(self.0.limit);
        Ok(places)
    }
}

impl SegmentCollector for NewestOfSegment {
    type Fruit = Vec<Place>;

    fn collect(&mut self, document: DocId, _: Score) {
        let place = Place {
            at: UnixMillis::from_u64(self.at.get_val(document)),
            room: RoomId::from_u64(self.room.get_val(document)),
            seq: Seq::from_u64(self.seq.get_val(document)),
        };
        let is_full = self.newest.len() == self.bounds.limit;
        // The cheap question first: most documents of a long history are too old.
        if is_full && self.newest.peek().is_some_and(|Reverse(oldest)| place <= *oldest) {
            return;
        }
        if !self.bounds.allow(&place) {
            return;
        }
        if is_full {
            self.newest.pop();
        }
        self.newest.push(Reverse(place));
    }

    fn harvest(self) -> Vec<Place> {
        self.newest.into_iter().map(|Reverse(place)| place).collect()
    }
}
