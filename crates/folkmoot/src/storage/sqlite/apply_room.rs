//! Applies the records of one room.

use std::collections::{BTreeSet, HashMap};

use super::apply::{from_sql, prune_up_to, to_sql};
use super::apply_attachments;
use super::apply_expired;
use super::apply_moderation;
use super::apply_user::{self, read};
use crate::storage::ids::{Lsn, RoomId, Seq, UserId};
use crate::storage::record::{
    LeaveReason, Message, MessageDetails, Record, Role, RoomEvent, RoomRecord,
};
use crate::storage::sql::{self, Connection, OptionalExtension, Row, params};

/// The columns of `rooms` that events change.
pub(super) struct RoomRow {
    last_offset: u64,
    last_seq: u64,
    member_count: i64,
    body_bytes: i64,
}

/// Applies a room's records, which come in the order of their offsets.
pub(super) fn apply<'a>(
    transaction: &Connection,
    room: RoomId,
    known: Option<RoomRow>,
    records: impl Iterator<Item = (Lsn, &'a RoomRecord)>,
) -> sql::Result<()> {
    let found = match known {
        Some(row) => Some(row),
        None => load(transaction, room)?,
    };
    let Some(mut row) = found else {
        // Appending to a room before its creation is committed is a bug of the caller.
        tracing::error!(%room, "dropped records of a room that does not exist");
        return Ok(());
    };
    let before = row.last_offset;
    for (lsn, record) in records {
        if record.offset.as_u64() <= row.last_offset {
            tracing::error!(%room, offset = %record.offset, "dropped a record with a used offset");
            continue;
        }
        if record.offset.as_u64() != row.last_offset + 1 {
            tracing::error!(%room, offset = %record.offset, "a record leaves a gap of offsets");
        }
        row.last_offset = record.offset.as_u64();
        // First: it compares what is asked for with what is.
        apply_moderation::note_event(transaction, record)?;
        apply_event(transaction, record, &mut row)?;
        insert_event(transaction, record)?;
        insert_change(transaction, lsn, record)?;
    }
    transaction.gather(
        "UPDATE rooms SET last_offset = ?2, last_seq = ?3, member_count = ?4, body_bytes = ?5 \
         WHERE id = ?1",
        params![
            to_sql(room.as_u64()),
            to_sql(row.last_offset),
            to_sql(row.last_seq),
            row.member_count,
            row.body_bytes
        ],
    )?;
    if let Some(up_to) = prune_up_to(before, row.last_offset) {
        transaction
            .prepare_cached("DELETE FROM room_events WHERE room = ?1 AND offset <= ?2")?
            .execute_later([to_sql(room.as_u64()), to_sql(up_to)])?;
    }
    Ok(())
}

/// What [`load`] asks; with the id, because answers may come for many.
const ROOM: &str =
    "SELECT last_offset, last_seq, member_count, body_bytes, id FROM rooms WHERE id = ?1";

fn load(transaction: &Connection, room: RoomId) -> sql::Result<Option<RoomRow>> {
    let mut statement = transaction.prepare_cached(ROOM)?;
    statement.query_row([to_sql(room.as_u64())], read_room).optional()
}

/// The rooms of all records, asked for at once.
pub(super) fn load_all(
    transaction: &Connection,
    records: &[(Lsn, Record)],
) -> sql::Result<HashMap<RoomId, RoomRow>> {
    let rooms = records.iter().filter_map(|(_, record)| match record {
        Record::Room(record) => Some(record.room),
        _ => None,
    });
    let rooms: BTreeSet<RoomId> = rooms.collect();
    let rooms = rooms.into_iter().map(|room| to_sql(room.as_u64())).collect();
    let found = transaction.query_any(ROOM, rooms, |row| {
        Ok((RoomId::from_u64(from_sql(row.get(4)?)), read_room(row)?))
    })?;
    Ok(found.into_iter().collect())
}

fn read_room(row: &Row<'_>) -> sql::Result<RoomRow> {
    Ok(RoomRow {
        last_offset: from_sql(row.get(0)?),
        last_seq: from_sql(row.get(1)?),
        member_count: row.get(2)?,
        body_bytes: row.get(3)?,
    })
}

