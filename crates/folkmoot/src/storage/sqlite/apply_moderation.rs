//! Which of a room's events belong in the log of moderation. What people do to themselves does not.

use super::apply::{from_sql, to_sql};
use super::moderation::{ModerationAction, NewModeration, note};
use crate::storage::ids::{RoomId, Seq, UserId};
use crate::storage::record::{LeaveReason, RoomEvent, RoomRecord};
use crate::storage::sql::{self, Connection, OptionalExtension};

/// Notes the event if it is moderation. Must come before the event itself is applied.
pub(super) fn note_event(transaction: &Connection, record: &RoomRecord) -> sql::Result<()> {
    let (at, room) = (record.at, record.room);
    match &record.event {
        RoomEvent::Left { user, by: Some(by), reason } if by != user => {
            let action = match reason {
                LeaveReason::Banned => ModerationAction::Banned,
                LeaveReason::Kicked | LeaveReason::Left | LeaveReason::Deleted => {
                    ModerationAction::Kicked
                }
            };
            let entry = NewModeration::in_room(at, *by, action, room);
            note(transaction, NewModeration { user: Some(*user), ..entry })
        }
        RoomEvent::RoleSet { user, role, muted_until, by } => {
            let entry = NewModeration {
                user: Some(*user),
                ..NewModeration::in_room(at, *by, ModerationAction::RoleSet, room)
            };
            if role_of(transaction, room, *user)? != Some(role.number()) {
                return note(transaction, NewModeration { role: Some(*role), ..entry });
            }
            // The same event carries both: the role is as it was, so it is about the mute.
            let action = match muted_until {
                Some(_) => ModerationAction::Muted,
                None => ModerationAction::Unmuted,
            };
            note(transaction, NewModeration { action, until: *muted_until, ..entry })
        }
        RoomEvent::Archived { on, by } => {
            let action = match on {
                true => ModerationAction::RoomArchived,
                false => ModerationAction::RoomOpened,
            };
            note(transaction, NewModeration::in_room(at, *by, action, room))
        }
        RoomEvent::Deleted { seq, by } => {
            match author_of(transaction, room, *seq)?.filter(|author| author != by) {
                None => Ok(()),
                Some(author) => {
                    let action = ModerationAction::MessageDeleted;
                    let entry = NewModeration::in_room(at, *by, action, room);
                    note(transaction, NewModeration { user: Some(author), ..entry })
                }
            }
        }
        _ => Ok(()),
    }
}

fn role_of(transaction: &Connection, room: RoomId, user: UserId) -> sql::Result<Option<u8>> {
    transaction
        .prepare_cached("SELECT role FROM members WHERE room = ?1 AND user = ?2")?
        .query_row([to_sql(room.as_u64()), to_sql(user.as_u64())], |row| row.get(0))
        .optional()
}

fn author_of(transaction: &Connection, room: RoomId, seq: Seq) -> sql::Result<Option<UserId>> {
    transaction
        .prepare_cached("SELECT user FROM messages WHERE room = ?1 AND seq = ?2")?
        .query_row([to_sql(room.as_u64()), to_sql(seq.as_u64())], |row| {
            Ok(UserId::from_u64(from_sql(row.get(0)?)))
        })
        .optional()
}
