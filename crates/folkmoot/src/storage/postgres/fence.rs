//! Keeps two nodes from appending to one stream beside each other. A node that was taken for dead may
//! still hold a room that another one has loaded: whoever appends first wins, and what the other one
//! decided without knowing that is refused, with everything behind it in the same stream.
//!
//! The fence is the stream's own next offset, looked at in the transaction that appends, while no
//! other node writes.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::storage::ids::{RoomId, UserId};
use crate::storage::progress::Stream;
use crate::storage::record::Record;
use crate::storage::sql::{Connection, SqlError};
use crate::storage::sqlite::apply::{from_sql, to_sql};

/// Which streams have grown by somebody else, as of these records, in the order of their appends.
pub(super) fn lost(
    transaction: &Connection,
    records: &[Record],
) -> Result<HashSet<Stream>, SqlError> {
    let last = last_offsets(transaction, records)?;
    Ok(mismatched(records, last))
}

/// The stream whose order a record belongs to, and its place in it.
pub(super) fn place(record: &Record) -> Option<(Stream, u64)> {
    match record {
        Record::Room(record) => Some((Stream::Room(record.room), record.offset.as_u64())),
        Record::User(record) => Some((Stream::User(record.user), record.offset.as_u64())),
        Record::Cursor(_) | Record::DeviceSeen { .. } => None,
    }
}

/// Streams of which a record does not follow the one before; those that are not in `last` do not
/// exist, and apply drops what is said of them.
fn mismatched(records: &[Record], mut last: HashMap<Stream, u64>) -> HashSet<Stream> {
    let mut lost = HashSet::new();
    for (stream, offset) in records.iter().filter_map(place) {
        let Some(last) = last.get_mut(&stream) else { continue };
        if offset == *last + 1 {
            *last = offset;
        } else {
            lost.insert(stream);
        }
    }
    lost
}

fn last_offsets(
    transaction: &Connection,
    records: &[Record],
) -> Result<HashMap<Stream, u64>, SqlError> {
    let (mut rooms, mut users) = (BTreeSet::new(), BTreeSet::new());
    for (stream, _) in records.iter().filter_map(place) {
        match stream {
            Stream::Room(room) => rooms.insert(room.as_u64()),
            Stream::User(user) => users.insert(user.as_u64()),
        };
    }
    let mut last = HashMap::new();
    if !rooms.is_empty() {
        let sql = "SELECT id, last_offset FROM rooms WHERE id = ?1";
        for (id, offset) in ask(transaction, sql, rooms)? {
            last.insert(Stream::Room(RoomId::from_u64(id)), offset);
        }
    }
    if !users.is_empty() {
        let sql = "SELECT id, last_offset FROM users WHERE id = ?1";
        for (id, offset) in ask(transaction, sql, users)? {
            last.insert(Stream::User(UserId::from_u64(id)), offset);
        }
    }
    Ok(last)
}

fn ask(
    transaction: &Connection,
    sql: &'static str,
    ids: BTreeSet<u64>,
) -> Result<Vec<(u64, u64)>, SqlError> {
    let ids = ids.into_iter().map(to_sql).collect();
    transaction.query_any(sql, ids, |row| Ok((from_sql(row.get(0)?), from_sql(row.get(1)?))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::ids::{Offset, UnixMillis};
    use crate::storage::record::UserRecord;

    fn event(user: u64, offset: u64) -> Record {
        Record::User(UserRecord {
            user: UserId::from_u64(user),
            offset: Offset::from_u64(offset),
            at: UnixMillis::from_u64(1),
            data: "{}".to_owned(),
            effect: None,
        })
    }

    fn stream(user: u64) -> Stream {
        Stream::User(UserId::from_u64(user))
    }

    #[test]
    fn records_that_follow_are_kept_and_a_stream_that_has_moved_on_is_lost() {
        let last = HashMap::from([(stream(1), 4), (stream(2), 9), (stream(3), 2)]);
        let records = [event(1, 5), event(2, 8), event(1, 6), event(3, 4), event(4, 1)];
        assert_eq!(mismatched(&records, last), HashSet::from([stream(2), stream(3)]));
    }

    #[test]
    fn a_record_that_fits_by_chance_behind_one_that_does_not_is_lost_with_it() {
        let last = HashMap::from([(stream(1), 5)]);
        assert_eq!(mismatched(&[event(1, 5), event(1, 6)], last), HashSet::from([stream(1)]));
    }
}
