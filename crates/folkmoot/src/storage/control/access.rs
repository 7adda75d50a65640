//! Who may find a room and come in. A room begins hidden; whether somebody may say otherwise is
//! judged by the caller.

use folkmoot_protocol::chat::RoomAccess;

use super::moderation::{ModerationAction, NewModeration, note};
use crate::storage::error::{ControlError, ReadError};
use crate::storage::ids::{RoomId, UnixMillis, UserId};
use crate::storage::record::RecordError;
use crate::storage::sql::OptionalExtension;
use crate::storage::sqlite::apply::to_sql;
use crate::storage::store::Store;

/// Direct conversations and deleted rooms have no access to set.
const ROOM: &str = "id = ?1 AND kind = 1 AND deleted_at IS NULL";

impl Store {
    /// Says who may find a room and come in.
    ///
    /// # Errors
    /// [`ControlError::NotFound`] if there is no such room.
    pub async fn set_room_access(
        &self,
        room: RoomId,
        access: RoomAccess,
        by: UserId,
        at: UnixMillis,
    ) -> Result<(), ControlError> {
        self.control(move |connection| {
            let id = to_sql(room.as_u64());
            let before = connection
                .query_row(&format!("SELECT access FROM rooms WHERE {ROOM}"), [id], |row| {
                    row.get::<u32>(0)
                })
                .optional()?;
            match before {
                None => return Err(ControlError::NotFound("room")),
                Some(before) if before == number(access) => return Ok(()),
                Some(_) => {}
            }
            let sql = format!("UPDATE rooms SET access = ?2 WHERE {ROOM}");
            connection.execute(&sql, [id, i64::from(number(access))])?;
            let action = match access {
                RoomAccess::Open => ModerationAction::RoomMadeOpen,
                RoomAccess::Invite => ModerationAction::RoomMadeListed,
                RoomAccess::Hidden => ModerationAction::RoomMadeHidden,
            };
            note(connection, NewModeration::in_room(at, by, action, room))?;
            Ok(())
        })
        .await
    }

    /// Who may find a room and come in. `None`: there is no such room.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn room_access(&self, room: RoomId) -> Result<Option<RoomAccess>, ReadError> {
        self.read(move |connection| {
            let sql = format!("SELECT access FROM rooms WHERE {ROOM}");
            let stored = connection
                .prepare_cached(&sql)?
                .query_row([to_sql(room.as_u64())], |row| row.get(0))
                .optional()?;
            Ok(stored.map(from_number).transpose()?)
        })
        .await
    }
}

/// Stored by number; never renumber. What is listed has a number above 0.
fn number(access: RoomAccess) -> u32 {
    match access {
        RoomAccess::Hidden => 0,
        RoomAccess::Invite => 1,
        RoomAccess::Open => 2,
    }
}

/// The access stored under a number.
pub(crate) fn from_number(number: u32) -> Result<RoomAccess, RecordError> {
    match number {
        0 => Ok(RoomAccess::Hidden),
        1 => Ok(RoomAccess::Invite),
        2 => Ok(RoomAccess::Open),
        _ => Err(RecordError::UnknownNumber { of: "RoomAccess", number }),
    }
}
