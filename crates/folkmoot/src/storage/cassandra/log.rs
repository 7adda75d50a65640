//! The log in Cassandra, and its fence: one writer, whose name each bucket of entries has.
//!
//! An entry is one conditional batch on the partition of its bucket: it is written as a whole where
//! the bucket has our name and the entry before it, and not at all otherwise. Who takes over draws
//! a name of its own in the bucket that is not full; as each bucket is opened by a condition, too,
//! and keeps its name when its entries are deleted, a writer that was replaced finds none to go on
//! in.
//!
//! A batch of which nobody knows is first excluded from taking effect any more, by drawing our own
//! name anew, and then looked for. Until that is done nothing else is written.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::names::Name;
use super::session::{Failure, Kept, Session, Written, away};
use crate::storage::sql::SqlError;

/// Entries in a bucket: with entries of half a MiB, a partition of 128 MiB.
const BUCKET_ENTRIES: u64 = 256;
/// Entries read at once.
const READ_ENTRIES: u64 = 32;
/// How long writes wait for servers that cannot be used.
pub(super) const AWAY_MAX: Duration = Duration::from_secs(10);

/// The bucket that an entry is in; the first entry is 1.
pub(super) fn bucket_of(number: u64) -> i64 {
    (number.saturating_sub(1) / BUCKET_ENTRIES).cast_signed()
}

/// The last entry of a bucket.
pub(super) fn last_of(bucket: i64) -> u64 {
    (bucket + 1).cast_unsigned() * BUCKET_ENTRIES
}

/// The log, with us as its writer.
pub(super) struct Log {
    session: Arc<Session>,
    writer: Name,
    /// The bucket that has our name.
    bucket: i64,
    last: u64,
    /// An entry behind the last one of which nobody knows whether it was written.
    doubt: Option<Doubt>,
}

#[derive(Clone, Copy)]
struct Doubt {
    entry: Name,
    /// Our name from then on.
    writer: Name,
}

/// What became of an entry that was in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    Written,
    NotWritten,
}

impl Log {
    /// Takes the log over from whoever writes it, which begins behind `after` at the earliest.
    pub(super) fn take_over(session: Arc<Session>, after: u64) -> Result<Self, SqlError> {
        let (writer, mut bucket) = (Name::draw(), bucket_of(after + 1));
        loop {
            let until = Instant::now() + AWAY_MAX;
            let Some(head) = session.insist(until, async |it| it.head(bucket).await)? else {
                let begins = last_of(bucket - 1);
                if begins < after {
                    return Err(lost(&format!("its entries up to {after} are not there")));
                }
                // Whoever was faster is taken over from in the next round.
                session.insist(until, async |it| it.open(bucket, writer, begins).await)?;
                continue;
            };
            if head.last == last_of(bucket) {
                bucket += 1;
                continue;
            }
            if head.writer != writer {
                let from = head.writer;
                session.insist(until, async |it| it.draw(bucket, from, writer).await)?;
                continue;
            }
            return Ok(Self { session, writer, bucket, last: head.last, doubt: None });
        }
    }

