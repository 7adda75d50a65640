//! One channel's numbered history, as a value: times come in, publications go out.
//!
//! Offsets rise by one and are never given twice in one epoch. History is bounded in number, and
//! goes as a whole when nothing was published for its time to live; the numbers stay for longer.

use std::collections::VecDeque;
use std::sync::Arc;

use althing::Wire;
use folkmoot_protocol::frame::Publication;

use crate::channels::{MovedChannel, Position};
use crate::durable::Restored;
use crate::epoch::Epoch;
use crate::payload::Payload;

/// How much of a channel is kept.
#[derive(Debug, Clone, Copy, Wire)]
pub(crate) struct Keep {
    pub(crate) len_max: usize,
    pub(crate) ttl_ms: u64,
    /// How long the numbers outlive the last publication.
    pub(crate) numbers_ttl_ms: u64,
    /// Whether it is on disk before anybody hears of it.
    pub(crate) is_durable: bool,
}

#[derive(Debug)]
pub(crate) struct Stream {
    epoch: Epoch,
    /// Of the newest publication; 0: there was none.
    top: u64,
    /// The newest ones without a gap, so that each one's offset follows from its place.
    history: VecDeque<Arc<Payload>>,
    /// Milliseconds on the server's clock.
    history_until: u64,
    numbers_until: u64,
    /// When the newest one was published.
    at: u64,
}

/// What somebody missed.
#[derive(Debug, PartialEq)]
pub(crate) struct Missed {
    pub(crate) publications: Vec<Publication>,
    /// Whether that is all of it.
    pub(crate) is_all: bool,
}

/// Which part of a history is asked for.
#[derive(Debug, Clone, Default, Wire)]
pub(crate) struct Query {
    /// `None`: all there is.
    pub(crate) limit: Option<usize>,
    pub(crate) since: Option<u64>,
    pub(crate) is_reverse: bool,
}

impl Stream {
    pub(crate) fn new(epoch: Epoch, now: u64, keep: Keep) -> Self {
        let numbers_until = now.saturating_add(keep.numbers_ttl_ms);
        Self { epoch, top: 0, history: VecDeque::new(), history_until: 0, numbers_until, at: now }
    }

    /// One as it was found on disk.
    pub(crate) fn restored(restored: &Restored, keep: Keep) -> Self {
        let &Restored { epoch, top, at, .. } = restored;
        let surplus = restored.history.len().saturating_sub(keep.len_max.max(1));
        let history = restored.history.iter().skip(surplus).cloned().collect();
        let numbers_until = at.saturating_add(keep.numbers_ttl_ms.max(keep.ttl_ms));
        let history_until = at.saturating_add(keep.ttl_ms);
        Self { epoch, top, history, history_until, numbers_until, at }
    }

    /// One as another owner had it.
    pub(crate) fn moved(position: Position, moved: &MovedChannel) -> Self {
        let Position { offset: top, epoch } = position;
        let history = moved.history.iter().cloned().map(|one| Arc::new(one.into())).collect();
        let &MovedChannel { history_until, numbers_until, .. } = moved;
        // What moves is on no disk, where this would matter.
        Self { epoch, top, history, history_until, numbers_until, at: 0 }
    }

    /// As it is kept on disk.
    pub(crate) fn saved(&self) -> Restored {
        let Self { epoch, top, at, .. } = *self;
        Restored { epoch, top, at, history: self.history.clone(), ..Restored::default() }
    }

