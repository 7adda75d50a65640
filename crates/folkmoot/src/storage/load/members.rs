//! The members of a room.

use folkmoot_protocol::chat::Status;
use rusqlite::{Connection, Row, params};

use crate::storage::control::{read_picture, read_status};
use crate::storage::error::ReadError;
use crate::storage::ids::{PictureId, RoomId, UnixMillis, UserId};
use crate::storage::progress::Stream;
use crate::storage::record::Role;
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::store::Store;

/// A member of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Who.
    pub user: UserId,
    /// Their unique name.
    pub name: String,
    /// Their name to show.
    pub display_name: String,
    /// What they may do.
    pub role: Role,
    /// Muted until then; absent: not muted.
    pub muted_until: Option<UnixMillis>,
    /// Since when.
    pub joined_at: UnixMillis,
    /// The picture they show.
    pub picture: Option<PictureId>,
    /// What they are up to.
    pub status: Option<Status>,
}

impl Store {
    /// A page of those of a room's members that are `wanted`, in the order of their ids, after one of
    /// them.
    ///
    /// Ids are compared as SQLite keeps them, as signed numbers.
    ///
    /// # Errors
    /// [`ReadError`]; an unknown room has no members.
    pub async fn members(
        &self,
        room: RoomId,
        after: Option<UserId>,
        limit: u32,
        wanted: impl Fn(&Member) -> bool + Send + 'static,
    ) -> Result<Vec<Member>, ReadError> {
        self.barrier_for(&[Stream::Room(room)]).await?;
        self.read(move |connection| page(connection, room, after, limit, wanted)).await
    }
}

/// Reads members inside a snapshot.
pub(super) fn page(
    connection: &Connection,
    room: RoomId,
    after: Option<UserId>,
    limit: u32,
    wanted: impl Fn(&Member) -> bool,
) -> Result<Vec<Member>, ReadError> {
    let mut statement = connection.prepare_cached(
        "SELECT m.user, u.name, u.display_name, m.role, m.muted_until, m.joined_at, \
         u.picture, u.status_emoji, u.status_text, u.status_until \
         FROM members m JOIN users u ON u.id = m.user \
         WHERE m.room = ?1 AND (?2 IS NULL OR m.user > ?2) ORDER BY m.user",
    )?;
    let after = after.map(|user| to_sql(user.as_u64()));
    let mut rows = statement.query(params![to_sql(room.as_u64()), after])?;
    let mut members = Vec::new();
    while let Some(row) = rows.next()? {
        if members.len() == limit as usize {
            break;
        }
        let member = read_member(row)?;
        if wanted(&member) {
            members.push(member);
        }
    }
    Ok(members)
}

fn read_member(row: &Row<'_>) -> Result<Member, ReadError> {
    Ok(Member {
        user: UserId::from_u64(from_sql(row.get(0)?)),
        name: row.get(1)?,
        display_name: row.get(2)?,
        role: Role::from_number(row.get(3)?)?,
        muted_until: row.get::<_, Option<i64>>(4)?.map(|at| UnixMillis::from_u64(from_sql(at))),
        joined_at: UnixMillis::from_u64(from_sql(row.get(5)?)),
        picture: read_picture(row, 6)?,
        status: read_status(row, 7)?,
    })
}
