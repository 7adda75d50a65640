//! Deliveries and kept replies in the tables: what a turn changes of them, what is due, and what
//! was taken.

use althing::remote::Letter;
use althing::{ActorId, Timestamp};
use rusqlite::{Row, Transaction, params};

use super::writer::key;
use crate::delivery::{Delivery, Mark, Posting, Reply, Settled};
use crate::store::Turn;

/// Times are kept as signed numbers; those beyond are further away than anybody waits.
fn signed(time: Timestamp) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

/// Writes what a turn posts, and the replies that it keeps and forgets.
pub(super) fn write(transaction: &Transaction<'_>, turn: &Turn) -> rusqlite::Result<()> {
    let (kind, key) = (turn.id.kind().as_str(), key(&turn.id));
    for posting in &turn.postings {
        match posting {
            Posting::Put(delivery) => put(transaction, delivery)?,
            Posting::Cancel(name) => {
                let sql = "DELETE FROM deliveries WHERE kind = ?1 AND key = ?2 AND name = ?3";
                transaction.prepare_cached(sql)?.execute(params![kind, key, name])?;
            }
        }
    }
    for reply in &turn.replies {
        let sql = "INSERT INTO replies (kind, key, number, request, at, body)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let Reply { number, request, at, bytes } = reply;
        let number = number.cast_signed();
        let values = params![kind, key, number, request, signed(*at), bytes];
        transaction.prepare_cached(sql)?.execute(values)?;
    }
    if turn.forget_replies > 0 {
        let sql = "DELETE FROM replies WHERE kind = ?1 AND key = ?2 AND number <= ?3";
        let values = params![kind, key, turn.forget_replies.cast_signed()];
        transaction.prepare_cached(sql)?.execute(values)?;
    }
    Ok(())
}

fn put(transaction: &Transaction<'_>, delivery: &Delivery) -> rusqlite::Result<()> {
    let Delivery { owner, name, due, cron, letter } = delivery;
    let sql = "INSERT OR REPLACE INTO deliveries
                   (due, kind, key, name, cron, to_kind, to_key, message, body)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    transaction.prepare_cached(sql)?.execute(params![
        signed(*due),
        owner.kind().as_str(),
        key(owner),
        name,
        cron,
        letter.to.kind().as_str(),
        key(&letter.to),
        letter.message,
        letter.body,
    ])?;
    Ok(())
}

/// The replies that are kept of an actor.
pub(super) fn replies(transaction: &Transaction<'_>, id: &ActorId) -> rusqlite::Result<Vec<Reply>> {
    let sql = "SELECT number, request, at, body FROM replies
               WHERE kind = ?1 AND key = ?2 ORDER BY number";
    let mut select = transaction.prepare_cached(sql)?;
    let rows = select.query_map(params![id.kind().as_str(), key(id)], |row| {
        let (number, at): (i64, i64) = (row.get(0)?, row.get(2)?);
        let (number, at) = (number.cast_unsigned(), Timestamp(at.cast_unsigned()));
        Ok(Reply { number, request: row.get(1)?, at, bytes: row.get(3)? })
    })?;
    rows.collect()
}

/// A page of what is due.
pub(super) fn due(
    transaction: &Transaction<'_>,
    until: Timestamp,
    after: Option<&Mark>,
    limit: usize,
) -> rusqlite::Result<Vec<Delivery>> {
    let sql = "SELECT due, kind, key, name, cron, to_kind, to_key, message, body FROM deliveries
               WHERE due <= ?1 AND (due, kind, key, name) > (?2, ?3, ?4, ?5)
               ORDER BY due, kind, key, name LIMIT ?6";
    let (from, kind, owner, name) = match after {
        None => (-1, "", "", ""),
        Some(Mark { due, owner, name }) => {
            (signed(*due), owner.kind().as_str(), key(owner), name.as_str())
        }
    };
    let mut select = transaction.prepare_cached(sql)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let values = params![signed(until), from, kind, owner, name, limit];
    let rows = select.query_map(values, delivery)?;
    rows.collect()
}

/// What actors have left under names before those.
pub(super) fn left_before(
    transaction: &Transaction<'_>,
    names: &[(ActorId, String)],
    limit: usize,
) -> rusqlite::Result<Vec<Delivery>> {
    let sql = "SELECT due, kind, key, name, cron, to_kind, to_key, message, body FROM deliveries
               WHERE kind = ?1 AND key = ?2 AND name < ?3 ORDER BY name LIMIT ?4";
    let mut select = transaction.prepare_cached(sql)?;
    let mut left = Vec::new();
    for (owner, name) in names {
        let room = i64::try_from(limit - left.len()).unwrap_or(i64::MAX);
        let values = params![owner.kind().as_str(), key(owner), name, room];
        for found in select.query_map(values, delivery)? {
            left.push(found?);
        }
        if left.len() >= limit {
            break;
        }
    }
    Ok(left)
}

fn delivery(row: &Row<'_>) -> rusqlite::Result<Delivery> {
    let id = |kind: usize, key: usize| -> rusqlite::Result<ActorId> {
        Ok(ActorId::named(&row.get::<_, String>(kind)?, row.get::<_, String>(key)?))
    };
    let due: i64 = row.get(0)?;
    let letter = Letter { to: id(5, 6)?, message: row.get(7)?, body: row.get(8)? };
    Ok(Delivery {
        owner: id(1, 2)?,
        name: row.get(3)?,
        due: Timestamp(due.cast_unsigned()),
        cron: row.get(4)?,
        letter,
    })
}

/// Takes down that a delivery was taken, unless its owner has changed it meanwhile.
pub(super) fn settle(transaction: &Transaction<'_>, settled: &Settled) -> rusqlite::Result<()> {
    let Settled { mark: Mark { due, owner, name }, next } = settled;
    let (kind, key, due) = (owner.kind().as_str(), key(owner), signed(*due));
    match next {
        None => {
            let sql = "DELETE FROM deliveries
                       WHERE kind = ?1 AND key = ?2 AND name = ?3 AND due = ?4";
            transaction.prepare_cached(sql)?.execute(params![kind, key, name, due])?;
        }
        Some(next) => {
            let sql = "UPDATE deliveries SET due = ?5
                       WHERE kind = ?1 AND key = ?2 AND name = ?3 AND due = ?4";
            let values = params![kind, key, name, due, signed(*next)];
            transaction.prepare_cached(sql)?.execute(values)?;
        }
    }
    Ok(())
}
