//! Rooms as a list of rooms shows them, for a user of theirs: read without waking the rooms.

use super::{RoomSummary, StoredMessage, history, room};
use crate::storage::control::{Account, account};
use crate::storage::error::ReadError;
use crate::storage::ids::{RoomId, Seq, UnixMillis, UserId};
use crate::storage::load::facts::Rights;
use crate::storage::progress::Stream;
use crate::storage::record::Role;
use crate::storage::sql::{Connection, params};
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::store::Store;

/// `@everyone` messages counted; a badge says no more than this.
const EVERYONE_MAX: u32 = 1_000;

/// A room from the side of one of its members.
#[derive(Clone, Debug)]
pub struct RoomHead {
    /// The room.
    pub summary: RoomSummary,
    /// Nobody may write in it.
    pub is_archived: bool,
    /// What the user may do there.
    pub rights: Rights,
    /// The other one of a direct room.
    pub peer: Option<Account>,
    /// Messages that mention everyone after the one asked for, oldest first.
    pub everyone: Vec<Seq>,
    /// The newest message.
    pub newest: Option<StoredMessage>,
}

impl Store {
    /// Some rooms as one of their members sees them, each with what mentions everyone after a
    /// message. Those the user is no member of are left out, and those that are being deleted.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn room_heads(
        &self,
        user: UserId,
        rooms: Vec<(RoomId, Seq)>,
    ) -> Result<Vec<RoomHead>, ReadError> {
        let rooms_of = rooms.iter().map(|(room, _)| Stream::Room(*room));
        let streams: Vec<Stream> = rooms_of.chain([Stream::User(user)]).collect();
        self.barrier_for(&streams).await?;
        self.read(move |connection| {
            let mut heads = Vec::with_capacity(rooms.len());
            for (room, read_seq) in rooms {
                heads.extend(head(connection, user, room, read_seq)?);
            }
            Ok(heads)
        })
        .await
    }
}

fn head(
    connection: &Connection,
    user: UserId,
    room: RoomId,
    read_seq: Seq,
) -> Result<Option<RoomHead>, ReadError> {
    let sql = format!(
        "SELECT {}, m.role, m.muted_until, \
                (SELECT CASE WHEN d.low = ?2 THEN d.high ELSE d.low END FROM directs d WHERE d.room = r.id), \
                r.archived_at IS NOT NULL \
         FROM members m JOIN rooms r ON r.id = m.room AND r.deleted_at IS NULL \
         WHERE m.room = ?1 AND m.user = ?2",
        room::SUMMARY_COLUMNS
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([to_sql(room.as_u64()), to_sql(user.as_u64())])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let summary = room::read_summary(&row)?;
    let muted_until = row.get::<Option<i64>>(11)?;
    let rights = Rights {
        role: Role::from_number(row.get(10)?)?,
        muted_until: muted_until.map(|at| UnixMillis::from_u64(from_sql(at))),
    };
    let peer = match row.get::<Option<i64>>(12)? {
        Some(peer) => account(connection, UserId::from_u64(from_sql(peer)))?,
        None => None,
    };
    let is_archived = row.get(13)?;
    let everyone = everyone(connection, room, read_seq)?;
    let newest = history::newest(connection, room, summary.last_seq)?;
    Ok(Some(RoomHead { summary, is_archived, rights, peer, everyone, newest }))
}

fn everyone(connection: &Connection, room: RoomId, after: Seq) -> Result<Vec<Seq>, ReadError> {
    let mut statement = connection.prepare_cached(
        "SELECT seq FROM everyone_mentions WHERE room = ?1 AND seq > ?2 ORDER BY seq DESC LIMIT ?3",
    )?;
    let place = params![to_sql(room.as_u64()), to_sql(after.as_u64()), EVERYONE_MAX];
    let rows = statement.query_map(place, |row| Ok(Seq::from_u64(from_sql(row.get(0)?))))?;
    let mut seqs: Vec<Seq> = rows.collect::<Result<_, _>>()?;
    seqs.reverse();
    Ok(seqs)
}