    /// Until when publications and numbers are kept.
    pub(crate) fn ends(&self) -> (u64, u64) {
        (self.history_until, self.numbers_until)
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(crate) fn top(&self) -> u64 {
        self.top
    }

    /// Takes a publication in; returns its offset.
    pub(crate) fn push(&mut self, payload: Arc<Payload>, now: u64, keep: Keep) -> u64 {
        self.expire(now);
        self.top += 1;
        while self.history.len() >= keep.len_max.max(1) {
            self.history.pop_front();
        }
        self.history.push_back(payload);
        self.at = now;
        self.history_until = now.saturating_add(keep.ttl_ms);
        self.numbers_until = now.saturating_add(keep.numbers_ttl_ms.max(keep.ttl_ms));
        self.top
    }

    /// Forgets what is too old; says when to look again, or `None` once nothing is left.
    pub(crate) fn expire(&mut self, now: u64) -> Option<u64> {
        if self.history.is_empty() {
            return (now < self.numbers_until).then_some(self.numbers_until);
        }
        if now < self.history_until {
            return Some(self.history_until);
        }
        self.history = VecDeque::new();
        (now < self.numbers_until).then_some(self.numbers_until)
    }

    pub(crate) fn has_history(&self) -> bool {
        !self.history.is_empty()
    }

    /// Removes publications up to an offset; the numbers go on.
    pub(crate) fn clear(&mut self, up_to: u64) {
        let left = usize::try_from(self.top.saturating_sub(up_to)).unwrap_or(usize::MAX);
        self.history.drain(..self.history.len().saturating_sub(left));
        self.history.shrink_to_fit();
    }

    /// What was published after `offset`, `limit` at most. `epoch` is the client's word; an empty one
    /// stands for whatever it is.
    pub(crate) fn since(&self, offset: u64, epoch: &str, limit: usize) -> Missed {
        let known = self.top - self.history.len() as u64;
        let is_same = (epoch.is_empty() || self.epoch.is(epoch)) && offset <= self.top;
        if !is_same || offset < known || self.top - offset > limit as u64 {
            return Missed { publications: Vec::new(), is_all: false };
        }
        let query = Query { since: Some(offset), ..Query::default() };
        Missed { publications: self.page(&query), is_all: true }
    }

    /// The newest publication that fits, if there is one.
    pub(crate) fn newest(&self, fits: impl Fn(&Payload) -> bool) -> Option<Publication> {
        let mut numbered = self.history.iter().rev().zip((1..=self.top).rev());
        numbered.find(|(payload, _)| fits(payload)).map(|(payload, at)| payload.at(at))
    }

    pub(crate) fn newest_payload(&self) -> Option<&Arc<Payload>> {
        self.history.back()
    }

    /// A part of the history: after `since` in its order, or before it in reverse.
    pub(crate) fn page(&self, query: &Query) -> Vec<Publication> {
        let first = self.top - self.history.len() as u64 + 1;
        let limit = query.limit.unwrap_or(usize::MAX);
        let numbered = self.history.iter().zip(first..).map(|(payload, offset)| (offset, payload));
        match query.is_reverse {
            false => numbered
                .filter(|(offset, _)| query.since.is_none_or(|since| *offset > since))
                .take(limit)
                .map(|(offset, payload)| payload.at(offset))
                .collect(),
            true => {
                let mut page: Vec<_> = numbered
                    .filter(|(offset, _)| query.since.is_none_or(|since| *offset < since))
                    .collect();
                page.reverse();
                page.truncate(limit);
                page.into_iter().map(|(offset, payload)| payload.at(offset)).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::epoch::Epochs;

    const KEEP: Keep =
        Keep { len_max: 3, ttl_ms: 1_000, numbers_ttl_ms: 10_000, is_durable: false };

    fn stream(published: u64) -> Stream {
        let mut stream = Stream::new(Epochs::new().current(), 0, KEEP);
        for number in 1..=published {
            assert_eq!(stream.push(payload(number), 0, KEEP), number);
        }
        stream
    }

    fn payload(number: u64) -> Arc<Payload> {
        Arc::new(Payload { data: Bytes::from(number.to_string()), ..Payload::default() })
    }

    fn offsets(publications: &[Publication]) -> Vec<u64> {
        for one in publications {
            assert_eq!(one.data, one.offset.to_string().as_bytes());
        }
        publications.iter().map(|one| one.offset).collect()
    }

    #[test]
    fn what_was_missed_is_given_once_and_in_order_or_not_at_all() {
        let stream = stream(5);
        let epoch = stream.epoch().to_string();
        for (since, wanted) in [(5, Some(vec![])), (4, Some(vec![5])), (2, Some(vec![3, 4, 5]))] {
            let missed = stream.since(since, &epoch, 10);
            assert!(missed.is_all);
            assert_eq!(Some(offsets(&missed.publications)), wanted);
        }
        for since in [0, 1, 6] {
            assert!(!stream.since(since, &epoch, 10).is_all, "{since}");
        }
        assert!(!stream.since(5, "other", 10).is_all);
        assert!(!stream.since(2, &epoch, 2).is_all, "more than one reply may hold");
    }

    #[test]
    fn who_names_no_epoch_gets_what_follows_its_offset_in_any() {
        assert_eq!(offsets(&stream(2).since(0, "", 10).publications), [1, 2]);
        assert!(stream(0).since(0, "", 10).is_all);
        let longer = stream(5);
        assert_eq!(offsets(&longer.since(3, "", 10).publications), [4, 5]);
        assert!(!longer.since(0, "", 10).is_all, "the first are gone");
        assert!(!longer.since(6, "", 10).is_all, "there was none yet");
    }

    #[test]
    fn pages_go_both_ways_from_a_position() {
        let stream = stream(5);
        let page =
            |limit, since, is_reverse| offsets(&stream.page(&Query { limit, since, is_reverse }));
        assert_eq!(page(None, None, false), [3, 4, 5]);
        assert_eq!(page(Some(2), None, true), [5, 4]);
        assert_eq!(page(Some(1), Some(3), false), [4]);
        assert_eq!(page(None, Some(5), true), [4, 3]);
        assert!(page(None, Some(9), false).is_empty());
        assert!(page(Some(0), None, false).is_empty());
    }

    #[test]
    fn history_goes_before_the_numbers_do() {
        let mut stream = stream(2);
        assert_eq!(stream.expire(999), Some(1_000));
        assert_eq!(stream.expire(1_000), Some(10_000));
        assert_eq!(stream.page(&Query::default()), []);
        assert_eq!(stream.push(payload(3), 1_001, KEEP), 3);
        assert_eq!(stream.expire(12_000), None);
    }

    #[test]
    fn removed_history_is_missed_by_who_was_behind() {
        let mut stream = stream(3);
        stream.clear(2);
        let epoch = stream.epoch().to_string();
        assert!(!stream.since(1, &epoch, 10).is_all);
        assert_eq!(offsets(&stream.since(2, &epoch, 10).publications), [3]);
        stream.clear(9);
        assert!(!stream.since(2, &epoch, 10).is_all);
        assert!(stream.since(3, &epoch, 10).is_all);
    }
}
