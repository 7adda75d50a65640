//! Deletes the oldest messages of a room for good, with all that hangs on them: unlike a message
//! that somebody takes back, they leave no row behind.
//!
//! The events of the stream go with them up to the last of these messages, so that whoever was away
//! for longer is told to fetch anew rather than handed a stream with a gap.

use std::collections::BTreeSet;

use super::apply::{from_sql, to_sql};
use super::apply_room::erase_quotes;
use super::apply_user;
use crate::storage::ids::{RoomId, Seq, UserId};
use crate::storage::record::{MessageDetails, RoomEvent};
use crate::storage::sql::{self, Connection, params};

/// What hangs on messages of a room up to a number.
const ALL_OF_THEM: [&str; 8] = [
    "UPDATE attachments SET expires_at = 0 WHERE room = ?1 AND seq <= ?2",
    "DELETE FROM reactions WHERE room = ?1 AND seq <= ?2",
    "DELETE FROM everyone_mentions WHERE room = ?1 AND seq <= ?2",
    "DELETE FROM quotes WHERE room = ?1 AND quoted <= ?2",
    "DELETE FROM pins WHERE room = ?1 AND seq <= ?2",
    "DELETE FROM saved WHERE room = ?1 AND seq <= ?2",
    "UPDATE rooms SET first_seq = max(first_seq, ?2 + 1) WHERE id = ?1",
    "DELETE FROM messages WHERE room = ?1 AND seq <= ?2",
];

/// Deletes all messages up to one; gives the bytes of their texts.
pub(super) fn expire(transaction: &Connection, room: RoomId, up_to: Seq) -> sql::Result<i64> {
    let place = [to_sql(room.as_u64()), to_sql(up_to.as_u64())];
    let (bytes, last): (i64, Option<i64>) = transaction
        .prepare_cached(
            "SELECT coalesce(sum(length(CAST(body AS BLOB))), 0), max(offset) FROM messages \
             WHERE room = ?1 AND seq <= ?2",
        )?
        .query_row(place, |row| Ok((row.get(0)?, row.get(1)?)))?;
    for user in mentioned(transaction, place)? {
        apply_user::forget_mentions(transaction, user, room, |seq| seq <= up_to)?;
    }
    for quoted in quoted(transaction, place)? {
        erase_quotes(transaction, room, quoted)?;
    }
    if let Some(last) = last {
        transaction
            .prepare_cached("DELETE FROM room_events WHERE room = ?1 AND offset <= ?2")?
            .execute([place[0], last])?;
    }
    empty_edits(transaction, place)?;
    for sql in ALL_OF_THEM {
        transaction.prepare_cached(sql)?.execute(place)?;
    }
    Ok(bytes)
}

/// Whom the messages mention by name.
fn mentioned(transaction: &Connection, place: [i64; 2]) -> sql::Result<BTreeSet<UserId>> {
    let mut statement = transaction.prepare_cached(
        "SELECT details FROM messages WHERE room = ?1 AND seq <= ?2 AND details IS NOT NULL",
    )?;
    let mut rows = statement.query(place)?;
    let mut users = BTreeSet::new();
    while let Some(row) = rows.next()? {
        let details = row.get_ref(0)?.as_blob()?;
        // What does not decode is told of by `folkmoot check`; the message goes all the same.
        let Ok(details) = MessageDetails::decode(Some(details)) else { continue };
        users.extend(details.mentions);
    }
    Ok(users)
}

fn quoted(transaction: &Connection, place: [i64; 2]) -> sql::Result<Vec<Seq>> {
    let mut statement = transaction.prepare_cached(
        "SELECT DISTINCT quoted FROM quotes WHERE room = ?1 AND quoted <= ?2 AND seq > ?2",
    )?;
    let rows = statement.query_map(place, |row| Ok(Seq::from_u64(from_sql(row.get(0)?))))?;
    rows.collect()
}

/// Edits that came after the last of the messages keep their offsets, without the text.
fn empty_edits(transaction: &Connection, place: [i64; 2]) -> sql::Result<()> {
    let mut edits = transaction.prepare_cached(
        "SELECT offset, event FROM room_events WHERE room = ?1 AND seq <= ?2 AND event IS NOT NULL",
    )?;
    let mut rows = edits.query(place)?;
    while let Some(row) = rows.next()? {
        let offset: i64 = row.get(0)?;
        let Ok(RoomEvent::Edited { seq, .. }) = RoomEvent::decode(row.get_ref(1)?.as_blob()?)
        else {
            continue;
        };
        let emptied = RoomEvent::Edited { seq, body: String::new(), mentions: Vec::new() };
        transaction
            .prepare_cached("UPDATE room_events SET event = ?3 WHERE room = ?1 AND offset = ?2")?
            .execute(params![place[0], offset, emptied.encode()])?;
    }
    Ok(())
}
