//! The steps by which a deleted room or account leaves the database. Each is a few transactions, takes
//! a moment and not the length of a history, and can be done again after a crash.
//!
//! What has no index by user is looked for in pages over whole tables: this happens once per
//! deleted account, and an index would cost every message.

use super::erased::{Erased, user_events_with};
use crate::storage::error::{ControlError, ReadError};
use crate::storage::ids::{Offset, RoomId, Seq, UserId};
use crate::storage::record::{MessageDetails, RoomEvent};
use crate::storage::sql::{self, Connection, OptionalExtension, params};
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::store::Store;

/// Rows looked at in one read: some ten milliseconds of a reader.
pub(super) const ROWS_LOOKED_AT: u32 = 20_000;

/// Where a scan goes on; the default is the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScanPlace {
    /// From the first message on.
    #[default]
    Begin,
    /// In the messages, after this one.
    Messages(RoomId, Seq),
    /// In the events of rooms, after this one; nothing of them yet if absent.
    RoomEvents(Option<(RoomId, Offset)>),
    /// In the events of users, after this one.
    UserEvents(Option<(UserId, Offset)>),
}

/// Where a user's names stand in the database: a page of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamePlaces {
    /// Messages of the user, and messages that quote one.
    pub messages: Vec<(RoomId, Seq)>,
    /// Events of rooms that tell of the user's coming.
    pub room_events: Vec<(RoomId, Offset)>,
    /// Events of other users.
    pub user_events: Vec<(UserId, Offset)>,
    /// Where to go on; absent: this was the last page.
    pub next: Option<ScanPlace>,
}

impl NamePlaces {
    /// The rooms in which something was found.
    pub fn rooms(&self) -> impl Iterator<Item = RoomId> {
        let messages = self.messages.iter().map(|(room, _)| *room);
        messages.chain(self.room_events.iter().map(|(room, _)| *room))
    }

    /// Whether nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.room_events.is_empty() && self.user_events.is_empty()
    }
}

