//! Pages for administrators: all accounts, all rooms, and what they add up to.

use crate::storage::control::{ACCOUNT_WIDTH, Account, read_account};
use crate::storage::error::ReadError;
use crate::storage::ids::{RoomId, UnixMillis, UserId};
use crate::storage::sql::{self, OptionalExtension, Row, params};
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::store::Store;

/// The columns of [`UserRow`], in its order.
const USER_COLUMNS: &str = "id, name, display_name, is_admin, created_at, \
     picture, status_emoji, status_text, status_until, disabled_at, \
     (SELECT count(*) FROM devices WHERE user = users.id), \
     (SELECT max(seen_at) FROM devices WHERE user = users.id), \
     (SELECT count(*) FROM members WHERE user = users.id)";

/// The columns of [`RoomRow`], in its order.
const ROOM_COLUMNS: &str = "id, name, topic, created_at, member_count, last_seq, body_bytes, \
     (SELECT at FROM messages WHERE room = rooms.id ORDER BY seq DESC LIMIT 1), archived_at";

/// An account as administrators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserRow {
    /// The account.
    pub account: Account,
    /// Kept out since then; absent: may sign in.
    pub disabled_at: Option<UnixMillis>,
    /// Devices signed in.
    pub devices: u64,
    /// When one of them was last connected.
    pub seen_at: Option<UnixMillis>,
    /// Rooms and conversations it is in.
    pub rooms: u64,
}

/// A room as administrators see it: its size, never its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomRow {
    /// Its id.
    pub id: RoomId,
    /// Its name.
    pub name: String,
    /// Its topic.
    pub topic: String,
    /// When it was made.
    pub created_at: UnixMillis,
    /// How many members it has.
    pub members: u64,
    /// How many messages were sent in it.
    pub messages: u64,
    /// Bytes of their texts.
    pub bytes: u64,
    /// When the last one was sent.
    pub last_at: Option<UnixMillis>,
    /// Read-only since then.
    pub archived_at: Option<UnixMillis>,
}

/// What is in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Accounts, disabled ones too.
    pub users: u64,
    /// Rooms.
    pub rooms: u64,
    /// Direct conversations.
    pub directs: u64,
    /// Messages ever sent.
    pub messages: u64,
    /// Bytes of the messages' texts.
    pub body_bytes: u64,
}

impl Store {
    /// A page of the accounts whose name or name to show contains `search`, by name, after a name.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn user_rows(
        &self,
        search: String,
        after: String,
        limit: u32,
    ) -> Result<Vec<UserRow>, ReadError> {
        // A device's last connection may still be on its way from the log.
        self.barrier().await?;
        self.read(move |connection| {
            let sql = format!(
                "SELECT {USER_COLUMNS} FROM users WHERE deleted_at IS NULL AND name > ?1 \
                 AND (name LIKE ?2 ESCAPE '\\' OR display_name LIKE ?2 ESCAPE '\\') \
                 ORDER BY name LIMIT ?3"
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map(params![after, contains(&search), limit], read_user)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// One account as administrators see it.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn user_row(&self, user: UserId) -> Result<Option<UserRow>, ReadError> {
        self.barrier().await?;
        self.read(move |connection| {
            let sql =
                format!("SELECT {USER_COLUMNS} FROM users WHERE id = ?1 AND deleted_at IS NULL");
            let mut statement = connection.prepare_cached(&sql)?;
            Ok(statement.query_row([to_sql(user.as_u64())], read_user).optional()?)
        })
        .await
    }

    /// A page of the rooms whose name contains `search`, the newest first, after one of them.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn room_rows(
        &self,
        search: String,
        after: Option<RoomId>,
        limit: u32,
    ) -> Result<Vec<RoomRow>, ReadError> {
        self.barrier().await?;
        self.read(move |connection| {
            let sql = format!(
                "SELECT {ROOM_COLUMNS} FROM rooms \
                 WHERE kind = 1 AND deleted_at IS NULL AND name LIKE ?1 ESCAPE '\\' \
                 AND (CAST(?2 AS BIGINT) IS NULL OR (created_at, id) < \
                      (SELECT created_at, id FROM rooms WHERE id = ?2)) \
                 ORDER BY created_at DESC, id DESC LIMIT ?3",
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let after = after.map(|room| to_sql(room.as_u64()));
            let rows = statement.query_map(params![contains(&search), after, limit], read_room)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// One room as administrators see it.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn room_row(&self, room: RoomId) -> Result<Option<RoomRow>, ReadError> {
        self.barrier().await?;
        self.read(move |connection| {
            let sql = format!(
                "SELECT {ROOM_COLUMNS} FROM rooms WHERE id = ?1 AND kind = 1 AND deleted_at IS NULL"
            );
            let mut statement = connection.prepare_cached(&sql)?;
            Ok(statement.query_row([to_sql(room.as_u64())], read_room).optional()?)
        })
        .await
    }

    /// What is in the database.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn totals(&self) -> Result<Totals, ReadError> {
        self.barrier().await?;
        self.read(|connection| {
            let users = connection.query_row(
                "SELECT count(*) FROM users WHERE deleted_at IS NULL",
                [],
                |row| row.get(0),
            )?;
            let totals = connection.query_row(
                "SELECT count(*) FILTER (WHERE kind = 1), count(*) FILTER (WHERE kind = 2), \
                        coalesce(sum(last_seq), 0), coalesce(sum(body_bytes), 0) \
                 FROM rooms WHERE deleted_at IS NULL",
                [],
                |row| {
                    Ok(Totals {
                        users: from_sql(users),
                        rooms: from_sql(row.get(0)?),
                        directs: from_sql(row.get(1)?),
                        messages: from_sql(row.get(2)?),
                        body_bytes: from_sql(row.get(3)?),
                    })
                },
            )?;
            Ok(totals)
        })
        .await
    }
}

/// A pattern for `LIKE` that takes every character of `text` as itself.
fn contains(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    format!("%{escaped}%")
}

fn time(at: Option<i64>) -> Option<UnixMillis> {
    at.map(|at| UnixMillis::from_u64(from_sql(at)))
}

fn read_user(row: &Row<'_>) -> sql::Result<UserRow> {
    Ok(UserRow {
        account: read_account(row)?,
        disabled_at: time(row.get(ACCOUNT_WIDTH)?),
        devices: from_sql(row.get(ACCOUNT_WIDTH + 1)?),
        seen_at: time(row.get(ACCOUNT_WIDTH + 2)?),
        rooms: from_sql(row.get(ACCOUNT_WIDTH + 3)?),
    })
}

fn read_room(row: &Row<'_>) -> sql::Result<RoomRow> {
    Ok(RoomRow {
        id: RoomId::from_u64(from_sql(row.get(0)?)),
        name: row.get(1)?,
        topic: row.get(2)?,
        created_at: UnixMillis::from_u64(from_sql(row.get(3)?)),
        members: from_sql(row.get(4)?),
        messages: from_sql(row.get(5)?),
        bytes: from_sql(row.get(6)?),
        last_at: time(row.get(7)?),
        archived_at: time(row.get(8)?),
    })
}
