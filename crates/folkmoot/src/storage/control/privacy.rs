//! Whom a user has blocked, and which direct rooms are off the user's list.

use super::accounts::{ACCOUNT_COLUMNS, Account, account, read_account};
use crate::storage::error::{ControlError, ReadError};
use crate::storage::ids::{RoomId, Seq, UnixMillis, UserId};
use crate::storage::sql::{self, Connection, OptionalExtension, params};
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::store::Store;

impl Store {
    /// Blocks a user, or lifts the block. Gives the direct room of the two, if they have one.
    ///
    /// # Errors
    /// [`ControlError::NotFound`] if there is no such user, [`ControlError::NotAllowed`] if `max`
    /// users are blocked already.
    pub async fn set_blocked(
        &self,
        user: UserId,
        blocked: UserId,
        on: bool,
        at: UnixMillis,
        max: u32,
    ) -> Result<Option<RoomId>, ControlError> {
        self.control(move |connection| {
            account(connection, blocked)?.ok_or(ControlError::NotFound("user"))?;
            let pair = [to_sql(user.as_u64()), to_sql(blocked.as_u64())];
            match on {
                true => {
                    connection.execute(
                        "INSERT OR IGNORE INTO blocks VALUES (?1, ?2, ?3)",
                        params![pair[0], pair[1], to_sql(at.as_u64())],
                    )?;
                    let count: u32 = connection.query_row(
                        "SELECT count(*) FROM blocks WHERE user = ?1",
                        [pair[0]],
                        |row| row.get(0),
                    )?;
                    if count > max {
                        return Err(ControlError::NotAllowed("too many users are blocked"));
                    }
                }
                false => {
                    let sql = "DELETE FROM blocks WHERE user = ?1 AND blocked = ?2";
                    connection.execute(sql, pair)?;
                }
            }
            let direct = connection
                .query_row(
                    "SELECT room FROM directs WHERE low = ?1 AND high = ?2",
                    [user.min(blocked), user.max(blocked)].map(|user| to_sql(user.as_u64())),
                    |row| Ok(RoomId::from_u64(from_sql(row.get(0)?))),
                )
                .optional()?;
            Ok(direct)
        })
        .await
    }

    /// Whether a user has blocked another one.
    ///
    /// # Errors
    /// [`ReadError`] only if the database fails.
    pub async fn has_blocked(&self, user: UserId, other: UserId) -> Result<bool, ReadError> {
        self.read(move |connection| Ok(has_blocked(connection, user, other)?)).await
    }

    /// Whom a user has blocked, by name.
    ///
    /// # Errors
    /// [`ReadError`] only if the database fails.
    pub async fn blocked(&self, user: UserId) -> Result<Vec<Account>, ReadError> {
        self.read(move |connection| {
            let sql = format!(
                "SELECT {ACCOUNT_COLUMNS} FROM blocks JOIN users ON users.id = blocks.blocked \
                 WHERE blocks.user = ?1 ORDER BY users.name"
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map([to_sql(user.as_u64())], read_account)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Takes a room off a user's list until a message comes after `seq`.
    ///
    /// # Errors
    /// What every control transaction can meet.
    pub async fn hide_room(
        &self,
        user: UserId,
        room: RoomId,
        seq: Seq,
    ) -> Result<(), ControlError> {
        let place = [to_sql(user.as_u64()), to_sql(room.as_u64()), to_sql(seq.as_u64())];
        self.control(move |connection| {
            connection.execute(
                "INSERT INTO hidden_rooms VALUES (?1, ?2, ?3) \
 ON CONFLICT (user, room) DO UPDATE SET seq = excluded.seq",
                place,
            )?;
            Ok(())
        })
        .await
    }

    /// Puts a room back on a user's list.
    ///
    /// # Errors
    /// What every control transaction can meet.
    pub async fn show_room(&self, user: UserId, room: RoomId) -> Result<(), ControlError> {
        let place = [to_sql(user.as_u64()), to_sql(room.as_u64())];
        self.control(move |connection| {
            connection.execute("DELETE FROM hidden_rooms WHERE user = ?1 AND room = ?2", place)?;
            Ok(())
        })
        .await
    }
}

/// Whether `user` has blocked `other`.
pub(super) fn has_blocked(
    connection: &Connection,
    user: UserId,
    other: UserId,
) -> sql::Result<bool> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM blocks WHERE user = ?1 AND blocked = ?2)")?
        .query_row([to_sql(user.as_u64()), to_sql(other.as_u64())], |row| row.get(0))
}

/// The ids of those whom a user has blocked.
pub(crate) fn blocked_ids(connection: &Connection, user: UserId) -> sql::Result<Vec<UserId>> {
    connection
        .prepare_cached("SELECT blocked FROM blocks WHERE user = ?1")?
        .query_map([to_sql(user.as_u64())], |row| Ok(UserId::from_u64(from_sql(row.get(0)?))))?
        .collect()
}

/// Who of the two in a direct room has blocked the other; nobody in any other room.
pub(crate) fn blockers_in(connection: &Connection, room: RoomId) -> sql::Result<Vec<UserId>> {
    connection
        .prepare_cached(
            "SELECT b.user FROM directs d JOIN blocks b \
               ON (b.user = d.low AND b.blocked = d.high) OR (b.user = d.high AND b.blocked = d.low) \
             WHERE d.room = ?1",
        )?
        .query_map([to_sql(room.as_u64())], |row| Ok(UserId::from_u64(from_sql(row.get(0)?))))?
        .collect()
}
