//! The members of a room.

use folkmoot_protocol::chat::Status;

use crate::storage::control::{read_picture, read_status};
use crate::storage::error::ReadError;
use crate::storage::ids::{PictureId, RoomId, UnixMillis, UserId};
use crate::storage::progress::Stream;
use crate::storage::record::Role;
use crate::storage::sql::{self, Connection, OptionalExtension, Row, params};
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::store::Store;

/// Up to so many members a room is searched member by member.
const SMALL_ROOM: u64 = 2_000;

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
    /// A page of a room's members by name, after one of them; of those whose name, or a word of
    /// whose name to show, begins with a folded `prefix`, if it is not empty.
    ///
    /// # Errors
    /// [`ReadError`]; an unknown room has no members.
    pub async fn members(
        &self,
        room: RoomId,
        after: Option<UserId>,
        prefix: &str,
        limit: u32,
    ) -> Result<Vec<Member>, ReadError> {
        let prefix = prefix.to_owned();
        self.barrier_for(&[Stream::Room(room)]).await?;
        self.read(move |connection| {
            let after = after.map(|user| name_of(connection, user)).transpose()?;
            let after = after.unwrap_or_default();
            match prefix.is_empty() {
                true => page(connection, room, &after, limit),
                false => called(connection, room, &prefix, &after, limit),
            }
        })
        .await
    }
}

/// Names are kept for good, also those of who has left meanwhile.
fn name_of(connection: &Connection, user: UserId) -> Result<String, ReadError> {
    let mut statement = connection.prepare_cached("SELECT name FROM users WHERE id = ?1")?;
    let name = statement.query_row([to_sql(user.as_u64())], |row| row.get(0)).optional()?;
    Ok(name.unwrap_or_default())
}

fn page(
    connection: &Connection,
    room: RoomId,
    after: &str,
    limit: u32,
) -> Result<Vec<Member>, ReadError> {
    let mut statement = connection.prepare_cached(
        "SELECT m.user, m.name, u.display_name, m.role, m.muted_until, m.joined_at, \
         u.picture, u.status_emoji, u.status_text, u.status_until \
         FROM members m INDEXED BY members_by_name JOIN users u ON u.id = m.user \
         WHERE m.room = ?1 AND m.name > ?2 ORDER BY m.name LIMIT ?3",
    )?;
    collect(statement.query(params![to_sql(room.as_u64()), after, limit])?)
}

/// Goes by the words of everybody's names in a large room, and by the members of a small one.
fn called(
    connection: &Connection,
    room: RoomId,
    prefix: &str,
    after: &str,
    limit: u32,
) -> Result<Vec<Member>, ReadError> {
    let members: Option<u64> = connection
        .prepare_cached("SELECT member_count FROM rooms WHERE id = ?1")?
        .query_row([to_sql(room.as_u64())], |row| Ok(from_sql(row.get(0)?)))
        .optional()?;
    let found = match members.unwrap_or_default() <= SMALL_ROOM {
        true => {
            "SELECT m.user FROM members m CROSS JOIN name_words w ON w.user = m.user \
             WHERE m.room = ?1 AND w.word >= ?2 AND w.word < ?2 || char(1114111)"
        }
        false => {
            "SELECT m.user FROM name_words w CROSS JOIN members m ON m.user = w.user \
             WHERE m.room = ?1 AND w.word >= ?2 AND w.word < ?2 || char(1114111)"
        }
    };
    let sql = format!(
        "SELECT m.user, m.name, u.display_name, m.role, m.muted_until, m.joined_at, \
         u.picture, u.status_emoji, u.status_text, u.status_until \
         FROM members m JOIN users u ON u.id = m.user \
         WHERE m.room = ?1 AND m.name > ?3 AND m.user IN ({found}) ORDER BY m.name LIMIT ?4"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    collect(statement.query(params![to_sql(room.as_u64()), prefix, after, limit])?)
}

fn collect(mut rows: sql::Rows<'_>) -> Result<Vec<Member>, ReadError> {
    let mut members = Vec::new();
    while let Some(row) = rows.next()? {
        members.push(read_member(&row)?);
    }
    Ok(members)
}

fn read_member(row: &Row<'_>) -> Result<Member, ReadError> {
    Ok(Member {
        user: UserId::from_u64(from_sql(row.get(0)?)),
        name: row.get(1)?,
        display_name: row.get(2)?,
        role: Role::from_number(row.get(3)?)?,
        muted_until: row.get::<Option<i64>>(4)?.map(|at| UnixMillis::from_u64(from_sql(at))),
        joined_at: UnixMillis::from_u64(from_sql(row.get(5)?)),
        picture: read_picture(row, 6)?,
        status: read_status(row, 7)?,
    })
}
