//! What is due, of all actors: an index by the minute, which is behind the truth in one direction
//! only.
//!
//! The truth about a delivery is its row beside its owner's head. Its entry in the index is written
//! before that row and removed after it, each under a name of its own; so whatever is kept has an
//! entry, and an entry whose name the row does not bear is stale. Stale entries are passed over,
//! and removed once nobody can be about to write their row.
//!
//! A list of minutes says where to look. A minute is written down after its entry and before the
//! row, and is read back, because a clock that was ahead may have left a removal above it. It is
//! forgotten as of before it was found empty. So who is stopped in between, for however long, loses
//! nothing. Each minute is in a few partitions, so that none becomes too large.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, SystemTime};

use althing::remote::Letter;
use althing::stable_hash::fnv1a;
use althing::{ActorId, Timestamp};
use futures_util::future::{join_all, try_join_all};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::batch::{Postings, named};
use super::core::Core;
use super::journal::page;
use super::session::{Cells, Failure, Values, blob, number};
use crate::delivery::{Delivery, Mark};

/// Milliseconds in one bucket of the index.
const BUCKET_MS: u64 = 60_000;
/// Partitions of a bucket.
const SHARDS: u8 = 8;
/// Entries read of each partition at once.
const PAGE_ENTRIES: usize = 256;
/// Rows read at once to compare entries with them.
pub(super) const READS_AT_ONCE: usize = 64;
/// A stale entry of that age is removed: whoever wrote it has written its row long since, or never
/// will. Longer than a call waits and what two clocks may differ.
const STALE_AFTER: Duration = Duration::from_secs(600);
/// For so long a minute that was written down is not written again.
const MINUTE_IS_KNOWN: Duration = Duration::from_secs(10);
/// An empty minute is forgotten as of so long before it was read: whoever has written it down since
/// may have used it after that. More than the time above and what two clocks may differ together.
const MINUTE_IS_USED: Duration = Duration::from_secs(120);
/// By how much more a minute is written ahead of the clock after each time that it was not there
/// when it was read back; doubled so often, it is above any clock that was ever ahead.
const AHEAD_FIRST: Duration = Duration::from_secs(60);
const AHEAD_TIMES: u32 = 24;
/// Minutes in memory, at most.
const MINUTES_MAX: usize = 4_096;

/// An entry of the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Announced {
    pub(super) name: String,
    pub(super) at: u64,
    pub(super) entry: Vec<u8>,
}

/// Minutes that were written down of late, each with when that was, by both clocks: one stands
/// still while the machine sleeps, and the other one may be set.
#[derive(Debug, Default)]
pub(super) struct Minutes(Mutex<HashMap<u64, (Instant, Duration)>>);

/// A place in the index: entries of one mark are in the order of their own names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    mark: Mark,
    entry: Vec<u8>,
}

impl Position {
    /// Behind all entries of that mark: their names are shorter.
    fn behind(mark: Mark) -> Self {
        Self { mark, entry: vec![u8::MAX; 17] }
    }
}

/// A delivery as its row says.
pub(super) struct Posted {
    pub(super) at: u64,
    pub(super) entry: Vec<u8>,
    pub(super) delivery: Delivery,
}

/// An entry as the index says.
#[derive(Debug)]
struct Found {
    place: Position,
    made: u64,
}

fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

