//! The directory: rooms that everybody on the server may find.

use folkmoot_protocol::chat::ListedRoom;

use crate::storage::control::access_from_number;
use crate::storage::error::ReadError;
use crate::storage::ids::{RoomId, UserId};
use crate::storage::sql::{Row, params};
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::store::Store;
use crate::text::folded;

/// Rooms looked at for one page: a search that finds nothing among so many says how to go on,
/// instead of holding a reader for longer.
const LOOKED_AT_MAX: usize = 2_000;

/// A place in the directory: a room's name and id.
pub type ListedPlace = (String, RoomId);

/// A page of the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedPage {
    /// The rooms, by name.
    pub rooms: Vec<ListedRoom>,
    /// There may be more after this place.
    pub next: Option<ListedPlace>,
}

impl Store {
    /// A page of the listed rooms by name, after a place; of those that have all words of `search`
    /// in name or topic, as `viewer` may see them: who is banned from a room does not find it.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn listed_rooms(
        &self,
        viewer: UserId,
        search: String,
        after: Option<ListedPlace>,
        limit: usize,
    ) -> Result<ListedPage, ReadError> {
        let words: Vec<String> = search.split_whitespace().map(folded).collect();
        // Names, members and bans may still be on their way from the log.
        self.barrier().await?;
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, name, topic, member_count, access, \
                        EXISTS (SELECT 1 FROM members WHERE room = rooms.id AND user = ?1) \
                 FROM rooms WHERE access > 0 AND deleted_at IS NULL AND archived_at IS NULL \
                 AND (CAST(?2 AS TEXT) IS NULL OR name COLLATE NOCASE > lower(?2) \
                      OR (name COLLATE NOCASE = lower(?2) AND id > ?3)) \
                 AND NOT EXISTS (SELECT 1 FROM bans WHERE room = rooms.id AND user = ?1) \
                 ORDER BY name COLLATE NOCASE, id",
            )?;
            let (name, id) = after.unzip();
            let place = params![to_sql(viewer.as_u64()), name, id.map(|id| to_sql(id.as_u64()))];
            let mut rows = statement.query(place)?;
            let mut rooms: Vec<ListedRoom> = Vec::new();
            let mut last: Option<ListedPlace> = None;
            let mut looked_at = 0;
            while let Some(row) = rows.next()? {
                if rooms.len() == limit || looked_at == LOOKED_AT_MAX {
                    return Ok(ListedPage { rooms, next: last });
                }
                looked_at += 1;
                let room = read_listed(&row)?;
                last = Some((room.name.clone(), room.id));
                if has_all(&words, &room) {
                    rooms.push(room);
                }
            }
            Ok(ListedPage { rooms, next: None })
        })
        .await
    }
}

fn has_all(words: &[String], room: &ListedRoom) -> bool {
    if words.is_empty() {
        return true;
    }
    let (name, topic) = (folded(&room.name), folded(&room.topic));
    words.iter().all(|word| name.contains(word) || topic.contains(word))
}

fn read_listed(row: &Row<'_>) -> Result<ListedRoom, ReadError> {
    let members: u64 = from_sql(row.get(3)?);
    Ok(ListedRoom {
        id: RoomId::from_u64(from_sql(row.get(0)?)),
        name: row.get(1)?,
        topic: row.get(2)?,
        members: u32::try_from(members).unwrap_or(u32::MAX),
        access: access_from_number(row.get(4)?)?,
        joined: row.get(5)?,
    })
}
