//! Applies the records of one user: the user's stream, read cursors, mentions, settings.
//!
//! A mention and the read cursor that covers it may come in either order; both end the same.

use folkmoot_protocol::chat::UserEvent;

use super::apply::{from_sql, prune_up_to, to_sql};
use crate::storage::ids::{Lsn, RoomId, Seq, UserId};
use crate::storage::record::{MessageDetails, Notify, Record, UserEffect, UserRecord};
use crate::storage::sql::{self, Connection, OptionalExtension, params};

/// Unread mentions kept per user and room; a badge says no more than this.
const MENTIONS_KEPT: i64 = 1_000;

/// Applies a user's records in their order; the group holds no others.
pub(super) fn apply(transaction: &Connection, group: &[(Lsn, Record)]) -> sql::Result<()> {
    for (_, record) in group {
        if let Record::Cursor(cursor) = record {
            read(transaction, cursor.user, cursor.room, cursor.seq)?;
        }
    }
    let records = group.iter().filter_map(|(_, record)| match record {
        Record::User(record) => Some(record),
        _ => None,
    });
    apply_stream(transaction, records)
}

fn apply_stream<'a>(
    transaction: &Connection,
    records: impl Iterator<Item = &'a UserRecord>,
) -> sql::Result<()> {
    let mut records = records.peekable();
    let Some(user) = records.peek().map(|record| record.user) else { return Ok(()) };
    let found = transaction
        .prepare_cached("SELECT last_offset FROM users WHERE id = ?1")?
        .query_row([to_sql(user.as_u64())], |row| row.get(0))
        .optional()?;
    let Some(before) = found.map(from_sql) else {
        tracing::error!(%user, "dropped records of a user that does not exist");
        return Ok(());
    };
    let mut last = before;
    for record in records {
        if record.offset.as_u64() <= last {
            tracing::error!(%user, offset = %record.offset, "dropped a record with a used offset");
            continue;
        }
        if record.offset.as_u64() != last + 1 {
            tracing::error!(%user, offset = %record.offset, "a record leaves a gap of offsets");
        }
        last = record.offset.as_u64();
        let data = match record.effect {
            // The message may have been changed before its mention came here.
            Some(UserEffect::Mention { room, seq })
                if is_withdrawn(transaction, user, room, seq)? =>
            {
                without_excerpt(&record.data, room, &|known| known == seq)
            }
            _ => None,
        };
        let data = data.as_ref().unwrap_or(&record.data);
        transaction
            .prepare_cached("INSERT INTO user_events VALUES (?1, ?2, ?3, ?4)")?
            .execute_later(params![
                to_sql(user.as_u64()),
                to_sql(last),
                to_sql(record.at.as_u64()),
                data
            ])?;
        match record.effect {
            None => {}
            Some(UserEffect::Read { room, seq }) => read(transaction, user, room, seq)?,
            Some(UserEffect::Mention { room, seq }) => mention(transaction, user, room, seq)?,
            Some(UserEffect::Notify { room, notify: how }) => notify(transaction, user, room, how)?,
        }
    }
    transaction
        .prepare_cached("UPDATE users SET last_offset = ?2 WHERE id = ?1")?
        .execute_later([to_sql(user.as_u64()), to_sql(last)])?;
    if let Some(up_to) = prune_up_to(before, last) {
        transaction
            .prepare_cached("DELETE FROM user_events WHERE user = ?1 AND offset <= ?2")?
            .execute([to_sql(user.as_u64()), to_sql(up_to)])?;
    }
    Ok(())
}

/// Moves a user's cursor forward; mentions up to there are read.
pub(super) fn read(
    transaction: &Connection,
    user: UserId,
    room: RoomId,
    seq: Seq,
) -> sql::Result<()> {
    let place = [to_sql(user.as_u64()), to_sql(room.as_u64()), to_sql(seq.as_u64())];
    transaction
        .prepare_cached(
            "INSERT INTO read_states (user, room, read_seq) VALUES (?1, ?2, ?3) \
             ON CONFLICT (user, room) DO UPDATE \
             SET read_seq = max(read_states.read_seq, excluded.read_seq)",
        )?
        .execute_later(place)?;
    transaction
        .prepare_cached("DELETE FROM mentions WHERE user = ?1 AND room = ?2 AND seq <= ?3")?
        .execute_later(place)?;
    Ok(())
}

