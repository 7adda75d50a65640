//! One channel: who is subscribed, its history, and the idempotency keys it has seen.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use super::across::Across;
use super::delta::Deltas;
use super::subscribers::Subscribers;
use super::{Heard, KEYS_KEPT_MS, MovedChannel, MovedKey, Position, Post, Present};
use crate::connection::Connection;
use crate::durable::Restored;
use crate::epoch::Epochs;
use crate::payload::{Encoded, Payload};
use crate::stream::{Keep, Query, Stream};
use crate::tags::Filter;
use crate::version::Version;

/// Those present that are told at once: whoever asks about a large channel holds its neighbours up
/// for no longer than these take.
pub(super) const PRESENT_LEN_MAX: usize = 1_024;
/// Until a channel with publications on their way to the disk is looked at again.
const IN_FLIGHT_PAUSE_MS: u64 = 1_000;

#[derive(Debug, Default)]
pub(super) struct Channel {
    /// `None`: nothing here was ever kept.
    stream: Option<Box<Stream>>,
    pub(super) subscribers: Subscribers,
    keys: Option<Box<Keys>>,
    /// Of the newest publication that had one; for as long as there are numbers.
    pub(super) version: Option<Arc<Version>>,
    /// When it is looked at again.
    pub(super) due: Option<u64>,
    /// Publications on their way to the disk, which have their numbers.
    pub(super) in_flight: u64,
    /// Whether something of it is on disk.
    pub(super) is_durable: bool,
    /// What was pushed last, while somebody gets deltas.
    pub(super) base: Option<Arc<Payload>>,
    /// What it has to do with other nodes.
    pub(super) across: Across,
}

#[derive(Debug)]
pub(super) struct Subscriber {
    pub(super) connection: Arc<Connection>,
    pub(super) info: Bytes,
    pub(super) has_presence: bool,
    pub(super) tells_coming: bool,
    pub(super) wants_comings: bool,
    pub(super) deltas: Deltas,
    /// Which publications it wants; `None`: all.
    pub(super) filter: Option<Box<Filter>>,
    /// Whether it was promised to be told if something is missing.
    pub(super) is_positioned: bool,
    /// Whether the server made it. Its client cannot make it again without connecting again.
    pub(super) is_by_server: bool,
    /// The last that its reply had, where publications come from another actor and may be older.
    pub(super) since: u64,
}

impl Subscriber {
    /// Whether it is to get a publication.
    pub(super) fn wants(&self, heard: &Heard) -> bool {
        let is_new = heard.offset == 0 || heard.offset > self.since;
        is_new && self.filter.as_ref().is_none_or(|filter| filter.matches(&heard.payload.tags))
    }
}

/// What became of publications by their keys, and until when that is known.
#[derive(Debug, Default)]
struct Keys {
    known: HashMap<Arc<str>, (Position, u64)>,
    /// All are known for the same time, so the first to come is the first to go.
    order: VecDeque<(u64, Arc<str>)>,
}

impl Keys {
    /// Forgets the old ones; says when the next one goes.
    fn expire(&mut self, now: u64) -> Option<u64> {
        while self.order.front().is_some_and(|(until, _)| *until <= now) {
            let (_, key) = self.order.pop_front()?;
            // It may have been used anew since.
            if self.known.get(&key).is_some_and(|(_, until)| *until <= now) {
                self.known.remove(&key);
            }
        }
        self.order.front().map(|(until, _)| *until)
    }
}

impl Keys {
    /// As they are kept on disk.
    fn saved(&self) -> VecDeque<(Arc<str>, u64, u64)> {
        let known = self.order.iter().filter_map(|(until, key)| {
            // One that was used anew since has its later place.
            let (position, _) = self.known.get(key).filter(|(_, last)| last == until)?;
            // What went into no history is known only here.
            (position.offset > 0).then(|| (key.clone(), position.offset, *until))
        });
        known.collect()
    }

    /// All of them, the first to go first.
    fn all(mut self) -> Vec<MovedKey> {
        let known = self.order.into_iter().filter_map(|(until, key)| {
            let (position, last) = self.known.remove(&key)?;
            // It was used anew since: then its later place counts.
            if last != until {
                self.known.insert(key, (position, last));
                return None;
            }
            Some(MovedKey { key, position, until })
        });
        known.collect()
    }
}

impl Channel {
    pub(super) fn stream(&mut self, now: u64, keep: Keep, epochs: &Epochs) -> &mut Stream {
        self.stream.get_or_insert_with(|| Box::new(Stream::new(epochs.current(), now, keep)))
    }

    /// Numbers and keeps a publication, if it is to be kept.
    pub(super) fn push(&mut self, post: &Post, now: u64, epochs: &Epochs) -> Position {
        let Some(keep) = post.keep else { return Position::default() };
        let stream = self.stream(now, keep, epochs);
        let offset = stream.push(post.payload.clone(), now, keep);
        Position { offset, epoch: stream.epoch() }
    }

    /// What became of the publication with this key.
    pub(super) fn repeats(&self, key: &str, now: u64) -> Option<Position> {
        let (position, until) = self.keys.as_ref()?.known.get(key)?;
        (now < *until).then_some(*position)
    }

    /// Where the channel is, if it has this version or a newer one.
    pub(super) fn has_newer(&self, version: &Version) -> Option<Position> {
        let known = self.version.as_ref()?;
        version.is_outdated(known).then(|| self.state().map(|(position, _)| position))?
    }

    pub(super) fn remember(&mut self, key: Arc<str>, position: Position, until: u64) {
        let keys = self.keys.get_or_insert_default();
        keys.known.insert(key.clone(), (position, until));
        keys.order.push_back((until, key));
    }

