//! The database: its structure as it sees it itself, the numbers of each room and stream, and
//! whether what a row names is there.

use std::collections::{HashMap, HashSet};

use super::{Findings, Looked};
use crate::progress::Bar;
use crate::storage::record::MessageDetails;
use crate::storage::sql::{Connection, Result};
use crate::storage::{AttachmentId, RoomId, UserId};

/// What SQLite lists of its own damage.
const DAMAGES_MAX: u32 = 100;

/// Messages whose details are looked at together.
const DETAILS_AT_ONCE: i64 = 5_000;

/// Rows that name what is not there: a query for two numbers, and what they mean.
type Reference = (&'static str, fn(i64, i64) -> String);

const REFERENCES: &[Reference] = &[
    (
        "SELECT room, seq FROM messages \
         WHERE NOT EXISTS (SELECT 1 FROM rooms WHERE rooms.id = messages.room)",
        |room, seq| format!("message {seq} is of room {}, which is not there", room_id(room)),
    ),
    (
        "SELECT room, seq FROM messages \
         WHERE NOT EXISTS (SELECT 1 FROM users WHERE users.id = messages.user)",
        |room, seq| {
            format!("room {}: message {seq} is by an account that is not there", room_id(room))
        },
    ),
    (
        "SELECT room, user FROM members \
         WHERE NOT EXISTS (SELECT 1 FROM users WHERE users.id = members.user)",
        |room, user| format!("room {}: its member {} is not there", room_id(room), user_id(user)),
    ),
    (
        "SELECT room, user FROM members \
         WHERE NOT EXISTS (SELECT 1 FROM rooms WHERE rooms.id = members.room)",
        |room, user| {
            format!("{} is a member of room {}, which is not there", user_id(user), room_id(room))
        },
    ),
    (
        "SELECT DISTINCT room, seq FROM reactions WHERE NOT EXISTS (SELECT 1 FROM messages \
         WHERE messages.room = reactions.room AND messages.seq = reactions.seq)",
        |room, seq| format!("room {}: message {seq} has reactions and is not there", room_id(room)),
    ),
    (
        "SELECT room, seq FROM pins WHERE NOT EXISTS (SELECT 1 FROM messages \
         WHERE messages.room = pins.room AND messages.seq = pins.seq)",
        |room, seq| format!("room {}: message {seq} is pinned and is not there", room_id(room)),
    ),
    (
        "SELECT DISTINCT room, seq FROM saved WHERE NOT EXISTS (SELECT 1 FROM messages \
         WHERE messages.room = saved.room AND messages.seq = saved.seq)",
        |room, seq| {
            format!("room {}: message {seq} is saved by somebody and is not there", room_id(room))
        },
    ),
    (
        "SELECT attachments.id, attachments.seq FROM attachments \
         JOIN rooms ON rooms.id = attachments.room AND rooms.deleted_at IS NULL \
         WHERE seq IS NOT NULL AND expires_at IS NULL AND NOT EXISTS (SELECT 1 FROM messages \
         WHERE messages.room = attachments.room AND messages.seq = attachments.seq)",
        |id, seq| format!("file {} is of message {seq}, which is not there", file_id(id)),
    ),
];

/// Streams: their table, their column, and where their last offset is.
const STREAMS: &[(&str, &str, &str)] =
    &[("room_events", "room", "rooms"), ("user_events", "user", "users")];

pub(super) fn check(
    database: &Connection,
    looked: &mut Looked,
    findings: &mut Findings,
) -> Result<()> {
    let mut bar = Bar::new("database", (1 + REFERENCES.len() + STREAMS.len() + 1) as u64);
    check_structure(database, findings)?;
    bar.add(1);
    for (sql, words) in REFERENCES {
        let mut statement = database.prepare_cached(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            findings.wrong(words(row.get(0)?, row.get(1)?));
        }
        bar.add(1);
    }
    for (table, column, owner) in STREAMS {
        check_stream(database, table, column, owner, findings)?;
        bar.add(1);
    }
    check_named_files(database, findings)?;
    bar.add(1);
    bar.end();
    check_rooms(database, looked, findings)
}

fn check_structure(database: &Connection, findings: &mut Findings) -> Result<()> {
    if database.is_far() {
        let on: String =
            database.query_row("SELECT current_setting('data_checksums')", [], |row| row.get(0))?;
        if on != "on" {
            findings.note(
                "PostgreSQL keeps no checksums of its pages (data_checksums is off), so a page \
                 that its disk has changed may not be noticed"
                    .to_owned(),
            );
        }
        return Ok(());
    }
    let mut statement =
        database.prepare_cached(&format!("PRAGMA integrity_check({DAMAGES_MAX})"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let line: String = row.get(0)?;
        if line != "ok" {
            findings.wrong(format!("the database is damaged: {line}"));
        }
    }
    Ok(())
}

/// Offsets from the oldest that is kept to the last, without a gap.
fn check_stream(
    database: &Connection,
    table: &str,
    column: &str,
    owner: &str,
    findings: &mut Findings,
) -> Result<()> {
    let sql = format!(
        "SELECT {owner}.id, count(*), min(offset), max(offset), last_offset FROM {table} \
         JOIN {owner} ON {owner}.id = {table}.{column} GROUP BY {owner}.id"
    );
    let mut statement = database.prepare_cached(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (id, count, first): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let (newest, last): (i64, i64) = (row.get(3)?, row.get(4)?);
        let id = if column == "room" { room_id(id).to_string() } else { user_id(id).to_string() };
        if count != newest - first + 1 || newest != last {
            findings.wrong(format!(
                "{column} {id}: of the events {first} to {last} of its stream, {count} are there"
            ));
        }
    }
    Ok(())
}

/// Every message from the first that its room keeps to the last. Numbers are read one by one only
/// where counting them does not add up.
fn check_rooms(database: &Connection, looked: &mut Looked, findings: &mut Findings) -> Result<()> {
    let sql = "SELECT room, count(*), min(seq), max(seq) FROM messages GROUP BY room";
    let counted = database
        .prepare_cached(sql)?
        .query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?, row.get(3)?))))?
        .collect::<Result<HashMap<i64, (i64, i64, i64)>>>()?;
    let sql = "SELECT id, first_seq, last_seq FROM rooms WHERE deleted_at IS NULL";
    let rooms = database
        .prepare_cached(sql)?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<Vec<(i64, i64, i64)>>>()?;
    let mut bar = Bar::new("rooms", rooms.len() as u64);
    for (room, first, last) in rooms {
        let (count, oldest, newest) = counted.get(&room).copied().unwrap_or((0, first, last));
        if (count, oldest, newest) == (last - first + 1, first, last) {
            looked.messages += count.unsigned_abs();
        } else {
            looked.messages += check_numbers(database, (room, first, last), findings)?;
        }
        looked.rooms += 1;
        bar.add(1);
    }
    bar.end();
    Ok(())
}

