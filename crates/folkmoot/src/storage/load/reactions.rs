//! What people reacted to messages with. A page asks for those to all its messages at once, because
//! a database elsewhere takes a round trip for each statement.

use std::collections::HashMap;

use super::history::StoredMessage;
use crate::storage::control::{ACCOUNT_COLUMNS, ACCOUNT_WIDTH, Account, read_account};
use crate::storage::error::ReadError;
use crate::storage::ids::{RoomId, Seq};
use crate::storage::progress::Stream;
use crate::storage::sql::{self, Connection, Params, Row};
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::store::Store;
use althing::Wire;

/// All reactions to a message with one emoji.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
pub struct Reaction {
    /// The emoji.
    pub emoji: String,
    /// How many people.
    pub count: u64,
    /// Whether the viewer is one of them.
    pub is_mine: bool,
}

impl Store {
    /// Who reacted to a message: emoji in order of first use, users in the order of their
    /// reactions, at most `limit` for one emoji.
    ///
    /// # Errors
    /// [`ReadError`]; an unknown message has no reactions.
    pub async fn reactions(
        &self,
        room: RoomId,
        seq: Seq,
        limit: u32,
    ) -> Result<Vec<(String, Account)>, ReadError> {
        self.barrier_for(&[Stream::Room(room)]).await?;
        self.read(move |connection| reaction_users(connection, room, seq, limit)).await
    }
}

/// Reactions as `sql` finds them: the place of the message, an emoji, how many used it, whether the
/// viewer did; of each message in the order of first use.
pub(super) fn find(
    connection: &Connection,
    sql: &str,
    params: impl Params,
) -> sql::Result<Vec<(i64, Reaction)>> {
    connection.prepare_cached(sql)?.query_map(params, read)?.collect()
}

/// Reads a row of those.
pub(super) fn read(row: &Row<'_>) -> sql::Result<(i64, Reaction)> {
    let (emoji, count, is_mine) = (row.get(1)?, from_sql(row.get(2)?), row.get(3)?);
    Ok((row.get(0)?, Reaction { emoji, count, is_mine }))
}

/// Gives messages, by their places, what was found for them.
pub(super) fn give<'m>(
    messages: impl Iterator<Item = (i64, &'m mut StoredMessage)>,
    found: Vec<(i64, Reaction)>,
) {
    let mut messages: HashMap<i64, &mut StoredMessage> = messages.collect();
    for (place, reaction) in found {
        if let Some(stored) = messages.get_mut(&place) {
            stored.reactions.push(reaction);
        }
    }
}

fn reaction_users(
    connection: &Connection,
    room: RoomId,
    seq: Seq,
    limit: u32,
) -> Result<Vec<(String, Account)>, ReadError> {
    let sql = format!(
        "SELECT {ACCOUNT_COLUMNS}, r.emoji, \
         row_number() OVER (PARTITION BY r.emoji ORDER BY r.at, r.user) AS place, \
         min(r.at) OVER (PARTITION BY r.emoji) AS first \
         FROM reactions r JOIN users ON users.id = r.user WHERE r.room = ?1 AND r.seq = ?2 \
         ORDER BY first, r.emoji, place"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    // A client's number may be anything; SQLite's largest is beyond every real one.
    let seq = seq.as_u64().min(i64::MAX.cast_unsigned());
    let mut rows = statement.query([to_sql(room.as_u64()), to_sql(seq)])?;
    let mut given = Vec::new();
    while let Some(row) = rows.next()? {
        if row.get::<u32>(ACCOUNT_WIDTH + 1)? <= limit {
            given.push((row.get(ACCOUNT_WIDTH)?, read_account(&row)?));
        }
    }
    Ok(given)
}
