//! What a deleted room or account leaves in the streams of users: names, excerpts and names of
//! rooms. The same function takes it out of the database and out of memory.

use althing::Wire;
use folkmoot_protocol::chat::{UserEvent, UserView};

use super::erasure::ROWS_LOOKED_AT;
use crate::storage::error::{ControlError, ReadError};
use crate::storage::ids::{Offset, RoomId, UserId};
use crate::storage::sql::{self, Connection, OptionalExtension, params};
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::store::Store;

/// Places in which something is erased in one transaction: each costs a database that is far away
/// two or three journeys, for which all other writes wait, and a log elsewhere some KiB of one entry.
const PLACES_AT_ONCE: usize = 200;

/// An event of a user's own stream.
pub(crate) type EventPlace = (UserId, Offset);

/// What is taken out of the streams of other users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Wire)]
pub(crate) enum Erased {
    /// The names of a user.
    Names(UserId),
    /// What a room is called, and what was said there.
    Room(RoomId),
}

impl Store {
    /// Events of users' own streams that have something that is to be erased: those of a page, and
    /// where the next one begins.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub(crate) async fn user_events_with(
        &self,
        erased: Erased,
        after: Option<EventPlace>,
    ) -> Result<(Vec<EventPlace>, Option<EventPlace>), ReadError> {
        self.read(move |connection| Ok(user_events_with(connection, erased, after)?)).await
    }

    /// Erases it there.
    ///
    /// # Errors
    /// What every control transaction can meet.
    pub(crate) async fn erase_in_user_events(
        &self,
        places: Vec<EventPlace>,
        erased: Erased,
    ) -> Result<(), ControlError> {
        self.erase_each(places, move |connection, place| {
            erase_in_user_event(connection, place, erased)
        })
        .await
    }

    /// Erases what is in some places, not all in one transaction.
    pub(super) async fn erase_each<P: Clone + Send + 'static>(
        &self,
        places: Vec<P>,
        erase: impl Fn(&Connection, P) -> sql::Result<()> + Copy + Send + 'static,
    ) -> Result<(), ControlError> {
        for some in places.chunks(PLACES_AT_ONCE) {
            let some = some.to_vec();
            self.control(move |connection| {
                Ok(some.into_iter().try_for_each(|place| erase(connection, place))?)
            })
            .await?;
        }
        Ok(())
    }
}

fn erase_in_user_event(
    connection: &Connection,
    (user, offset): EventPlace,
    erased: Erased,
) -> sql::Result<()> {
    let place = [to_sql(user.as_u64()), to_sql(offset.as_u64())];
    let sql = "SELECT data FROM user_events WHERE user = ?1 AND offset = ?2";
    let found = connection.prepare_cached(sql)?.query_row(place, |row| row.get(0));
    let Some(data): Option<String> = found.optional()? else { return Ok(()) };
    // What this program does not know has no names that it has written.
    let Ok(mut event) = serde_json::from_str(&data) else { return Ok(()) };
    if erased.leave(&mut event) {
        let data = serde_json::to_string(&event).expect("an event has no failing parts");
        let sql = "UPDATE user_events SET data = ?3 WHERE user = ?1 AND offset = ?2";
        connection.prepare_cached(sql)?.execute(params![place[0], place[1], data])?;
    }
    Ok(())
}

pub(super) fn user_events_with(
    connection: &Connection,
    erased: Erased,
    after: Option<EventPlace>,
) -> sql::Result<(Vec<EventPlace>, Option<EventPlace>)> {
    let mut statement = connection.prepare_cached(
        "SELECT user, offset, CASE WHEN instr(data, ?3) > 0 THEN data END FROM user_events \
         WHERE (user, offset) > (?1, ?2) ORDER BY user, offset LIMIT ?4",
    )?;
    let after = after.map(|(user, offset)| (to_sql(user.as_u64()), to_sql(offset.as_u64())));
    let (user, offset) = after.unwrap_or((i64::MIN, i64::MIN));
    let mut rows = statement.query(params![user, offset, erased.mark(), ROWS_LOOKED_AT])?;
    let (mut found, mut last, mut count) = (Vec::new(), None, 0);
    while let Some(row) = rows.next()? {
        let user = UserId::from_u64(from_sql(row.get(0)?));
        let place = (user, Offset::from_u64(from_sql(row.get(1)?)));
        let data: Option<String> = row.get(2)?;
        let event = data.and_then(|data| serde_json::from_str(&data).ok());
        if event.is_some_and(|mut event| erased.leave(&mut event)) {
            found.push(place);
        }
        (last, count) = (Some(place), count + 1);
    }
    Ok((found, last.filter(|_| count == ROWS_LOOKED_AT)))
}

impl Erased {
    /// Takes what is erased out of an event of a user's own stream; says whether there was any.
    pub(crate) fn leave(self, event: &mut UserEvent) -> bool {
        match self {
            Self::Names(user) => unname(event, user),
            Self::Room(room) => unroom(event, room),
        }
    }

    /// What stands in every event that may have any of it.
    fn mark(self) -> String {
        match self {
            Self::Names(user) => user.to_string(),
            Self::Room(room) => room.to_string(),
        }
    }
}

fn unname(event: &mut UserEvent, user: UserId) -> bool {
    match event {
        UserEvent::Mention(mention) if mention.user == user && !mention.name.is_empty() => {
            mention.name.clear();
            true
        }
        UserEvent::RoomAdded { room } => {
            let peer = room.peer.as_mut().filter(|peer| peer.id == user && !peer.deleted);
            let Some(peer) = peer else { return false };
            let (name, display_name) = (String::new(), String::new());
            let (picture, status) = (None, None);
            *peer = UserView { id: user, name, display_name, picture, status, deleted: true };
            true
        }
        _ => false,
    }
}

fn unroom(event: &mut UserEvent, gone: RoomId) -> bool {
    match event {
        UserEvent::Mention(mention) if mention.room == gone && !mention.excerpt.is_empty() => {
            mention.excerpt.clear();
            true
        }
        UserEvent::RoomAdded { room } if room.id == gone => {
            let is_named = !room.name.is_empty() || !room.topic.is_empty() || room.last.is_some();
            room.name.clear();
            room.topic.clear();
            room.last = None;
            is_named
        }
        _ => false,
    }
}