fn mention(transaction: &Connection, user: UserId, room: RoomId, seq: Seq) -> sql::Result<()> {
    if is_withdrawn(transaction, user, room, seq)? {
        return Ok(());
    }
    let place = [to_sql(user.as_u64()), to_sql(room.as_u64()), to_sql(seq.as_u64())];
    let added = transaction
        .prepare_cached(
            "INSERT OR IGNORE INTO mentions SELECT ?1, ?2, ?3 \
             WHERE NOT EXISTS (SELECT 1 FROM read_states \
                               WHERE user = ?1 AND room = ?2 AND read_seq >= ?3)",
        )?
        .execute(place)?;
    if added > 0 {
        transaction
            .prepare_cached(
                "DELETE FROM mentions WHERE user = ?1 AND room = ?2 AND seq <= \
                   (SELECT seq FROM mentions WHERE user = ?1 AND room = ?2 \
                    ORDER BY seq DESC LIMIT 1 OFFSET ?3)",
            )?
            .execute([place[0], place[1], MENTIONS_KEPT])?;
    }
    Ok(())
}

/// Takes a mention back: the badge, and the text in the user's own stream.
pub(super) fn forget_mention(
    transaction: &Connection,
    user: UserId,
    room: RoomId,
    seq: Seq,
) -> sql::Result<()> {
    forget_mentions(transaction, user, room, |known| known == seq)
}

/// Takes mentions by some messages of a room back.
pub(super) fn forget_mentions(
    transaction: &Connection,
    user: UserId,
    room: RoomId,
    is_gone: impl Fn(Seq) -> bool,
) -> sql::Result<()> {
    let place = [to_sql(user.as_u64()), to_sql(room.as_u64())];
    let unread: Vec<i64> = transaction
        .prepare_cached("SELECT seq FROM mentions WHERE user = ?1 AND room = ?2")?
        .query_map(place, |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for seq in unread.into_iter().filter(|seq| is_gone(Seq::from_u64(from_sql(*seq)))) {
        transaction
            .prepare_cached("DELETE FROM mentions WHERE user = ?1 AND room = ?2 AND seq = ?3")?
            .execute([place[0], place[1], seq])?;
    }
    // Streams are kept for a thousand events, and few of them are mentions.
    let mut mentions = transaction.prepare_cached(
        "SELECT offset, data FROM user_events \
         WHERE user = ?1 AND data LIKE '%\"mention\"%' AND data LIKE '%' || ?2 || '%'",
    )?;
    let mut rows = mentions.query(params![place[0], room.to_string()])?;
    while let Some(row) = rows.next()? {
        let (offset, data): (i64, String) = (row.get(0)?, row.get(1)?);
        let Some(data) = without_excerpt(&data, room, &is_gone) else { continue };
        transaction
            .prepare_cached("UPDATE user_events SET data = ?3 WHERE user = ?1 AND offset = ?2")?
            .execute(params![place[0], offset, data])?;
    }
    Ok(())
}

/// Whether a message was deleted, or edited so that it mentions the user no more.
fn is_withdrawn(
    transaction: &Connection,
    user: UserId,
    room: RoomId,
    seq: Seq,
) -> sql::Result<bool> {
    let found = transaction
        .prepare_cached(
            "SELECT deleted_at IS NOT NULL, edited_at IS NOT NULL, details FROM messages \
             WHERE room = ?1 AND seq = ?2",
        )?
        .query_row([to_sql(room.as_u64()), to_sql(seq.as_u64())], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get::<Option<Vec<u8>>>(2)?))
        })
        .optional()?;
    Ok(match found {
        // A message that is not there was deleted for good, or has never been.
        None => is_expired(transaction, room, seq)?,
        Some((false, false, _)) => false,
        Some((true, _, _)) => true,
        Some((false, true, details)) => MessageDetails::decode(details.as_deref())
            .is_ok_and(|details| !details.mentions.contains(&user)),
    })
}

/// Whether a room keeps messages of this age no longer.
fn is_expired(transaction: &Connection, room: RoomId, seq: Seq) -> sql::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM rooms WHERE id = ?1 AND first_seq > ?2)";
    let place = [to_sql(room.as_u64()), to_sql(seq.as_u64())];
    transaction.prepare_cached(sql)?.query_row(place, |row| row.get(0))
}

/// The event of a mention without what was said; `None` if it is another event.
fn without_excerpt(data: &str, room: RoomId, is_gone: &impl Fn(Seq) -> bool) -> Option<String> {
    let mut event: UserEvent = serde_json::from_str(data).ok()?;
    match &mut event {
        UserEvent::Mention(mention) if mention.room == room && is_gone(mention.seq) => {
            mention.excerpt.clear();
            serde_json::to_string(&event).ok()
        }
        _ => None,
    }
}

fn notify(transaction: &Connection, user: UserId, room: RoomId, notify: Notify) -> sql::Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO read_states (user, room, notify) VALUES (?1, ?2, ?3) \
             ON CONFLICT (user, room) DO UPDATE SET notify = excluded.notify",
        )?
        .execute_later(params![to_sql(user.as_u64()), to_sql(room.as_u64()), notify.number()])?;
    Ok(())
}