    /// Removes publications up to a position; the numbers go on.
    pub(super) fn clear(&mut self, up_to: Position) {
        if let Some(stream) = self.stream.as_mut().filter(|stream| stream.epoch() == up_to.epoch) {
            stream.clear(up_to.offset);
        }
    }

    /// The place of the next publication that is written, if all on their way are.
    pub(super) fn next_place(&mut self, now: u64, keep: Keep, epochs: &Epochs) -> Position {
        (self.in_flight, self.is_durable) = (self.in_flight + 1, true);
        let in_flight = self.in_flight;
        let stream = self.stream(now, keep, epochs);
        Position { offset: stream.top() + in_flight, epoch: stream.epoch() }
    }

    /// Takes over what was found on disk.
    pub(super) fn restore(&mut self, restored: Restored, keep: Keep, now: u64) {
        let stream = Stream::restored(&restored, keep);
        let epoch = stream.epoch();
        (self.stream, self.is_durable) = (Some(Box::new(stream)), true);
        self.version = restored.version;
        for (key, offset, until) in restored.keys {
            // The clock by which that was reckoned may have been ahead.
            self.remember(key, Position { offset, epoch }, until.min(now + KEYS_KEPT_MS));
        }
    }

    /// All of it that is on disk; `None`: nothing is, as it has no numbers.
    pub(super) fn saved(&self) -> Option<Restored> {
        let stream = self.stream.as_ref().filter(|stream| self.is_durable && stream.top() > 0)?;
        let keys = self.keys.as_ref().map(|keys| keys.saved()).unwrap_or_default();
        Some(Restored { keys, version: self.version.clone(), ..stream.saved() })
    }

    /// What the next owner gets of it.
    pub(super) fn leave(self, name: Arc<str>) -> MovedChannel {
        let stream = self.stream.as_ref();
        let position = self.state().map(|(position, _)| position);
        let (history_until, numbers_until) = stream.map(|stream| stream.ends()).unwrap_or_default();
        let history = stream.map(|stream| stream.page(&Query::default())).unwrap_or_default();
        let keys = self.keys.map(|keys| keys.all()).unwrap_or_default();
        let version = self.version.as_deref().cloned();
        MovedChannel { name, position, history, history_until, numbers_until, keys, version }
    }

    /// Takes over what another owner had of it.
    pub(super) fn arrive(&mut self, moved: MovedChannel, now: u64) {
        if let Some(position) = moved.position {
            self.stream = Some(Box::new(Stream::moved(position, &moved)));
        }
        self.version = moved.version.map(Arc::new);
        for MovedKey { key, position, until } in moved.keys {
            // The other node's clock may be ahead.
            self.remember(key, position, until.min(now + KEYS_KEPT_MS));
        }
    }

    /// Its epoch and its newest offset, and whether publications are kept.
    pub(super) fn state(&self) -> Option<(Position, bool)> {
        let stream = self.stream.as_ref()?;
        let position = Position { offset: stream.top(), epoch: stream.epoch() };
        Some((position, stream.has_history()))
    }

    /// Forgets what is too old; says when to look again.
    pub(super) fn expire(&mut self, now: u64, epochs: &mut Epochs) -> Option<u64> {
        if self.in_flight > 0 {
            // What is on its way goes on from these numbers.
            return Some(now + IN_FLIGHT_PAUSE_MS);
        }
        let mut stream_at = self.stream.as_mut().and_then(|stream| stream.expire(now));
        let has_numbers = self.stream.as_ref().is_some_and(|stream| stream.top() > 0);
        let is_numbered = has_numbers && stream_at.is_some();
        if !self.is_heard() && !is_numbered {
            // One without numbers begins in the same epoch again.
            (self.stream, self.version, stream_at) = (None, None, None);
            if has_numbers {
                epochs.advance();
            }
        }
        let keys_at = self.keys.as_mut().and_then(|keys| keys.expire(now));
        if keys_at.is_none() {
            self.keys = None;
        }
        stream_at.into_iter().chain(keys_at).min()
    }

    pub(super) fn add(&mut self, subscriber: Subscriber) {
        self.subscribers.insert(subscriber);
    }

    pub(super) fn remove(&mut self, client: &str) -> Option<Subscriber> {
        self.subscribers.remove(client)
    }

    pub(super) fn has_subscribers(&self) -> bool {
        !self.subscribers.is_empty()
    }

    /// Whether somebody is subscribed, here or on another node.
    pub(super) fn is_heard(&self) -> bool {
        self.has_subscribers() || self.across.is_heard()
    }

    pub(super) fn subscribers(&self) -> usize {
        self.subscribers.len()
    }

    /// Sends a push to the subscribers that fit.
    pub(super) fn tell(&self, push: &mut Encoded, fits: impl Fn(&Subscriber) -> bool) {
        for subscriber in self.subscribers.iter().filter(|subscriber| fits(subscriber)) {
            let connection = &subscriber.connection;
            connection.push(push.bytes(connection.format));
        }
    }

    /// The newest publication in its history.
    pub(super) fn newest(&self) -> Option<&Arc<Payload>> {
        self.stream.as_ref()?.newest_payload()
    }

    /// Some of those who are present, before a place in the list.
    pub(super) fn present(&self, before: usize) -> Present {
        let (page, next) = self.subscribers.page(before, PRESENT_LEN_MAX);
        let present = page.iter().filter(|one| one.has_presence);
        let who = present.map(|one| (one.connection.clone(), one.info.clone())).collect();
        Present { who, next }
    }
}
