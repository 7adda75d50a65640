//! Accounts and memberships by the ten thousand, each call one transaction: for filling a data
//! directory, not for serving.

use super::accounts::{Account, NewAccount, insert_row};
use super::devices::{NewDevice, insert_device};
use crate::storage::error::ControlError;
use crate::storage::ids::{RoomId, UnixMillis, UserId};
use crate::storage::record::{Role, RoomEvent};
use crate::storage::sql::{Connection, params};
use crate::storage::sqlite::apply::{EVENTS_KEPT, from_sql, to_sql};
use crate::storage::sqlite::name_words::{note_all, words};
use crate::storage::store::Store;

/// Somebody to make a member.
#[derive(Clone, Debug)]
pub struct NewMember {
    /// Who.
    pub user: UserId,
    /// The name of their account.
    pub name: String,
    /// Their name to show.
    pub display_name: String,
}

impl Store {
    /// Makes accounts to which no device is signed in.
    ///
    /// # Errors
    /// [`ControlError::NameTaken`]; none of them is made then.
    pub async fn create_accounts(&self, new: Vec<NewAccount>) -> Result<(), ControlError> {
        self.control(move |connection| {
            let mut found_by = Vec::new();
            for account in new {
                let Account { id, name, display_name, .. } = insert_row(connection, account)?;
                let id = to_sql(id.as_u64());
                found_by.extend(words(&name, &display_name).map(|word| (word, id)));
            }
            // In their order, so that the index grows at few places.
            found_by.sort_unstable();
            note_all(connection, found_by.into_iter())?;
            Ok(())
        })
        .await
    }

    /// Signs devices in.
    ///
    /// # Errors
    /// [`ControlError::NotAllowed`] if an account is disabled; none of them is signed in then.
    pub async fn create_devices(&self, new: Vec<NewDevice>) -> Result<(), ControlError> {
        self.control(move |connection| {
            new.iter().try_for_each(|device| insert_device(connection, device))
        })
        .await
    }

    /// Makes users who are no members yet members of a room that nobody has in memory; its stream
    /// tells of each.
    ///
    /// # Errors
    /// [`ControlError::NotFound`] if there is no such room.
    pub async fn add_members(
        &self,
        room: RoomId,
        new: Vec<NewMember>,
        at: UnixMillis,
    ) -> Result<(), ControlError> {
        self.control(move |connection| {
            let mut offset = grow(connection, room, new.len() as u64)? - new.len() as u64;
            let last = offset + new.len() as u64;
            for member in new {
                offset += 1;
                // Whatever older events there are would be pruned before anybody could recover
                // them.
                join(
                    connection,
                    room,
                    member,
                    at,
                    (last - offset < EVENTS_KEPT).then_some(offset),
                )?;
            }
            Ok(())
        })
        .await
    }
}

/// Counts the members in; gives the last offset of the room's stream.
fn grow(connection: &Connection, room: RoomId, members: u64) -> Result<u64, ControlError> {
    let mut statement = connection.prepare_cached(
        "UPDATE rooms SET last_offset = last_offset + ?2, member_count = member_count + ?2 \
         WHERE id = ?1 RETURNING last_offset",
    )?;
    let place = [to_sql(room.as_u64()), to_sql(members)];
    let mut rows = statement.query(place)?;
    match rows.next()? {
        Some(row) => Ok(from_sql(row.get(0)?)),
        None => Err(ControlError::NotFound("room")),
    }
}

fn join(
    connection: &Connection,
    room: RoomId,
    member: NewMember,
    at: UnixMillis,
    offset: Option<u64>,
) -> Result<(), ControlError> {
    let NewMember { user, name, display_name } = member;
    let (room, at) = (to_sql(room.as_u64()), to_sql(at.as_u64()));
    connection
        .prepare_cached(
            "INSERT INTO members (room, user, role, joined_at, name) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![room, to_sql(user.as_u64()), Role::Member.number(), at, name])?;
    if let Some(offset) = offset {
        let event = RoomEvent::Joined { user, name, display_name, role: Role::Member };
        connection
            .prepare_cached("INSERT INTO room_events VALUES (?1, ?2, ?3, NULL, ?4)")?
            .execute(params![room, to_sql(offset), at, event.encode()])?;
    }
    Ok(())
}
