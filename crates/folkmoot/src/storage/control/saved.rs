//! Saving messages for later. What is saved is the user's own list; the rows go with the message,
//! the room or the account.

use super::rooms::log_failure;
use crate::storage::error::ControlError;
use crate::storage::ids::{RoomId, Seq, UnixMillis, UserId};
use crate::storage::sql::{self, Connection, OptionalExtension, params};
use crate::storage::sqlite::apply::to_sql;
use crate::storage::store::Store;

/// What became of a wish to save a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saving {
    /// It is as was asked.
    Done,
    /// So many are saved that no further one is taken.
    Full,
}

/// A message to save.
#[derive(Clone, Copy, Debug)]
pub struct NewSaved {
    /// For whom.
    pub user: UserId,
    /// The room.
    pub room: RoomId,
    /// The message.
    pub seq: Seq,
    /// Now.
    pub at: UnixMillis,
}

impl Store {
    /// Saves a message for a user, of whom `max` are taken. Whether the user may read the room is
    /// for the caller to say.
    ///
    /// # Errors
    /// [`ControlError::NotFound`] if there is no such message.
    pub async fn save_message(&self, new: NewSaved, max: u32) -> Result<Saving, ControlError> {
        let NewSaved { user, room, seq, at } = new;
        let message = place(user, room, seq);
        // The message, or its deletion, may still be on its way from the log.
        self.after_log(room).await?;
        let saving = self.control(move |connection| save(connection, message, at, max)).await?;
        if saving == Saving::Done {
            return Ok(saving);
        }
        // What makes room, a departure or a deletion, may be on its way too.
        self.after_rooms_of_saved(user).await.map_err(|error| log_failure(&error))?;
        self.control(move |connection| save(connection, message, at, max)).await
    }

    /// Takes a message off a user's list.
    ///
    /// # Errors
    /// What every control transaction can meet.
    pub async fn unsave_message(
        &self,
        user: UserId,
        room: RoomId,
        seq: Seq,
    ) -> Result<(), ControlError> {
        let message = place(user, room, seq);
        let sql = "DELETE FROM saved WHERE room = ?1 AND seq = ?2 AND user = ?3";
        self.control(move |connection| Ok(connection.execute(sql, message).map(drop)?)).await
    }
}

fn place(user: UserId, room: RoomId, seq: Seq) -> [i64; 3] {
    // A client's number may be anything; SQLite's largest is beyond every real one.
    let seq = seq.as_u64().min(i64::MAX.cast_unsigned());
    [to_sql(room.as_u64()), to_sql(seq), to_sql(user.as_u64())]
}

fn save(
    connection: &Connection,
    message: [i64; 3],
    at: UnixMillis,
    max: u32,
) -> Result<Saving, ControlError> {
    let [room, seq, user] = message;
    let sql = "SELECT EXISTS (SELECT 1 FROM saved WHERE room = ?1 AND seq = ?2 AND user = ?3)";
    if connection.query_row(sql, message, |row| row.get(0))? {
        return Ok(Saving::Done);
    }
    let is_there = "SELECT 1 FROM messages m JOIN rooms r ON r.id = m.room \
         WHERE m.room = ?1 AND m.seq = ?2 AND m.deleted_at IS NULL AND r.deleted_at IS NULL";
    let found: Option<i64> =
        connection.query_row(is_there, [room, seq], |row| row.get(0)).optional()?;
    found.ok_or(ControlError::NotFound("message"))?;
    if count(connection, user)? >= max {
        // Nobody can take away what they do not see: what lies in rooms they have left goes first.
        connection.execute(
            "DELETE FROM saved WHERE user = ?1 AND NOT EXISTS \
             (SELECT 1 FROM members WHERE members.room = saved.room AND members.user = ?1)",
            [user],
        )?;
        if count(connection, user)? >= max {
            return Ok(Saving::Full);
        }
    }
    connection.execute(
        "INSERT INTO saved SELECT ?1, coalesce(max(number), 0) + 1, ?2, ?3, ?4 \
         FROM saved WHERE user = ?1",
        params![user, room, seq, to_sql(at.as_u64())],
    )?;
    Ok(Saving::Done)
}

fn count(connection: &Connection, user: i64) -> sql::Result<u32> {
    connection.query_row("SELECT count(*) FROM saved WHERE user = ?1", [user], |row| row.get(0))
}