fn insert_event(transaction: &Connection, record: &RoomRecord) -> sql::Result<()> {
    // A message's row has all of it; keeping it twice would also keep it after its deletion.
    let event = match &record.event {
        RoomEvent::Message(_) => None,
        event => Some(event.encode()),
    };
    transaction.gather(
        "INSERT INTO room_events VALUES (?1, ?2, ?3, ?4, ?5)",
        params![
            to_sql(record.room.as_u64()),
            to_sql(record.offset.as_u64()),
            to_sql(record.at.as_u64()),
            record.event.seq().map(|seq| to_sql(seq.as_u64())),
            event
        ],
    )
}

/// Notes that a message is to be searched anew.
fn insert_change(transaction: &Connection, lsn: Lsn, record: &RoomRecord) -> sql::Result<()> {
    let (seq, is_new) = match &record.event {
        RoomEvent::Message(message) => (message.seq, true),
        RoomEvent::Edited { seq, .. } | RoomEvent::Deleted { seq, .. } => (*seq, false),
        _ => return Ok(()),
    };
    transaction.gather(
        "INSERT INTO message_changes VALUES (?1, ?2, ?3, ?4)",
        params![to_sql(lsn.0), to_sql(record.room.as_u64()), to_sql(seq.as_u64()), is_new],
    )
}

fn apply_event(
    transaction: &Connection,
    record: &RoomRecord,
    row: &mut RoomRow,
) -> sql::Result<()> {
    let room = to_sql(record.room.as_u64());
    let at = to_sql(record.at.as_u64());
    match &record.event {
        RoomEvent::Message(message) => {
            if message.seq.as_u64() <= row.last_seq {
                // A bug of the room, which must not stop the mover for all others.
                tracing::error!(room = %record.room, seq = %message.seq, "dropped a message with a used seq");
                return Ok(());
            }
            row.last_seq = message.seq.as_u64();
            row.body_bytes += message.body.len() as i64;
            insert_message(transaction, record, message)
        }
        RoomEvent::Edited { seq, body, mentions } => {
            row.body_bytes += body.len() as i64 - body_bytes(transaction, record.room, *seq)?;
            edit(transaction, record, *seq, body, mentions)
        }
        RoomEvent::Deleted { seq, by } => {
            row.body_bytes -= body_bytes(transaction, record.room, *seq)?;
            delete(transaction, record, *seq, *by)
        }
        RoomEvent::Reaction { seq, user, emoji, on } => {
            react(transaction, record, (*seq, *user), emoji, *on)
        }
        RoomEvent::Joined { user, name, role, .. } => {
            row.member_count += i64::from(join(transaction, record, *user, name, *role)?);
            // Who joins has not to catch up with what was said before. With the membership, because
            // the user's own record of it may be lost with the process.
            read(transaction, *user, record.room, Seq::from_u64(row.last_seq))
        }
        RoomEvent::Left { user, by, reason } => {
            row.member_count -= i64::from(leave(transaction, record, *user, *by, *reason)?);
            Ok(())
        }
        RoomEvent::RoleSet { user, role, muted_until, .. } => {
            transaction
                .prepare_cached(
                    "UPDATE members SET role = ?3, muted_until = ?4 WHERE room = ?1 AND user = ?2",
                )?
                .execute(params![
                    room,
                    to_sql(user.as_u64()),
                    role.number(),
                    muted_until.map(|until| to_sql(until.as_u64()))
                ])?;
            Ok(())
        }
        RoomEvent::Expired { up_to } => {
            row.body_bytes -= apply_expired::expire(transaction, record.room, *up_to)?;
            Ok(())
        }
        RoomEvent::Pinned { seq, by, on } => pin(transaction, record, *seq, *by, *on),
        RoomEvent::Archived { on, .. } => archive(transaction, room, on.then_some(at)),
        RoomEvent::Described { name, topic, .. } => describe(transaction, room, name, topic),
    }
}

