//! Accounts and memberships by the ten thousand, each call one transaction: for filling a data
//! directory, not for serving.

use std::collections::{BTreeSet, HashSet};

use rusqlite::types::Value;

use super::accounts::NewAccount;
use super::devices::NewDevice;
use crate::storage::error::ControlError;
use crate::storage::ids::{RoomId, UnixMillis, UserId};
use crate::storage::record::{Role, RoomEvent};
use crate::storage::sql::Connection;
use crate::storage::sqlite::apply::{EVENTS_KEPT, from_sql, to_sql};
use crate::storage::sqlite::name_words::words;
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
            refuse_taken(connection, &new)?;
            let (mut rows, mut found_by) = (Vec::new(), BTreeSet::new());
            for account in new {
                let NewAccount { id, name, display_name, password_hash, at } = account;
                let id = to_sql(id.as_u64());
                // In their order, so that the index grows at few places.
                found_by.extend(words(&name, &display_name).map(|word| (word, id)));
                let (name, hash) = (Value::Text(name), Value::Text(password_hash));
                let (shown, at) = (Value::Text(display_name), to_sql(at.as_u64()).into());
                rows.push(vec![id.into(), name, shown, hash, false.into(), at]);
            }
            let columns = ["id", "name", "display_name", "password_hash", "is_admin", "created_at"];
            connection.insert_rows("users", &columns, &rows)?;
            let words: Vec<_> =
                found_by.into_iter().map(|(word, id)| vec![Value::Text(word), id.into()]).collect();
            connection.insert_rows("name_words", &["word", "user"], &words)?;
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
            refuse_disabled(connection, &new)?;
            let row = |device: NewDevice| {
                let (id, user) = (to_sql(device.id.as_u64()), to_sql(device.user.as_u64()));
                let (token, at) = (device.token_hash.to_vec(), to_sql(device.at.as_u64()));
                let label = Value::Text(device.label);
                vec![id.into(), user.into(), label, token.into(), at.into(), at.into()]
            };
            let rows: Vec<_> = new.into_iter().map(row).collect();
            let columns = ["id", "user", "label", "token_hash", "created_at", "seen_at"];
            Ok(connection.insert_rows("devices", &columns, &rows)?)
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
            let (room, at) = (to_sql(room.as_u64()), to_sql(at.as_u64()));
            let (mut members, mut events) = (Vec::new(), Vec::new());
            for member in new {
                offset += 1;
                let NewMember { user, name, display_name } = member;
                let (id, role) = (to_sql(user.as_u64()), i64::from(Role::Member.number()));
                let shown = Value::Text(name.clone());
                members.push(vec![room.into(), id.into(), role.into(), at.into(), shown]);
                // Whatever older events there are would be pruned before anybody could recover
                // them.
                if last - offset < EVENTS_KEPT {
                    let event = RoomEvent::Joined { user, name, display_name, role: Role::Member };
                    let (offset, event) = (to_sql(offset), event.encode());
                    events.push(vec![room.into(), offset.into(), at.into(), event.into()]);
                }
            }
            let columns = ["room", "user", "role", "joined_at", "name"];
            connection.insert_rows("members", &columns, &members)?;
            connection.insert_rows("room_events", &["room", "offset", "at", "event"], &events)?;
            Ok(())
        })
        .await
    }
}

/// None of the names may be somebody's.
fn refuse_taken(connection: &Connection, new: &[NewAccount]) -> Result<(), ControlError> {
    let names = || new.iter().map(|account| &account.name);
    let (Some(first), Some(last)) = (names().min(), names().max()) else { return Ok(()) };
    let sql = "SELECT name FROM users WHERE name >= ?1 AND name <= ?2";
    let mut taken = connection.prepare_cached(sql)?;
    let taken = taken.query_map([first, last], |row| row.get(0))?;
    let taken = taken.collect::<Result<HashSet<String>, _>>()?;
    match names().find(|name| taken.contains(*name)) {
        Some(name) => Err(ControlError::NameTaken(name.clone())),
        None => Ok(()),
    }
}

fn refuse_disabled(connection: &Connection, new: &[NewDevice]) -> Result<(), ControlError> {
    let mut disabled =
        connection.prepare_cached("SELECT id FROM users WHERE disabled_at IS NOT NULL")?;
    let disabled = disabled.query_map([], |row| row.get(0))?;
    let disabled = disabled.collect::<Result<HashSet<i64>, _>>()?;
    match new.iter().any(|device| disabled.contains(&to_sql(device.user.as_u64()))) {
        true => Err(ControlError::NotAllowed("this account is disabled")),
        false => Ok(()),
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
