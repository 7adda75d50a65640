//! Invite links: a code that lets its holder into a room, until it expires or is used up.

use super::moderation::{ModerationAction, NewModeration, note};
use super::rooms::log_failure;
use crate::storage::error::{ControlError, ReadError};
use crate::storage::ids::{RoomId, UnixMillis, UserId};
use crate::storage::progress::Stream;
use crate::storage::sql::{self, Connection, OptionalExtension, Row, params};
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::store::Store;

const COLUMNS: &str = "code, room, by, created_at, expires_at, uses, uses_max";

/// An invite as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invite {
    /// The secret in the link.
    pub code: String,
    /// Where it leads.
    pub room: RoomId,
    /// Who made it.
    pub by: UserId,
    /// When.
    pub created_at: UnixMillis,
    /// Until when it works; absent: without end.
    pub expires_at: Option<UnixMillis>,
    /// How often it was used.
    pub uses: u64,
    /// How often it may be used; absent: without limit.
    pub uses_max: Option<u64>,
}

/// An invite to make.
#[derive(Clone, Debug)]
pub struct NewInvite {
    /// A fresh, unguessable code.
    pub code: String,
    /// Where it leads.
    pub room: RoomId,
    /// Who makes it.
    pub by: UserId,
    /// Now.
    pub at: UnixMillis,
    /// Until when it works.
    pub expires_at: Option<UnixMillis>,
    /// How often it may be used.
    pub uses_max: Option<u64>,
}

/// What came of using an invite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redeemed {
    /// One use is taken; here it is with that use counted.
    Yes(Invite),
    /// There is none of this code.
    Unknown,
    /// It has expired.
    Expired,
    /// All its uses are taken.
    UsedUp,
}

impl Store {
    /// Makes an invite.
    ///
    /// # Errors
    /// What every control transaction can meet.
    pub async fn create_invite(&self, new: NewInvite) -> Result<Invite, ControlError> {
        self.control(move |connection| {
            connection.execute(
                "INSERT INTO invites VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6)",
                params![
                    new.code,
                    to_sql(new.room.as_u64()),
                    to_sql(new.by.as_u64()),
                    to_sql(new.at.as_u64()),
                    new.expires_at.map(|at| to_sql(at.as_u64())),
                    new.uses_max.map(to_sql)
                ],
            )?;
            let entry = NewModeration {
                until: new.expires_at,
                ..NewModeration::in_room(new.at, new.by, ModerationAction::InviteMade, new.room)
            };
            note(connection, entry)?;
            find(connection, &new.code)?.ok_or(ControlError::NotFound("invite"))
        })
        .await
    }

    /// Takes an invite back. Says whether there was one.
    ///
    /// # Errors
    /// What every control transaction can meet.
    pub async fn revoke_invite(
        &self,
        code: String,
        by: UserId,
        at: UnixMillis,
    ) -> Result<bool, ControlError> {
        self.control(move |connection| {
            let Some(invite) = find(connection, &code)? else { return Ok(false) };
            connection.execute("DELETE FROM invites WHERE code = ?1", [code])?;
            let action = ModerationAction::InviteRevoked;
            note(connection, NewModeration::in_room(at, by, action, invite.room))?;
            Ok(true)
        })
        .await
    }

    /// Takes one use of an invite for `user`, unless it has none left. Until the user is in the
    /// room, further calls find the use taken already.
    ///
    /// # Errors
    /// What every control transaction can meet.
    pub async fn redeem_invite(
        &self,
        code: String,
        user: UserId,
        now: UnixMillis,
    ) -> Result<Redeemed, ControlError> {
        // Whether the user has come in and gone again may still be on its way from the log.
        let log = self.barrier_for(&[Stream::User(user)]).await;
        log.map_err(|error| log_failure(&error))?;
        self.control(move |connection| Ok(redeem(connection, &code, user, now)?)).await
    }

    /// An invite by its code, whether or not it still works.
    ///
    /// # Errors
    /// [`ReadError`] only if the database fails.
    pub async fn invite(&self, code: String) -> Result<Option<Invite>, ReadError> {
        self.read(move |connection| Ok(find(connection, &code)?)).await
    }

    /// The invites of a room, the latest first, at most `limit` of those after `after`: the
    /// moment and the code of the last one seen.
    ///
    /// # Errors
    /// [`ReadError`] only if the database fails.
    pub async fn invites(
        &self,
        room: RoomId,
        after: Option<(UnixMillis, String)>,
        limit: u32,
    ) -> Result<Vec<Invite>, ReadError> {
        let (at, code) =
            after.map_or((i64::MAX, String::new()), |(at, code)| (to_sql(at.as_u64()), code));
        self.read(move |connection| {
            let sql = format!(
                "SELECT {COLUMNS} FROM invites WHERE room = ?1 \
                   AND (created_at < ?2 OR (created_at = ?2 AND code > ?3)) \
                 ORDER BY created_at DESC, code LIMIT ?4"
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let place = params![to_sql(room.as_u64()), at, code, limit];
            let rows = statement.query_map(place, read_invite)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}

/// Takes one use of an invite inside a transaction.
pub(super) fn redeem(
    connection: &Connection,
    code: &str,
    user: UserId,
    now: UnixMillis,
) -> sql::Result<Redeemed> {
    let Some(mut invite) = find(connection, code)? else { return Ok(Redeemed::Unknown) };
    if invite.expires_at.is_some_and(|at| at <= now) {
        return Ok(Redeemed::Expired);
    }
    let (room, user) = (to_sql(invite.room.as_u64()), to_sql(user.as_u64()));
    let claimed: bool = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM invite_claims WHERE room = ?1 AND user = ?2 AND code = ?3)",
        )?
        .query_row(params![room, user, code], |row| row.get(0))?;
    if claimed {
        return Ok(Redeemed::Yes(invite));
    }
    if invite.uses_max.is_some_and(|max| invite.uses >= max) {
        return Ok(Redeemed::UsedUp);
    }
    connection.execute("UPDATE invites SET uses = uses + 1 WHERE code = ?1", [code])?;
    connection
        .prepare_cached(
            "INSERT INTO invite_claims VALUES (?1, ?2, ?3) \
 ON CONFLICT (room, user) DO UPDATE SET code = excluded.code",
        )?
        .execute(params![room, user, code])?;
    invite.uses += 1;
    Ok(Redeemed::Yes(invite))
}

fn find(connection: &Connection, code: &str) -> sql::Result<Option<Invite>> {
    let sql = format!("SELECT {COLUMNS} FROM invites WHERE code = ?1");
    connection.prepare_cached(&sql)?.query_row([code], read_invite).optional()
}

fn read_invite(row: &Row<'_>) -> sql::Result<Invite> {
    Ok(Invite {
        code: row.get(0)?,
        room: RoomId::from_u64(from_sql(row.get(1)?)),
        by: UserId::from_u64(from_sql(row.get(2)?)),
        created_at: UnixMillis::from_u64(from_sql(row.get(3)?)),
        expires_at: row.get::<Option<i64>>(4)?.map(|at| UnixMillis::from_u64(from_sql(at))),
        uses: from_sql(row.get(5)?),
        uses_max: row.get::<Option<i64>>(6)?.map(from_sql),
    })
}