    /// The number of the last entry.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Whether an entry is in doubt.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.doubt.is_some()
    }

    /// Writes the next entry; `Ok` once a majority of the replicas has it.
    ///
    /// # Errors
    /// Nothing was written, unless [`Self::is_in_doubt`].
    pub(super) fn append(
        &mut self,
        name: Name,
        data: &[u8],
        until: Instant,
    ) -> Result<(), SqlError> {
        self.open_next(until)?;
        let number = self.last + 1;
        loop {
            let Self { bucket, writer, .. } = *self;
            let entry = Written { bucket, writer, number, name, data };
            match self.session.wait_for(self.session.append(entry)) {
                Ok(true) => break,
                Ok(false) => return Err(SqlError::Fenced),
                Err(Failure::Refused(why)) => return Err(SqlError::Refused(why)),
                Err(failure @ Failure::NotWritten(_)) => self.session.pause(until, &failure)?,
                Err(failure @ Failure::Unknown(_)) => {
                    tracing::warn!(?failure, number, "nobody knows whether an entry was written");
                    self.doubt = Some(Doubt { entry: name, writer: Name::draw() });
                    if self.settle(until)? == Some(Settled::Written) {
                        return Ok(());
                    }
                }
            }
        }
        self.last = number;
        Ok(())
    }

    /// Says what became of an entry that is in doubt, if one is.
    ///
    /// # Errors
    /// It is not known yet; or somebody else writes now.
    pub(super) fn settle(&mut self, until: Instant) -> Result<Option<Settled>, SqlError> {
        let Some(doubt) = self.doubt else { return Ok(None) };
        let (bucket, number) = (self.bucket, self.last + 1);
        loop {
            let drawn = self.session.wait_for(self.session.draw(bucket, self.writer, doubt.writer));
            match drawn {
                Ok(_) => break,
                Err(failure) => self.session.pause(until, &failure)?,
            }
        }
        let head = self.session.insist(until, async |it| it.head(bucket).await)?;
        let head = head.filter(|head| head.writer == doubt.writer).ok_or(SqlError::Fenced)?;
        // From here on the batch in doubt cannot be written any more.
        let written = match head.last {
            last if last == number => Some(self.name_of(number, until)?),
            _ => None,
        };
        (self.writer, self.doubt) = (doubt.writer, None);
        Ok(Some(match written {
            None => Settled::NotWritten,
            Some(name) if name == Some(doubt.entry) => {
                self.last = number;
                Settled::Written
            }
            Some(_) => return Err(SqlError::Fenced),
        }))
    }

    /// Whether we still are the writer, as far as the servers say.
    pub(super) fn look(&self) -> Result<(), SqlError> {
        let head = self.session.wait_for(self.session.head(self.bucket));
        match head.map_err(|failure| away(&failure))? {
            Some(head) if self.is_ours(head.writer) => Ok(()),
            _ => Err(SqlError::Fenced),
        }
    }

    fn is_ours(&self, writer: Name) -> bool {
        writer == self.writer || self.doubt.is_some_and(|doubt| doubt.writer == writer)
    }

    /// Opens the bucket of the next entry, if that is another one.
    fn open_next(&mut self, until: Instant) -> Result<(), SqlError> {
        let (bucket, last, writer) = (bucket_of(self.last + 1), self.last, self.writer);
        if bucket == self.bucket {
            return Ok(());
        }
        let is_open = self.session.insist(until, async |it| it.open(bucket, writer, last).await)?;
        if !is_open {
            // By ourselves, if the answer to that was not heard.
            let head = self.session.insist(until, async |it| it.head(bucket).await)?;
            if head.is_none_or(|head| head.writer != writer) {
                return Err(SqlError::Fenced);
            }
        }
        self.bucket = bucket;
        Ok(())
    }

    fn name_of(&self, number: u64, until: Instant) -> Result<Option<Name>, SqlError> {
        name_of(&self.session, number, until)
    }
}

/// The name of an entry; `None` if it is not there.
pub(super) fn name_of(
    session: &Session,
    number: u64,
    until: Instant,
) -> Result<Option<Name>, SqlError> {
    let (bucket, range) = (bucket_of(number), (number - 1, number));
    let found = session.insist(until, async |it| it.entries(bucket, range).await)?;
    Ok(found.first().map(|kept| kept.name))
}

/// The number of the last entry that is there, looked for from `after` on.
pub(super) fn last_entry(session: &Session, after: u64) -> Result<u64, SqlError> {
    let until = Instant::now() + AWAY_MAX;
    let (mut bucket, mut last) = (bucket_of(after + 1), after);
    while let Some(head) = session.insist(until, async |it| it.head(bucket).await)? {
        last = head.last.max(last);
        if head.last < last_of(bucket) {
            break;
        }
        bucket += 1;
    }
    Ok(last)
}

/// Hands each entry behind `after` to `take`, up to `last`, which must all be there.
pub(super) fn read(
    session: &Session,
    mut after: u64,
    last: u64,
    mut take: impl FnMut(Kept) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    while after < last {
        let until = Instant::now() + AWAY_MAX;
        let bucket = bucket_of(after + 1);
        let range = (after, (after + READ_ENTRIES).min(last_of(bucket)).min(last));
        let found = session.insist(until, async |it| it.entries(bucket, range).await)?;
        for kept in found {
            if kept.number != after + 1 {
                break;
            }
            after = kept.number;
            take(kept)?;
        }
        if after != range.1 {
            return Err(lost(&format!("its entry {} is not there", after + 1)));
        }
    }
    Ok(())
}

fn lost(what: &str) -> SqlError {
    SqlError::Refused(format!("the log in Cassandra is damaged: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_entry_is_in_the_bucket_whose_last_one_it_does_not_pass() {
        assert_eq!((bucket_of(1), bucket_of(256), bucket_of(257)), (0, 0, 1));
        assert_eq!((last_of(-1), last_of(0), last_of(1)), (0, 256, 512));
        assert!((1..2_000).all(|number| {
            let bucket = bucket_of(number);
            last_of(bucket - 1) < number && number <= last_of(bucket)
        }));
    }
}
