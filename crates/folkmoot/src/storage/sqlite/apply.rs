//! Applies a batch of records in one transaction, sorted so that every table grows at few places.
//!
//! Sorting is stable, so each stream keeps its order; effects that cross streams are written so
//! that their order does not matter.

use std::collections::HashMap;

use super::apply_room::RoomRow;
use super::{apply_room, apply_user};
use crate::storage::ids::{Lsn, RoomId};
use crate::storage::record::Record;
use crate::storage::sql::{self, Connection};

/// Events of a stream that are kept: more than the 1,000 that a client may recover. The rest is
/// deleted each time the stream has grown by [`PRUNE_EVERY`].
pub(crate) const EVENTS_KEPT: u64 = 1_024;
/// How far a stream grows between two deletions.
pub(crate) const PRUNE_EVERY: u64 = 256;

/// Applies `records` and notes that everything up to `last` is applied.
pub(crate) fn apply(
    connection: &Connection,
    records: Vec<(Lsn, Record)>,
    last: Lsn,
) -> sql::Result<()> {
    let transaction = connection.begin()?;
    apply_in(&transaction, records, last)?;
    transaction.commit()
}

/// The same in a transaction that somebody else commits.
pub(crate) fn apply_in(
    transaction: &Connection,
    mut records: Vec<(Lsn, Record)>,
    last: Lsn,
) -> sql::Result<()> {
    records.sort_by_key(|(_, record)| sort_key(record));
    let mut rooms = match transaction.is_far() {
        true => apply_room::load_all(transaction, &records)?,
        false => HashMap::new(),
    };
    for group in records.chunk_by(|(_, a), (_, b)| sort_key(a) == sort_key(b)) {
        apply_group(transaction, group, &mut rooms)?;
    }
    let sql = "UPDATE store SET applied_lsn = ?1";
    transaction.prepare_cached(sql)?.execute_later([to_sql(last.0)])
}

/// Rooms before users: a mention looks whether its message is still there.
fn sort_key(record: &Record) -> (u8, u64) {
    match record {
        Record::Room(record) => (0, record.room.as_u64()),
        Record::User(record) => (1, record.user.as_u64()),
        Record::Cursor(cursor) => (1, cursor.user.as_u64()),
        Record::DeviceSeen { device, .. } => (2, device.as_u64()),
    }
}

fn apply_group(
    transaction: &Connection,
    group: &[(Lsn, Record)],
    rooms: &mut HashMap<RoomId, RoomRow>,
) -> sql::Result<()> {
    match &group[0].1 {
        Record::Room(first) => {
            let records = group.iter().filter_map(|(lsn, record)| match record {
                Record::Room(record) => Some((*lsn, record)),
                _ => None,
            });
            let known = rooms.remove(&first.room);
            apply_room::apply(transaction, first.room, known, records)
        }
        Record::User(_) | Record::Cursor(_) => apply_user::apply(transaction, group),
        Record::DeviceSeen { device, .. } => {
            let latest = group.iter().filter_map(|(_, record)| match record {
                Record::DeviceSeen { at, .. } => Some(at.as_u64()),
                _ => None,
            });
            transaction
                .prepare_cached("UPDATE devices SET seen_at = max(seen_at, ?2) WHERE id = ?1")?
                .execute([to_sql(device.as_u64()), to_sql(latest.max().unwrap_or_default())])?;
            Ok(())
        }
    }
}

/// What of a stream is to be deleted after it has grown from `before` to `after`.
pub(crate) fn prune_up_to(before: u64, after: u64) -> Option<u64> {
    let crossed = before / PRUNE_EVERY != after / PRUNE_EVERY;
    (crossed && after > EVENTS_KEPT).then(|| after - EVENTS_KEPT)
}

/// An id or a number as SQLite keeps it: the same 64 bits.
pub(crate) fn to_sql(number: u64) -> i64 {
    number.cast_signed()
}

/// The number behind SQLite's 64 bits.
pub(crate) fn from_sql(number: i64) -> u64 {
    number.cast_unsigned()
}
