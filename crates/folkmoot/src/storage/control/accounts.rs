//! Accounts: made, found, and opened by a password.

use folkmoot_protocol::chat::Status;

use super::devices::{NewDevice, insert_device};
use super::invites::{Redeemed, redeem};
use super::profiles;
use crate::storage::error::{ControlError, ReadError};
use crate::storage::ids::{DeviceId, PictureId, RoomId, UnixMillis, UserId};
use crate::storage::sql::{self, Connection, OptionalExtension, Row, params};
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::sqlite::name_words::note_words;
use crate::storage::store::Store;

/// The columns of [`Account`], in its order.
pub(crate) const ACCOUNT_COLUMNS: &str = "users.id, users.name, users.display_name, \
     users.is_admin, users.created_at, users.picture, users.status_emoji, users.status_text, \
     users.status_until";
/// How many those are: further columns of a row begin there.
pub(crate) const ACCOUNT_WIDTH: usize = 9;

/// A person's account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its id.
    pub id: UserId,
    /// The unique name.
    pub name: String,
    /// The name to show.
    pub display_name: String,
    /// Whether it administers the server.
    pub is_admin: bool,
    /// When it was made.
    pub created_at: UnixMillis,
    /// The picture it shows.
    pub picture: Option<PictureId>,
    /// What its user is up to.
    pub status: Option<Status>,
}

/// What the name of a deleted account begins with; no name that somebody can choose has it.
pub(crate) const DELETED_MARK: char = '!';

/// Whether a name is what is left of a deleted account's.
pub(crate) fn is_deleted_name(name: &str) -> bool {
    name.starts_with(DELETED_MARK)
}

impl Account {
    /// Whether it was deleted: only its id is left.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        is_deleted_name(&self.name)
    }
}

/// An account to make.
#[derive(Clone, Debug)]
pub struct NewAccount {
    /// A fresh id.
    pub id: UserId,
    /// A name that is valid; whether it is free is decided here.
    pub name: String,
    /// The name to show.
    pub display_name: String,
    /// The password's Argon2id hash in PHC form.
    pub password_hash: String,
    /// Now.
    pub at: UnixMillis,
}

impl Store {
    /// Makes an account and signs its first device in.
    ///
    /// # Errors
    /// [`ControlError::NameTaken`], and what every control transaction can meet.
    pub async fn create_account(
        &self,
        new: NewAccount,
        device: NewDevice,
    ) -> Result<Account, ControlError> {
        self.control(move |connection| {
            let account = insert_account(connection, new)?;
            insert_device(connection, &device)?;
            Ok(account)
        })
        .await
    }

    /// Makes an account with an invite, of which it takes one use. Gives the account and the room.
    ///
    /// # Errors
    /// [`ControlError::NameTaken`], [`ControlError::NotFound`] for an unknown invite,
    /// [`ControlError::NotAllowed`] for one that works no more.
    pub async fn create_invited_account(
        &self,
        new: NewAccount,
        device: NewDevice,
        code: String,
    ) -> Result<(Account, RoomId), ControlError> {
        self.control(move |connection| {
            let invite = match redeem(connection, &code, new.id, new.at)? {
                Redeemed::Yes(invite) => invite,
                Redeemed::Unknown => return Err(ControlError::NotFound("invite")),
                Redeemed::Expired => {
                    return Err(ControlError::NotAllowed("the invite has expired"));
                }
                Redeemed::UsedUp => return Err(ControlError::NotAllowed("the invite is used up")),
            };
            let account = insert_account(connection, new)?;
            insert_device(connection, &device)?;
            Ok((account, invite.room))
        })
        .await
    }

    /// Signs a device in, if the account's password is still the one that was verified: somebody
    /// who knew the old one must not slip in while it is changed.
    ///
    /// # Errors
    /// [`ControlError::NotAllowed`] if the account is disabled or its password is another one now.
    pub async fn sign_in(
        &self,
        device: NewDevice,
        verified_hash: String,
    ) -> Result<(), ControlError> {
        self.control(move |connection| {
            let hash: Option<String> = connection
                .query_row(
                    "SELECT password_hash FROM users WHERE id = ?1",
                    [to_sql(device.user.as_u64())],
                    |row| row.get(0),
                )
                .optional()?;
            if hash != Some(verified_hash) {
                return Err(ControlError::NotAllowed("the password has just been changed"));
            }
            insert_device(connection, &device)
        })
        .await
    }

    /// Changes the password of the user of `device`, if it is still `verified_hash`; signs all
    /// other devices out if they are not to stay.
    ///
    /// # Errors
    /// [`ControlError::NotAllowed`] if the password is another one now.
    pub async fn change_password(
        &self,
        user: UserId,
        device: DeviceId,
        verified_hash: String,
        new_hash: String,
        sign_out_others: bool,
    ) -> Result<(), ControlError> {
        self.control(move |connection| {
            let changed = connection.execute(
                "UPDATE users SET password_hash = ?3 WHERE id = ?1 AND password_hash = ?2",
                params![to_sql(user.as_u64()), verified_hash, new_hash],
            )?;
            if changed == 0 {
                return Err(ControlError::NotAllowed("the password has just been changed"));
            }
            // A link that was made because the old one was forgotten is of no use any more.
            let id = [to_sql(user.as_u64())];
            connection.execute("DELETE FROM password_resets WHERE user = ?1", id)?;
            if sign_out_others {
                connection.execute(
                    "DELETE FROM devices WHERE user = ?1 AND id <> ?2",
                    [id[0], to_sql(device.as_u64())],
                )?;
            }
            Ok(())
        })
        .await
    }

