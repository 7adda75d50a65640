//! The log of moderation: who did what to whom, where and when. Append-only: the database itself
//! refuses to change or delete a row.
//!
//! A row is written in the transaction of the change it tells of: by the mover for what happens in
//! a room, by a control transaction for everything else. So it is there exactly when the change is.

pub use crate::storage::sqlite::moderation::ModerationAction;
pub(crate) use crate::storage::sqlite::moderation::{NewModeration, note};

use crate::storage::error::ReadError;
use crate::storage::ids::{RoomId, UnixMillis, UserId};
use crate::storage::record::Role;
use crate::storage::sql::{self, Row, params};
use crate::storage::sqlite::apply::from_sql;
use crate::storage::store::Store;

/// Somebody that an entry names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedUser {
    /// The id.
    pub id: UserId,
    /// The unique name.
    pub name: String,
    /// The name to show, as it is now.
    pub display_name: String,
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModerationEntry {
    /// Its number; rises, may skip.
    pub id: u64,
    /// When.
    pub at: UnixMillis,
    /// Who did it.
    pub by: Option<NamedUser>,
    /// What.
    pub action: ModerationAction,
    /// To whom.
    pub user: Option<NamedUser>,
    /// Where, with the room's present name; it has none once it is deleted.
    pub room: Option<(RoomId, String)>,
    /// The new role.
    pub role: Option<Role>,
    /// Until when.
    pub until: Option<UnixMillis>,
}

impl Store {
    /// A page of the log, the latest first, before the entry of a number.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn moderation(
        &self,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<ModerationEntry>, ReadError> {
        // What happened in rooms may still be on its way from the log.
        self.barrier().await?;
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT m.id, m.at, m.action, m.by, b.name, b.display_name, \
                        m.user, u.name, u.display_name, m.room, r.name, m.role, m.until \
                 FROM moderation m LEFT JOIN users b ON b.id = m.by \
                 LEFT JOIN users u ON u.id = m.user LEFT JOIN rooms r ON r.id = m.room AND r.deleted_at IS NULL \
                 WHERE m.id < ?1 ORDER BY m.id DESC LIMIT ?2",
            )?;
            let before = before.and_then(|before| i64::try_from(before).ok()).unwrap_or(i64::MAX);
            let mut rows = statement.query(params![before, limit])?;
            let mut entries = Vec::new();
            while let Some(row) = rows.next()? {
                entries.push(read_entry(&row)?);
            }
            Ok(entries)
        })
        .await
    }
}

fn read_entry(row: &Row<'_>) -> Result<ModerationEntry, ReadError> {
    let name: Option<String> = row.get(10)?;
    let room = row.get::<Option<i64>>(9)?;
    let room = room.map(|id| (RoomId::from_u64(from_sql(id)), name.unwrap_or_default()));
    let role = row.get::<Option<u32>>(11)?.map(Role::from_number).transpose()?;
    Ok(ModerationEntry {
        id: from_sql(row.get(0)?),
        at: UnixMillis::from_u64(from_sql(row.get(1)?)),
        action: ModerationAction::from_number(row.get(2)?)?,
        by: named_user(row, 3)?,
        user: named_user(row, 6)?,
        room,
        role,
        until: row.get::<Option<i64>>(12)?.map(|at| UnixMillis::from_u64(from_sql(at))),
    })
}

/// The user in three columns: id, name, name to show.
fn named_user(row: &Row<'_>, first: usize) -> sql::Result<Option<NamedUser>> {
    let (Some(id), Some(name)) = (row.get::<Option<i64>>(first)?, row.get(first + 1)?) else {
        return Ok(None);
    };
    let display_name = row.get(first + 2)?;
    Ok(Some(NamedUser { id: UserId::from_u64(from_sql(id)), name, display_name }))
}