/// Says which messages of a room are missing or too many; returns how many are there.
fn check_numbers(
    database: &Connection,
    (room, first, last): (i64, i64, i64),
    findings: &mut Findings,
) -> Result<u64> {
    let sql = "SELECT seq FROM messages WHERE room = ?1 ORDER BY seq";
    let mut messages = database.prepare_cached(sql)?;
    let mut rows = messages.query([room])?;
    let (mut expected, mut looked) = (first, 0);
    while let Some(row) = rows.next()? {
        let seq: i64 = row.get(0)?;
        if seq < first {
            findings.wrong(format!(
                "room {}: message {seq} is there, and all before {first} were deleted",
                room_id(room)
            ));
            continue;
        }
        if seq > expected {
            findings.wrong(missing(room, expected, seq - 1));
        }
        expected = seq + 1;
        looked += 1;
    }
    match last + 1 - expected {
        0 => {}
        1.. => findings.wrong(missing(room, expected, last)),
        _ => findings.wrong(format!(
            "room {}: it says that it ends at message {last}, and has {}",
            room_id(room),
            expected - 1
        )),
    }
    Ok(looked)
}

fn missing(room: i64, first: i64, last: i64) -> String {
    let room = room_id(room);
    match first == last {
        true => format!("room {room}: message {first} is missing"),
        false => format!("room {room}: messages {first} to {last} are missing"),
    }
}

/// Whether the files that messages show are known.
fn check_named_files(database: &Connection, findings: &mut Findings) -> Result<()> {
    let known = database
        .prepare_cached("SELECT id FROM attachments")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<HashSet<i64>>>()?;
    // In pages: PostgreSQL's answers are in memory as a whole.
    let sql = "SELECT room, seq, details FROM messages WHERE (room, seq) > (?1, ?2) \
               AND details IS NOT NULL AND deleted_at IS NULL ORDER BY room, seq LIMIT ?3";
    let mut messages = database.prepare_cached(sql)?;
    let mut after = (i64::MIN, 0);
    loop {
        let mut rows = messages.query([after.0, after.1, DETAILS_AT_ONCE])?;
        let mut looked = 0;
        while let Some(row) = rows.next()? {
            after = (row.get(0)?, row.get(1)?);
            looked += 1;
            check_details(after, &row.get::<Vec<u8>>(2)?, &known, findings);
        }
        if looked < DETAILS_AT_ONCE {
            return Ok(());
        }
    }
}

fn check_details(
    (room, seq): (i64, i64),
    details: &[u8],
    known: &HashSet<i64>,
    findings: &mut Findings,
) {
    let room = room_id(room);
    let details = match MessageDetails::decode(Some(details)) {
        Ok(details) => details,
        Err(error) => {
            findings.wrong(format!("room {room}: message {seq} is not understood: {error}"));
            return;
        }
    };
    for file in details.attachments {
        if !known.contains(&file.id.as_u64().cast_signed()) {
            let id = file.id;
            findings
                .wrong(format!("room {room}: message {seq} shows file {id}, which is not known"));
        }
    }
}

fn room_id(id: i64) -> RoomId {
    RoomId::from_u64(id.cast_unsigned())
}

fn user_id(id: i64) -> UserId {
    UserId::from_u64(id.cast_unsigned())
}

fn file_id(id: i64) -> AttachmentId {
    AttachmentId::from_u64(id.cast_unsigned())
}