/// Whether there is one member more.
fn join(
    transaction: &Connection,
    record: &RoomRecord,
    user: UserId,
    name: &str,
    role: Role,
) -> sql::Result<bool> {
    let (room, user) = (to_sql(record.room.as_u64()), to_sql(user.as_u64()));
    let at = to_sql(record.at.as_u64());
    // Whoever left while they were muted is so again until the same time.
    let muted_until = take_mute(transaction, room, user)?.filter(|until| *until > at);
    let added = transaction
        .prepare_cached(
            "INSERT OR IGNORE INTO members (room, user, role, joined_at, name, muted_until) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![room, user, role.number(), at, name, muted_until])?;
    // Whoever is sent away needs another use to come back.
    transaction
        .prepare_cached("DELETE FROM invite_claims WHERE room = ?1 AND user = ?2")?
        .execute([room, user])?;
    Ok(added > 0)
}

/// Whether there is one member less.
fn leave(
    transaction: &Connection,
    record: &RoomRecord,
    user: UserId,
    by: Option<UserId>,
    reason: LeaveReason,
) -> sql::Result<bool> {
    let (room, by) = (to_sql(record.room.as_u64()), to_sql(by.unwrap_or(user).as_u64()));
    let (user, at) = (to_sql(user.as_u64()), to_sql(record.at.as_u64()));
    if reason != LeaveReason::Deleted {
        keep_mute(transaction, room, user, at)?;
    }
    let removed = transaction
        .prepare_cached("DELETE FROM members WHERE room = ?1 AND user = ?2")?
        .execute([room, user])?;
    if reason == LeaveReason::Banned {
        transaction
            .prepare_cached(
                "INSERT INTO bans VALUES (?1, ?2, ?3, ?4) \
 ON CONFLICT (room, user) DO UPDATE SET by = excluded.by, at = excluded.at",
            )?
            .execute([room, user, by, at])?;
    }
    Ok(removed > 0)
}

/// Keeps the mute of a member who leaves, if it goes on.
fn keep_mute(transaction: &Connection, room: i64, user: i64, at: i64) -> sql::Result<()> {
    let sql = "INSERT INTO mutes SELECT room, user, muted_until FROM members \
 WHERE room = ?1 AND user = ?2 AND muted_until > ?3 \
 ON CONFLICT (room, user) DO UPDATE SET until = excluded.until";
    transaction.prepare_cached(sql)?.execute([room, user, at]).map(drop)
}

/// The mute that somebody has left with, which is theirs again from now on.
fn take_mute(transaction: &Connection, room: i64, user: i64) -> sql::Result<Option<i64>> {
    let sql = "SELECT until FROM mutes WHERE room = ?1 AND user = ?2";
    let until =
        transaction.prepare_cached(sql)?.query_row([room, user], |row| row.get(0)).optional()?;
    if until.is_some() {
        let sql = "DELETE FROM mutes WHERE room = ?1 AND user = ?2";
        transaction.prepare_cached(sql)?.execute([room, user])?;
    }
    Ok(until)
}

fn react(
    transaction: &Connection,
    record: &RoomRecord,
    (seq, user): (Seq, UserId),
    emoji: &str,
    on: bool,
) -> sql::Result<()> {
    let (room, at) = (to_sql(record.room.as_u64()), to_sql(record.at.as_u64()));
    let (seq, user) = (to_sql(seq.as_u64()), to_sql(user.as_u64()));
    if !on {
        let sql = "DELETE FROM reactions WHERE room = ?1 AND seq = ?2 AND emoji = ?3 AND user = ?4";
        let place = params![room, seq, emoji, user];
        return transaction.prepare_cached(sql)?.execute_later(place);
    }
    let sql = "INSERT OR IGNORE INTO reactions VALUES (?1, ?2, ?3, ?4, ?5)";
    transaction.prepare_cached(sql)?.execute_later(params![room, seq, emoji, user, at])
}

fn pin(
    transaction: &Connection,
    record: &RoomRecord,
    seq: Seq,
    by: UserId,
    on: bool,
) -> sql::Result<()> {
    let (room, seq) = (to_sql(record.room.as_u64()), to_sql(seq.as_u64()));
    if !on {
        let sql = "DELETE FROM pins WHERE room = ?1 AND seq = ?2";
        return transaction.prepare_cached(sql)?.execute([room, seq]).map(drop);
    }
    let (offset, at) = (to_sql(record.offset.as_u64()), to_sql(record.at.as_u64()));
    let sql = "INSERT INTO pins VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (room, seq) \
 DO UPDATE SET offset = excluded.offset, by = excluded.by, at = excluded.at";
    let row = [room, seq, offset, to_sql(by.as_u64()), at];
    transaction.prepare_cached(sql)?.execute(row).map(drop)
}

fn archive(transaction: &Connection, room: i64, at: Option<i64>) -> sql::Result<()> {
    let sql = "UPDATE rooms SET archived_at = ?2 WHERE id = ?1";
    transaction.prepare_cached(sql)?.execute(params![room, at]).map(drop)
}

fn describe(transaction: &Connection, room: i64, name: &str, topic: &str) -> sql::Result<()> {
    let sql = "UPDATE rooms SET name = ?2, topic = ?3 WHERE id = ?1";
    transaction.prepare_cached(sql)?.execute(params![room, name, topic]).map(drop)
}

/// Bytes of a message's text as it is now; none if there is no such message.
fn body_bytes(transaction: &Connection, room: RoomId, seq: Seq) -> sql::Result<i64> {
    let found = transaction
        .prepare_cached(
            "SELECT length(CAST(body AS BLOB)) FROM messages WHERE room = ?1 AND seq = ?2",
        )?
        .query_row([to_sql(room.as_u64()), to_sql(seq.as_u64())], |row| row.get(0))
        .optional()?;
    Ok(found.unwrap_or_default())
}

fn insert_message(
    transaction: &Connection,
    record: &RoomRecord,
    message: &Message,
) -> sql::Result<()> {
    let details = MessageDetails::of(message);
    transaction.gather(
        "INSERT OR IGNORE INTO messages \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, NULL, NULL, NULL)",
        params![
            to_sql(record.room.as_u64()),
            to_sql(message.seq.as_u64()),
            to_sql(record.offset.as_u64()),
            to_sql(message.user.as_u64()),
            message.name,
            to_sql(record.at.as_u64()),
            message.key,
            to_sql(message.content_hash),
            message.body,
            details.encode()
        ],
    )?;
    apply_attachments::sent(transaction, record.room, message)?;
    if let Some(quote) = &message.reply_to {
        let place = [record.room.as_u64(), quote.seq.as_u64(), message.seq.as_u64()].map(to_sql);
        transaction
            .prepare_cached("INSERT OR IGNORE INTO quotes VALUES (?1, ?2, ?3)")?
            .execute_later(place)?;
    }
    if message.mention_all {
        transaction
            .prepare_cached("INSERT INTO everyone_mentions VALUES (?1, ?2)")?
            .execute_later([to_sql(record.room.as_u64()), to_sql(message.seq.as_u64())])?;
    }
    Ok(())
}

fn edit(
    transaction: &Connection,
    record: &RoomRecord,
    seq: Seq,
    body: &str,
    mentions: &[UserId],
) -> sql::Result<()> {
    let Some(mut details) = details(transaction, record.room, seq)? else { return Ok(()) };
    let unmentioned = details.mentions.iter().filter(|user| !mentions.contains(user));
    for user in unmentioned {
        apply_user::forget_mention(transaction, *user, record.room, seq)?;
    }
    details.mentions = mentions.to_vec();
    transaction
        .prepare_cached(
            "UPDATE messages SET body = ?3, details = ?4, edited_at = ?5 \
             WHERE room = ?1 AND seq = ?2 AND deleted_at IS NULL",
        )?
        .execute(params![
            to_sql(record.room.as_u64()),
            to_sql(seq.as_u64()),
            body,
            details.encode(),
            to_sql(record.at.as_u64())
        ])?;
    Ok(())
}

/// Takes a message's text out of every table that has it.
fn delete(transaction: &Connection, record: &RoomRecord, seq: Seq, by: UserId) -> sql::Result<()> {
    let Some(details) = details(transaction, record.room, seq)? else { return Ok(()) };
    let room_seq = [to_sql(record.room.as_u64()), to_sql(seq.as_u64())];
    transaction
        .prepare_cached(
            "UPDATE messages SET body = '', details = NULL, deleted_at = ?3, deleted_by = ?4 \
             WHERE room = ?1 AND seq = ?2",
        )?
        .execute([room_seq[0], room_seq[1], to_sql(record.at.as_u64()), to_sql(by.as_u64())])?;
    for forget in [
        "DELETE FROM reactions WHERE room = ?1 AND seq = ?2",
        "DELETE FROM everyone_mentions WHERE room = ?1 AND seq = ?2",
        "DELETE FROM pins WHERE room = ?1 AND seq = ?2",
        "DELETE FROM saved WHERE room = ?1 AND seq = ?2",
    ] {
        transaction.prepare_cached(forget)?.execute(room_seq)?;
    }
    apply_attachments::deleted(transaction, record.room, seq)?;
    for user in details.mentions {
        apply_user::forget_mention(transaction, user, record.room, seq)?;
    }
    erase_quotes(transaction, record.room, seq)?;
    // Edits in the stream keep their offsets, without the text.
    let emptied = RoomEvent::Edited { seq, body: String::new(), mentions: Vec::new() }.encode();
    let mut edits = transaction.prepare_cached(
        "SELECT offset, event FROM room_events WHERE room = ?1 AND seq = ?2 AND event IS NOT NULL",
    )?;
    let mut rows = edits.query(room_seq)?;
    while let Some(row) = rows.next()? {
        let offset: i64 = row.get(0)?;
        let event = RoomEvent::decode(row.get_ref(1)?.as_blob()?);
        if matches!(event, Ok(RoomEvent::Edited { .. })) {
            transaction
                .prepare_cached(
                    "UPDATE room_events SET event = ?3 WHERE room = ?1 AND offset = ?2",
                )?
                .execute(params![room_seq[0], offset, emptied])?;
        }
    }
    Ok(())
}

/// Takes the text of a deleted message out of those that quote it.
pub(super) fn erase_quotes(transaction: &Connection, room: RoomId, seq: Seq) -> sql::Result<()> {
    let quoted = [to_sql(room.as_u64()), to_sql(seq.as_u64())];
    let answers: Vec<i64> = transaction
        .prepare_cached("SELECT seq FROM quotes WHERE room = ?1 AND quoted = ?2")?
        .query_map(quoted, |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for answer in answers {
        let answer = Seq::from_u64(from_sql(answer));
        let Some(mut details) = details(transaction, room, answer)? else { continue };
        // A deleted answer has lost its quote already.
        let Some(quote) = &mut details.reply_to else { continue };
        quote.body.clear();
        transaction
            .prepare_cached("UPDATE messages SET details = ?3 WHERE room = ?1 AND seq = ?2")?
            .execute(params![quoted[0], to_sql(answer.as_u64()), details.encode()])?;
    }
    transaction
        .prepare_cached("DELETE FROM quotes WHERE room = ?1 AND quoted = ?2")?
        .execute(quoted)?;
    Ok(())
}

/// The details of a message; `None`, after a word in the log, if there is no such message.
fn details(
    transaction: &Connection,
    room: RoomId,
    seq: Seq,
) -> sql::Result<Option<MessageDetails>> {
    let found = transaction
        .prepare_cached("SELECT details FROM messages WHERE room = ?1 AND seq = ?2")?
        .query_row([to_sql(room.as_u64()), to_sql(seq.as_u64())], |row| {
            row.get::<Option<Vec<u8>>>(0)
        })
        .optional()?;
    let Some(bytes) = found else {
        tracing::error!(%room, %seq, "a record changes a message that does not exist");
        return Ok(None);
    };
    match MessageDetails::decode(bytes.as_deref()) {
        Ok(details) => Ok(Some(details)),
        Err(error) => {
            tracing::error!(%room, %seq, %error, "a message's details do not decode");
            Ok(Some(MessageDetails::default()))
        }
    }
}