impl Store {
    /// The next members of a room, at most `limit`, and of each whether the account is still there.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn members_to_tell(
        &self,
        room: RoomId,
        limit: u32,
    ) -> Result<Vec<(UserId, bool)>, ReadError> {
        self.barrier().await?;
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT m.user, u.deleted_at IS NULL FROM members m JOIN users u ON u.id = m.user \
                 WHERE m.room = ?1 ORDER BY m.user LIMIT ?2",
            )?;
            let rows = statement.query_map(params![to_sql(room.as_u64()), limit], |row| {
                Ok((UserId::from_u64(from_sql(row.get(0)?)), row.get(1)?))
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Takes users out of a room that is being deleted.
    ///
    /// # Errors
    /// What every control transaction can meet.
    pub async fn end_memberships(
        &self,
        room: RoomId,
        users: Vec<UserId>,
    ) -> Result<(), ControlError> {
        self.control(move |connection| {
            let room = to_sql(room.as_u64());
            for user in users {
                let place = [room, to_sql(user.as_u64())];
                let sql = "DELETE FROM members WHERE room = ?1 AND user = ?2";
                connection.prepare_cached(sql)?.execute(place)?;
            }
            Ok(())
        })
        .await
    }

    /// Erases the first `limit` messages of a room with all that hangs on them; says whether there
    /// were any.
    ///
    /// # Errors
    /// What every control transaction can meet.
    pub async fn erase_messages(&self, room: RoomId, limit: u32) -> Result<bool, ControlError> {
        self.control(move |connection| {
            let room = to_sql(room.as_u64());
            let last: Option<i64> = connection
                .prepare_cached(
                    "SELECT max(seq) FROM \
                     (SELECT seq FROM messages WHERE room = ?1 ORDER BY seq LIMIT ?2) AS oldest",
                )?
                .query_row(params![room, limit], |row| row.get(0))?;
            let Some(last) = last else { return Ok(false) };
            for sql in [
                "DELETE FROM reactions WHERE room = ?1 AND seq <= ?2",
                "DELETE FROM quotes WHERE room = ?1 AND quoted <= ?2",
                "DELETE FROM everyone_mentions WHERE room = ?1 AND seq <= ?2",
                "DELETE FROM pins WHERE room = ?1 AND seq <= ?2",
                "DELETE FROM saved WHERE room = ?1 AND seq <= ?2",
                "DELETE FROM messages WHERE room = ?1 AND seq <= ?2",
            ] {
                connection.prepare_cached(sql)?.execute([room, last])?;
            }
            Ok(true)
        })
        .await
    }

    /// Users who have read states or mentions of a room, former members too.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn users_with_traces_of(&self, room: RoomId) -> Result<Vec<UserId>, ReadError> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT user FROM read_states WHERE room = ?1 UNION \
                 SELECT user FROM mentions WHERE room = ?1 UNION \
                 SELECT user FROM hidden_rooms WHERE room = ?1",
            )?;
            let rows = statement.query_map([to_sql(room.as_u64())], |row| {
                Ok(UserId::from_u64(from_sql(row.get(0)?)))
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Forgets what users have of a room that is being deleted.
    ///
    /// # Errors
    /// What every control transaction can meet.
    pub async fn forget_traces(
        &self,
        room: RoomId,
        users: Vec<UserId>,
    ) -> Result<(), ControlError> {
        self.control(move |connection| {
            for user in users {
                let place = [to_sql(user.as_u64()), to_sql(room.as_u64())];
                for sql in [
                    "DELETE FROM read_states WHERE user = ?1 AND room = ?2",
                    "DELETE FROM mentions WHERE user = ?1 AND room = ?2",
                    "DELETE FROM hidden_rooms WHERE user = ?1 AND room = ?2",
                ] {
                    connection.prepare_cached(sql)?.execute(place)?;
                }
            }
            Ok(())
        })
        .await
    }

    /// Forgets a room of which nothing but its own rows is left, and that it was to be deleted. Its
    /// files are removed by the next sweep.
    ///
    /// # Errors
    /// What every control transaction can meet.
    pub async fn finish_room_deletion(&self, room: RoomId) -> Result<(), ControlError> {
        self.control(move |connection| {
            for sql in [
                "UPDATE attachments SET expires_at = 0 WHERE room = ?1",
                "DELETE FROM room_events WHERE room = ?1",
                "DELETE FROM bans WHERE room = ?1",
                "DELETE FROM mutes WHERE room = ?1",
                "DELETE FROM invite_claims WHERE room = ?1",
                "DELETE FROM invites WHERE room = ?1",
                "DELETE FROM directs WHERE room = ?1",
                "DELETE FROM rooms WHERE id = ?1",
                "DELETE FROM deletions WHERE room = ?1",
            ] {
                connection.execute(sql, [to_sql(room.as_u64())])?;
            }
            Ok(())
        })
        .await
    }

    /// Where the names of `user` stand: a page of the messages, the events of rooms or those of
    /// users.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn name_places(
        &self,
        user: UserId,
        from: ScanPlace,
    ) -> Result<NamePlaces, ReadError> {
        if from == ScanPlace::Begin {
            // Nothing of the user's is under way after this.
            self.barrier().await?;
        }
        self.read(move |connection| match from {
            ScanPlace::Begin => named_messages(connection, user, None),
            ScanPlace::Messages(room, seq) => named_messages(connection, user, Some((room, seq))),
            ScanPlace::RoomEvents(after) => named_room_events(connection, user, after),
            ScanPlace::UserEvents(after) => {
                let (user_events, next) = user_events_with(connection, Erased::Names(user), after)?;
                let next = next.map(|next| ScanPlace::UserEvents(Some(next)));
                Ok(NamePlaces { user_events, next, ..NamePlaces::default() })
            }
        })
        .await
    }

    /// Takes the names of `user` out of what was found.
    ///
    /// # Errors
    /// What every control transaction can meet.
    pub async fn erase_names(&self, user: UserId, found: NamePlaces) -> Result<(), ControlError> {
        let NamePlaces { messages, room_events, user_events, .. } = found;
        self.erase_each(messages, move |connection, (room, seq)| {
            unname_message(connection, user, room, seq)
        })
        .await?;
        self.erase_each(room_events, move |connection, (room, offset)| {
            unname_room_event(connection, user, room, offset)
        })
        .await?;
        self.erase_in_user_events(user_events, Erased::Names(user)).await
    }

    /// Messages of `user` that are not deleted, in a page of all messages, and where the next
    /// begins.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn messages_of(
        &self,
        user: UserId,
        after: Option<(RoomId, Seq)>,
    ) -> Result<(Vec<(RoomId, Seq)>, Option<(RoomId, Seq)>), ReadError> {
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT m.room, m.seq, m.user = ?3 AND m.deleted_at IS NULL \
                   AND EXISTS (SELECT 1 FROM rooms r \
                               WHERE r.id = m.room AND r.deleted_at IS NULL) \
                 FROM messages m WHERE (m.room, m.seq) > (?1, ?2) ORDER BY m.room, m.seq LIMIT ?4",
            )?;
            let (room, seq) = message_key(after);
            let mut rows =
                statement.query(params![room, seq, to_sql(user.as_u64()), ROWS_LOOKED_AT])?;
            let (mut found, mut last, mut count) = (Vec::new(), None, 0);
            while let Some(row) = rows.next()? {
                let place = place(row.get(0)?, row.get(1)?);
                if row.get(2)? {
                    found.push(place);
                }
                (last, count) = (Some(place), count + 1);
            }
            Ok((found, last.filter(|_| count == ROWS_LOOKED_AT)))
        })
        .await
    }

    /// Rooms with reactions of `user`.
    ///
    /// # Errors
    /// [`ReadError`]; a retry is safe.
    pub async fn rooms_with_reactions_of(&self, user: UserId) -> Result<Vec<RoomId>, ReadError> {
        self.read(move |connection| {
            let sql = "SELECT DISTINCT room FROM reactions WHERE user = ?1";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map([to_sql(user.as_u64())], |row| {
                Ok(RoomId::from_u64(from_sql(row.get(0)?)))
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Erases the reactions of `user`.
    ///
    /// # Errors
    /// What every control transaction can meet.
    pub async fn erase_reactions(&self, user: UserId) -> Result<(), ControlError> {
        let found = self
            .read(move |connection| {
                let sql = "SELECT room, seq, emoji FROM reactions WHERE user = ?1";
                let mut statement = connection.prepare_cached(sql)?;
                let rows = statement.query_map([to_sql(user.as_u64())], |row| {
                    Ok((row.get::<i64>(0)?, row.get::<i64>(1)?, row.get::<String>(2)?))
                })?;
                Ok(rows.collect::<Result<Vec<_>, _>>()?)
            })
            .await;
        let found = found.map_err(|error| super::rooms::log_failure(&error))?;
        self.erase_each(found, move |connection, (room, seq, emoji)| {
            let sql = "DELETE FROM reactions \
                       WHERE room = ?1 AND seq = ?2 AND emoji = ?3 AND user = ?4";
            let reaction = params![room, seq, emoji, to_sql(user.as_u64())];
            connection.prepare_cached(sql)?.execute(reaction).map(drop)
        })
        .await
    }

    /// Forgets what is left of an account but the row that its id leads to, and that it was to be
    /// deleted. Says whether it is done: not if it has become a member somewhere meanwhile.
    ///
    /// # Errors
    /// What every control transaction can meet.
    pub async fn finish_account_deletion(&self, user: UserId) -> Result<bool, ControlError> {
        // The last events of the user's stream, so that none comes after it is erased.
        self.barrier().await.map_err(|error| super::rooms::log_failure(&error))?;
        self.control(move |connection| {
            let id = to_sql(user.as_u64());
            let sql = "SELECT EXISTS (SELECT 1 FROM members m JOIN rooms r ON r.id = m.room \
                                      WHERE m.user = ?1 AND r.deleted_at IS NULL)";
            if connection.query_row(sql, [id], |row| row.get(0))? {
                return Ok(false);
            }
            for sql in [
                "UPDATE attachments SET expires_at = 0 WHERE user = ?1 AND seq IS NULL",
                "DELETE FROM user_events WHERE user = ?1",
                "DELETE FROM read_states WHERE user = ?1",
                "DELETE FROM mentions WHERE user = ?1",
                "DELETE FROM hidden_rooms WHERE user = ?1",
                "DELETE FROM saved WHERE user = ?1",
                "DELETE FROM mutes WHERE user = ?1",
                "DELETE FROM invite_claims WHERE user = ?1",
                "DELETE FROM blocks WHERE user = ?1 OR blocked = ?1",
                "UPDATE users SET picture = NULL WHERE id = ?1",
                "DELETE FROM deletions WHERE user = ?1",
            ] {
                connection.execute(sql, [id])?;
            }
            Ok(true)
        })
        .await
    }
}

fn place(room: i64, seq: i64) -> (RoomId, Seq) {
    (RoomId::from_u64(from_sql(room)), Seq::from_u64(from_sql(seq)))
}

/// What comes before every message; ids are compared as SQLite keeps them, as signed numbers.
fn message_key(after: Option<(RoomId, Seq)>) -> (i64, i64) {
    let after = after.map(|(room, seq)| (to_sql(room.as_u64()), to_sql(seq.as_u64())));
    after.unwrap_or((i64::MIN, i64::MIN))
}

fn named_messages(
    connection: &Connection,
    user: UserId,
    after: Option<(RoomId, Seq)>,
) -> Result<NamePlaces, ReadError> {
    let mut statement = connection.prepare_cached(
        "SELECT room, seq, user = ?3 AND name <> '', details FROM messages \
         WHERE (room, seq) > (?1, ?2) ORDER BY room, seq LIMIT ?4",
    )?;
    let (room, seq) = message_key(after);
    let mut rows = statement.query(params![room, seq, to_sql(user.as_u64()), ROWS_LOOKED_AT])?;
    let (mut messages, mut last, mut count) = (Vec::new(), None, 0);
    while let Some(row) = rows.next()? {
        let place = place(row.get(0)?, row.get(1)?);
        let details: Option<Vec<u8>> = row.get(3)?;
        if row.get(2)? || quotes_name(details.as_deref(), user) {
            messages.push(place);
        }
        (last, count) = (Some(place), count + 1);
    }
    let next = match last.filter(|_| count == ROWS_LOOKED_AT) {
        Some((room, seq)) => ScanPlace::Messages(room, seq),
        None => ScanPlace::RoomEvents(None),
    };
    Ok(NamePlaces { messages, next: Some(next), ..NamePlaces::default() })
}

fn quotes_name(details: Option<&[u8]>, user: UserId) -> bool {
    let details = details.map(|details| MessageDetails::decode(Some(details)));
    let Some(Ok(details)) = details else { return false };
    details.reply_to.is_some_and(|quote| quote.user == user && !quote.name.is_empty())
}

fn unname_message(
    connection: &Connection,
    user: UserId,
    room: RoomId,
    seq: Seq,
) -> sql::Result<()> {
    let place = [to_sql(room.as_u64()), to_sql(seq.as_u64())];
    connection
        .prepare_cached("UPDATE messages SET name = '' WHERE room = ?1 AND seq = ?2 AND user = ?3")?
        .execute([place[0], place[1], to_sql(user.as_u64())])?;
    let details: Option<Option<Vec<u8>>> = connection
        .prepare_cached("SELECT details FROM messages WHERE room = ?1 AND seq = ?2")?
        .query_row(place, |row| row.get(0))
        .optional()?;
    let Ok(mut details) = MessageDetails::decode(details.flatten().as_deref()) else {
        return Ok(());
    };
    let Some(quote) = details.reply_to.as_mut().filter(|quote| quote.user == user) else {
        return Ok(());
    };
    quote.name.clear();
    connection
        .prepare_cached("UPDATE messages SET details = ?3 WHERE room = ?1 AND seq = ?2")?
        .execute(params![place[0], place[1], details.encode()])?;
    Ok(())
}

fn named_room_events(
    connection: &Connection,
    user: UserId,
    after: Option<(RoomId, Offset)>,
) -> Result<NamePlaces, ReadError> {
    let mut statement = connection.prepare_cached(
        "SELECT room, offset, event FROM room_events \
         WHERE (room, offset) > (?1, ?2) ORDER BY room, offset LIMIT ?3",
    )?;
    let after = after.map(|(room, offset)| (to_sql(room.as_u64()), to_sql(offset.as_u64())));
    let (room, offset) = after.unwrap_or((i64::MIN, i64::MIN));
    let mut rows = statement.query(params![room, offset, ROWS_LOOKED_AT])?;
    let (mut room_events, mut last, mut count) = (Vec::new(), None, 0);
    while let Some(row) = rows.next()? {
        let room = RoomId::from_u64(from_sql(row.get(0)?));
        let place = (room, Offset::from_u64(from_sql(row.get(1)?)));
        let event: Option<Vec<u8>> = row.get(2)?;
        let event = event.map(|event| RoomEvent::decode(&event)).transpose()?;
        if matches!(event, Some(RoomEvent::Joined { user: joined, name, .. })
            if joined == user && !name.is_empty())
        {
            room_events.push(place);
        }
        (last, count) = (Some(place), count + 1);
    }
    let next = match last.filter(|_| count == ROWS_LOOKED_AT) {
        Some(last) => ScanPlace::RoomEvents(Some(last)),
        None => ScanPlace::UserEvents(None),
    };
    Ok(NamePlaces { room_events, next: Some(next), ..NamePlaces::default() })
}

fn unname_room_event(
    connection: &Connection,
    user: UserId,
    room: RoomId,
    offset: Offset,
) -> sql::Result<()> {
    let place = [to_sql(room.as_u64()), to_sql(offset.as_u64())];
    let event: Option<Vec<u8>> = connection
        .prepare_cached("SELECT event FROM room_events WHERE room = ?1 AND offset = ?2")?
        .query_row(place, |row| row.get(0))
        .optional()?;
    let event = event.and_then(|event| RoomEvent::decode(&event).ok());
    let Some(RoomEvent::Joined { role, .. }) = event else { return Ok(()) };
    let (name, display_name) = (String::new(), String::new());
    let event = RoomEvent::Joined { user, name, display_name, role }.encode();
    connection
        .prepare_cached("UPDATE room_events SET event = ?3 WHERE room = ?1 AND offset = ?2")?
        .execute(params![place[0], place[1], event])?;
    Ok(())
}