fn micros(time: Duration) -> Option<scylla::value::CqlValue> {
    number(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}

fn shard(id: &ActorId) -> u8 {
    let key = id.key().map_or("", |key| key);
    let hash = fnv1a(id.kind().as_str().bytes().chain(key.bytes()));
    // Its low bits alone are those of the last letters.
    ((hash >> 32) % u64::from(SHARDS)) as u8
}

fn partition(bucket: u64, shard: u8) -> Values {
    vec![number(bucket), Some(scylla::value::CqlValue::TinyInt(shard.cast_signed()))]
}

/// An entry's place.
fn place(id: &ActorId, at: u64, name: &str, entry: &[u8]) -> Values {
    let mut values = partition(at / BUCKET_MS, shard(id));
    values.push(number(at));
    values.extend(named(id));
    values.extend([blob(name.as_bytes()), blob(entry)]);
    values
}

/// Times are kept as signed numbers; those beyond are further away than anybody waits.
pub(super) fn signed(time: Timestamp) -> u64 {
    time.0.min(i64::MAX.cast_unsigned())
}

impl Core {
    pub(super) fn announced(&self, postings: &Postings<'_>) -> Vec<Announced> {
        let put = postings.values().flatten();
        put.map(|delivery| self.entry(&delivery.name, signed(delivery.due))).collect()
    }

    pub(super) fn entry(&self, name: &str, at: u64) -> Announced {
        Announced { name: name.to_owned(), at, entry: self.names.next() }
    }

    /// Writes entries for what is about to be written; returns those of what it replaces.
    pub(super) async fn announce(
        &self,
        id: &ActorId,
        postings: &Postings<'_>,
        announced: &[Announced],
    ) -> Result<Vec<Announced>, Failure> {
        self.write_entries(id, announced).await?;
        let replaced =
            try_join_all(postings.keys().map(|name| self.posted(id, name, false))).await?;
        let entry = |(name, posted): (&&str, Posted)| Announced {
            name: (*name).to_owned(),
            at: posted.at,
            entry: posted.entry,
        };
        let replaced = postings.keys().zip(replaced);
        Ok(replaced.filter_map(|(name, posted)| Some(entry((name, posted?)))).collect())
    }

    pub(super) async fn write_entries(
        &self,
        id: &ActorId,
        announced: &[Announced],
    ) -> Result<(), Failure> {
        let made = number(u64::try_from(now().as_millis()).unwrap_or(u64::MAX));
        let write = |it: &Announced| {
            let mut values = place(id, it.at, &it.name, &it.entry);
            values.push(made.clone());
            self.session.write(&self.session.statements.due_write, values)
        };
        try_join_all(announced.iter().map(write)).await?;
        // Not before: who finds a minute empty forgets it as of then.
        let minutes: BTreeSet<_> = announced.iter().map(|it| it.at / BUCKET_MS).collect();
        try_join_all(minutes.into_iter().map(|minute| self.write_down(minute))).await?;
        Ok(())
    }

    /// Removes entries that are stale. What fails is found later.
    pub(super) async fn withdraw(&self, id: &ActorId, stale: &[Announced]) {
        let remove = |it: &Announced| {
            let place = place(id, it.at, &it.name, &it.entry);
            self.session.write(&self.session.statements.due_remove, place)
        };
        join_all(stale.iter().map(remove)).await;
    }

    /// Writes a minute down, unless that was done just now.
    async fn write_down(&self, bucket: u64) -> Result<(), Failure> {
        let begun = (Instant::now(), now());
        let is_fresh = |(at, clock): &(Instant, Duration)| {
            let shows = begun.1.checked_sub(*clock);
            at.elapsed() < MINUTE_IS_KNOWN && shows.is_some_and(|since| since < MINUTE_IS_KNOWN)
        };
        if self.minutes.0.lock().get(&bucket).is_some_and(is_fresh) {
            return Ok(());
        }
        let all = &self.session.statements;
        for time in 0..=AHEAD_TIMES {
            let ahead = if time == 0 { Duration::ZERO } else { AHEAD_FIRST * (1 << (time - 1)) };
            let values = vec![number(bucket), micros(begun.1 + ahead)];
            self.session.write(&all.minute_write, values).await?;
            let range = vec![number(bucket), number(bucket)];
            if !self.session.rows(&all.minute_read, range).await?.is_empty() {
                break;
            }
        }
        let mut minutes = self.minutes.0.lock();
        if minutes.len() >= MINUTES_MAX {
            minutes.clear();
        }
        minutes.insert(bucket, begun);
        Ok(())
    }

    /// A delivery by its row; with `is_certain`, as the last write has left it.
    pub(super) async fn posted(
        &self,
        id: &ActorId,
        name: &str,
        is_certain: bool,
    ) -> Result<Option<Posted>, Failure> {
        let all = &self.session.statements;
        let mut values = self.session.owner(id);
        values.push(blob(name.as_bytes()));
        let rows = if is_certain {
            let read = self.session.rows(&all.delivery_serial, values);
            self.session.alone(self.session.part(id), read).await?
        } else {
            self.session.rows(&all.delivery_read, values).await?
        };
        Ok(rows.into_iter().next().map(|cells| posted(id, name.to_owned(), cells)))
    }

    pub(super) async fn due(
        &self,
        until: Timestamp,
        after: Option<&Mark>,
        limit: usize,
    ) -> Result<Vec<Delivery>, Failure> {
        let until = signed(until);
        let first = after.map_or(0, |mark| signed(mark.due) / BUCKET_MS);
        let range = vec![number(first), number(until / BUCKET_MS)];
        let minutes = self.session.rows(&self.session.statements.minute_read, range).await?;
        let mut due = Vec::new();
        for mut minute in minutes {
            if due.len() >= limit {
                break;
            }
            let bucket = minute.number();
            let after = after.filter(|_| bucket == first).cloned().map(Position::behind);
            self.due_in(bucket, until, after, limit, &mut due).await?;
        }
        Ok(due)
    }

    /// Adds what is due in one minute.
    async fn due_in(
        &self,
        bucket: u64,
        until: u64,
        mut after: Option<Position>,
        limit: usize,
        due: &mut Vec<Delivery>,
    ) -> Result<(), Failure> {
        let most = PAGE_ENTRIES.min(limit.saturating_add(1));
        let (begun, mut is_empty) = (now(), after.is_none());
        loop {
            let end = until.min(bucket * BUCKET_MS + (BUCKET_MS - 1));
            let shards = (0..SHARDS).map(|shard| self.entries(bucket, shard, end, &after, most));
            let shards = try_join_all(shards).await?;
            // Beyond the end of a full page, that partition may have more.
            let full = shards.iter().filter(|found| found.len() == most);
            let end = full.filter_map(|found| found.last()).map(|last| last.place.clone()).min();
            let mut found: Vec<_> = shards.into_iter().flatten().collect();
            is_empty &= found.is_empty();
            found.sort_by(|one, other| one.place.cmp(&other.place));
            found.retain(|it| end.as_ref().is_none_or(|end| it.place <= *end));
            after = found.last().map(|last| last.place.clone());
            for found in found.chunks(READS_AT_ONCE) {
                let kept = try_join_all(found.iter().map(|it| self.kept_as(it))).await?;
                let room = limit - due.len();
                due.extend(kept.into_iter().flatten().take(room));
            }
            if end.is_none() || due.len() >= limit {
                break;
            }
        }
        if is_empty {
            self.forget(bucket, begun).await;
        }
        Ok(())
    }

    /// Entries of a partition until then. If so much was removed there that the server does not
    /// pass over it at once, it is read in parts.
    async fn entries(
        &self,
        bucket: u64,
        shard: u8,
        until: u64,
        after: &Option<Position>,
        most: usize,
    ) -> Result<Vec<Found>, Failure> {
        // Ends of parts that were too long, the next one last.
        let mut ends = vec![until];
        let (mut found, mut from) = (Vec::new(), after.clone());
        let mut begin = after.as_ref().map_or(bucket * BUCKET_MS, |it| signed(it.mark.due));
        while let Some(end) = ends.last().copied().filter(|_| found.len() < most) {
            match self.part(bucket, shard, end, &from, most - found.len()).await {
                Ok(part) => {
                    ends.pop();
                    begin = end + 1;
                    // Every entry has a name of its own, so nothing of that time is before that.
                    let (owner, name) = (ActorId::named("", ""), String::new());
                    let mark = Mark { due: Timestamp(begin), owner, name };
                    from = Some(Position { mark, entry: Vec::new() });
                    found.extend(part);
                }
                Err(Failure::Unreadable(_)) if begin < end => ends.push(begin + (end - begin) / 2),
                Err(failure) => return Err(failure),
            }
        }
        Ok(found)
    }

    async fn part(
        &self,
        bucket: u64,
        shard: u8,
        until: u64,
        after: &Option<Position>,
        most: usize,
    ) -> Result<Vec<Found>, Failure> {
        let mut values = partition(bucket, shard);
        if let Some(Position { mark, entry }) = after {
            values.push(number(signed(mark.due)));
            values.extend(named(&mark.owner));
            values.extend([blob(mark.name.as_bytes()), blob(entry)]);
        } else {
            // Nothing is before that.
            values.push(Some(scylla::value::CqlValue::BigInt(-1)));
            values.extend([(); 4].map(|()| blob(&[])));
        }
        values.extend([number(until), page(most)]);
        let rows = self.session.rows(&self.session.statements.due_read, values).await?;
        Ok(rows.into_iter().map(found).collect())
    }

    /// The delivery of an entry; `None` if it is stale.
    async fn kept_as(&self, found: &Found) -> Result<Option<Delivery>, Failure> {
        let Position { mark: Mark { owner: id, name, .. }, entry } = &found.place;
        let is_its = |posted: &Posted| posted.entry == *entry;
        let posted = self.posted(id, name, false).await?.filter(is_its);
        let age = now().saturating_sub(Duration::from_millis(found.made));
        if posted.is_none() && age > STALE_AFTER {
            // A write that was never answered may still be on its way, but not past this.
            let posted = self.posted(id, name, true).await?.filter(is_its);
            if posted.is_none() {
                let (at, entry) = (signed(found.place.mark.due), entry.clone());
                self.withdraw(id, &[Announced { name: name.clone(), at, entry }]).await;
            }
            return Ok(posted.map(|posted| posted.delivery));
        }
        Ok(posted.map(|posted| posted.delivery))
    }

    /// Forgets a minute in which nothing was since before then, if it is over: one that is to come
    /// is used.
    async fn forget(&self, bucket: u64, begun: Duration) {
        let is_over = u128::from(bucket + 1) * u128::from(BUCKET_MS) < begun.as_millis();
        if is_over {
            let as_of = micros(begun.saturating_sub(MINUTE_IS_USED));
            let values = vec![as_of, number(bucket)];
            // It is found empty again if this fails.
            _ = self.session.write(&self.session.statements.minute_remove, values).await;
        }
    }
}

/// Reads a row of which the name has been read.
pub(super) fn posted(id: &ActorId, name: String, mut cells: Cells) -> Posted {
    let (at, entry) = (cells.number(), cells.bytes());
    let cron = cells.maybe_bytes().and_then(|cron| String::from_utf8(cron).ok());
    let (kind, key) = (cells.text(), cells.text());
    let to = ActorId::named(&kind, key);
    let letter = Letter { to, message: cells.text(), body: cells.bytes() };
    let delivery = Delivery { owner: id.clone(), name, due: Timestamp(at), cron, letter };
    Posted { at, entry, delivery }
}

fn found(mut cells: Cells) -> Found {
    let due = Timestamp(cells.number());
    let (kind, key) = (cells.text(), cells.text());
    let owner = ActorId::named(&kind, key);
    let mark = Mark { due, owner, name: cells.text() };
    Found { place: Position { mark, entry: cells.bytes() }, made: cells.number() }
}