    /// The account of this name and its password's hash.
    ///
    /// # Errors
    /// [`ReadError`] only if the database fails; an unknown name is `None`.
    pub async fn credentials(&self, name: String) -> Result<Option<(Account, String)>, ReadError> {
        self.read(move |connection| {
            let sql = format!("SELECT {ACCOUNT_COLUMNS}, password_hash FROM users WHERE name = ?1");
            let found = connection
                .prepare_cached(&sql)?
                .query_row([name], |row| Ok((read_account(row)?, row.get(ACCOUNT_WIDTH)?)))
                .optional()?;
            Ok(found)
        })
        .await
    }

    /// An account by its id.
    ///
    /// # Errors
    /// [`ReadError`] only if the database fails.
    pub async fn account(&self, user: UserId) -> Result<Option<Account>, ReadError> {
        self.read(move |connection| Ok(account(connection, user)?)).await
    }

    /// Accounts by their ids; unknown ones are left out.
    ///
    /// # Errors
    /// [`ReadError`] only if the database fails.
    pub async fn accounts(&self, users: Vec<UserId>) -> Result<Vec<Account>, ReadError> {
        self.read(move |connection| {
            let mut found = Vec::with_capacity(users.len());
            for user in users {
                found.extend(account(connection, user)?);
            }
            Ok(found)
        })
        .await
    }

    /// An account by its exact name.
    ///
    /// # Errors
    /// [`ReadError`] only if the database fails.
    pub async fn account_by_name(&self, name: String) -> Result<Option<Account>, ReadError> {
        self.read(move |connection| {
            let sql = format!("SELECT {ACCOUNT_COLUMNS} FROM users WHERE name = ?1");
            Ok(connection.prepare_cached(&sql)?.query_row([name], read_account).optional()?)
        })
        .await
    }

    /// Accounts whose names begin with `prefix`, in the order of their names.
    ///
    /// # Errors
    /// [`ReadError`] only if the database fails.
    pub async fn find_accounts(
        &self,
        prefix: String,
        limit: u32,
    ) -> Result<Vec<Account>, ReadError> {
        self.read(move |connection| {
            // No name sorts after the prefix and the largest character, so this is a range of the
            // index.
            let sql = format!(
                "SELECT {ACCOUNT_COLUMNS} FROM users WHERE deleted_at IS NULL \
                 AND name >= ?1 AND name < ?1 || char(1114111) ORDER BY name LIMIT ?2"
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map(params![prefix, limit], read_account)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Accounts whose name, or a word of whose name to show, begins with a folded `prefix`, at most
    /// `limit`, in the order of those words.
    ///
    /// # Errors
    /// [`ReadError`] only if the database fails.
    pub async fn accounts_called(
        &self,
        prefix: String,
        limit: u32,
    ) -> Result<Vec<Account>, ReadError> {
        self.read(move |connection| {
            let sql = format!(
                "SELECT {ACCOUNT_COLUMNS} FROM name_words w JOIN users ON users.id = w.user \
                 WHERE w.word >= ?1 AND w.word < ?1 || char(1114111) AND users.deleted_at IS NULL \
                 GROUP BY users.id ORDER BY min(w.word), users.name LIMIT ?2"
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map(params![prefix, limit], read_account)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}

/// Adds an account that can be found by its names.
pub(super) fn insert_account(
    connection: &Connection,
    new: NewAccount,
) -> Result<Account, ControlError> {
    let account = insert_row(connection, new)?;
    let Account { id, name, display_name, .. } = &account;
    note_words(connection, to_sql(id.as_u64()), name, display_name)?;
    Ok(account)
}

/// Adds an ordinary user's account.
pub(super) fn insert_row(
    connection: &Connection,
    new: NewAccount,
) -> Result<Account, ControlError> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO users (id, name, display_name, password_hash, is_admin, created_at) \
         VALUES (?1, ?2, ?3, ?4, FALSE, ?5) ON CONFLICT (name) DO NOTHING",
    )?;
    let added = insert.execute(params![
        to_sql(new.id.as_u64()),
        new.name,
        new.display_name,
        new.password_hash,
        to_sql(new.at.as_u64())
    ])?;
    if added == 0 {
        return Err(ControlError::NameTaken(new.name));
    }
    let NewAccount { id, name, display_name, at, .. } = new;
    Ok(Account {
        id,
        name,
        display_name,
        is_admin: false,
        created_at: at,
        picture: None,
        status: None,
    })
}

/// Reads an account inside a transaction.
pub(crate) fn account(connection: &Connection, user: UserId) -> sql::Result<Option<Account>> {
    let sql = format!("SELECT {ACCOUNT_COLUMNS} FROM users WHERE id = ?1");
    connection.prepare_cached(&sql)?.query_row([to_sql(user.as_u64())], read_account).optional()
}

/// An account that is there and not deleted.
pub(super) fn existing(connection: &Connection, user: UserId) -> Result<Account, ControlError> {
    let found = account(connection, user)?.filter(|account| !account.is_deleted());
    found.ok_or(ControlError::NotFound("user"))
}

/// Reads an account from a row that begins with [`ACCOUNT_COLUMNS`].
pub(crate) fn read_account(row: &Row<'_>) -> sql::Result<Account> {
    read_account_at(row, 0)
}

/// The same where its columns begin at `first`.
pub(crate) fn read_account_at(row: &Row<'_>, first: usize) -> sql::Result<Account> {
    Ok(Account {
        id: UserId::from_u64(from_sql(row.get(first)?)),
        name: row.get(first + 1)?,
        display_name: row.get(first + 2)?,
        is_admin: row.get(first + 3)?,
        created_at: UnixMillis::from_u64(from_sql(row.get(first + 4)?)),
        picture: profiles::read_picture(row, first + 5)?,
        status: profiles::read_status(row, first + 6)?,
    })
}
