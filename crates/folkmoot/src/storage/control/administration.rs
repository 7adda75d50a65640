//! What administrators change: who administers, who may sign in, lost passwords. Each change is
//! one transaction together with its entry in the log of moderation.
//!
//! A server that has an administrator keeps one: the check and the change are the same transaction,
//! so two who step down at once cannot both succeed.

use super::accounts::{account, existing, insert_account};
use super::devices::insert_device;
use super::moderation::{ModerationAction, NewModeration, note};
use super::{Account, NewAccount, NewDevice, TokenHash};
use crate::storage::error::{ControlError, ReadError};
use crate::storage::ids::{UnixMillis, UserId};
use crate::storage::sql::{self, Connection, OptionalExtension, params};
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::store::Store;

pub(super) const LAST_ADMINISTRATOR: ControlError =
    ControlError::NotAllowed("the last administrator cannot be disabled, deleted or made a user");

/// What an administrator does to a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserChange {
    /// Makes the user an administrator, or an ordinary user.
    Administrator(bool),
    /// Keeps the user out: all devices are signed out, and none can sign in. Or lets them in again.
    Disabled(bool),
    /// Signs all devices out; they may sign in again.
    SignOut,
}

impl Store {
    /// Whether nobody administers this server yet.
    ///
    /// # Errors
    /// [`ReadError`] only if the database fails.
    pub async fn needs_setup(&self) -> Result<bool, ReadError> {
        self.read(|connection| Ok(!has_administrator(connection)?)).await
    }

    /// Makes the first administrator and signs its first device in. Of several attempts at once
    /// one succeeds.
    ///
    /// # Errors
    /// [`ControlError::NotAllowed`] if there is an administrator, [`ControlError::NameTaken`].
    pub async fn set_up(
        &self,
        new: NewAccount,
        device: NewDevice,
    ) -> Result<Account, ControlError> {
        self.control(move |connection| {
            if has_administrator(connection)? {
                return Err(ControlError::NotAllowed("this server has an administrator already"));
            }
            let account = insert_account(connection, new)?;
            insert_device(connection, &device)?;
            set_administrator(connection, account.id, true)?;
            let action = ModerationAction::SetUp;
            note(
                connection,
                NewModeration::of_user(account.created_at, account.id, action, account.id),
            )?;
            Ok(Account { is_admin: true, ..account })
        })
        .await
    }

    /// Changes a user; says whether anything was not so already.
    ///
    /// # Errors
    /// [`ControlError::NotFound`]; [`ControlError::NotAllowed`] for the last administrator.
    pub async fn change_user(
        &self,
        by: UserId,
        user: UserId,
        change: UserChange,
        at: UnixMillis,
    ) -> Result<bool, ControlError> {
        self.control(move |connection| {
            let account = existing(connection, user)?;
            let is_disabled = is_disabled(connection, user)?;
            let action = match change {
                UserChange::Administrator(on) if on == account.is_admin => return Ok(false),
                UserChange::Disabled(on) if on == is_disabled => return Ok(false),
                UserChange::Administrator(true) if is_disabled => {
                    let text = "a disabled account cannot administer";
                    return Err(ControlError::NotAllowed(text));
                }
                UserChange::Administrator(true) => ModerationAction::AdministratorMade,
                UserChange::Administrator(false) => ModerationAction::AdministratorUnmade,
                UserChange::Disabled(true) => ModerationAction::UserDisabled,
                UserChange::Disabled(false) => ModerationAction::UserEnabled,
                UserChange::SignOut => ModerationAction::DevicesSignedOut,
            };
            match change {
                UserChange::Administrator(on) => set_administrator(connection, user, on)?,
                UserChange::Disabled(on) => {
                    let since = on.then(|| to_sql(at.as_u64()));
                    connection.execute(
                        "UPDATE users SET disabled_at = ?2 WHERE id = ?1",
                        params![to_sql(user.as_u64()), since],
                    )?;
                    sign_out(connection, user)?;
                }
                UserChange::SignOut => sign_out(connection, user)?,
            }
            let is_out =
                matches!(change, UserChange::Administrator(false) | UserChange::Disabled(true));
            if account.is_admin && is_out {
                end_resets(connection)?;
            }
            // After the change, whatever it was: an early return takes it back.
            if !has_administrator(connection)? {
                return Err(LAST_ADMINISTRATOR);
            }
            note(connection, NewModeration::of_user(at, by, action, user))?;
            Ok(true)
        })
        .await
    }

    /// Lets the holder of a token choose a new password for `user`, once, until `expires_at`.
    ///
    /// # Errors
    /// [`ControlError::NotFound`] if there is no such user.
    pub async fn create_password_reset(
        &self,
        by: UserId,
        user: UserId,
        token_hash: TokenHash,
        at: UnixMillis,
        expires_at: UnixMillis,
    ) -> Result<(), ControlError> {
        self.control(move |connection| {
            existing(connection, user)?;
            connection.execute(
                "INSERT INTO password_resets VALUES (?1, ?2, ?3) ON CONFLICT (user) \
 DO UPDATE SET token_hash = excluded.token_hash, expires_at = excluded.expires_at",
                params![to_sql(user.as_u64()), &token_hash[..], to_sql(expires_at.as_u64())],
            )?;
            note(
                connection,
                NewModeration::of_user(at, by, ModerationAction::ResetLinkMade, user),
            )?;
            Ok(())
        })
        .await
    }

    /// Whose password the holder of a token may choose at the time `now`.
    ///
    /// # Errors
    /// [`ReadError`] only if the database fails; an unknown or expired token is `None`.
    pub async fn password_reset(
        &self,
        token_hash: TokenHash,
        now: UnixMillis,
    ) -> Result<Option<UserId>, ReadError> {
        self.read(move |connection| Ok(reset_of(connection, &token_hash, now)?)).await
    }

    /// Sets the password that a token allows to choose; signs all other devices out and `device`
    /// in.
    ///
    /// # Errors
    /// [`ControlError::NotFound`] if the token does not work (any more),
    /// [`ControlError::NotAllowed`] for a disabled account.
    pub async fn reset_password(
        &self,
        token_hash: TokenHash,
        password_hash: String,
        device: NewDevice,
    ) -> Result<Account, ControlError> {
        self.control(move |connection| {
            let (user, at) = (device.user, device.at);
            if reset_of(connection, &token_hash, at)? != Some(user) {
                return Err(ControlError::NotFound(
                    "password reset, or it was used or has expired",
                ));
            }
            let account = account(connection, user)?.ok_or(ControlError::NotFound("user"))?;
            let id = to_sql(user.as_u64());
            connection.execute("DELETE FROM password_resets WHERE user = ?1", [id])?;
            connection.execute(
                "UPDATE users SET password_hash = ?2 WHERE id = ?1",
                params![id, password_hash],
            )?;
            sign_out(connection, user)?;
            insert_device(connection, &device)?;
            let action = ModerationAction::PasswordReset;
            note(connection, NewModeration::of_user(at, user, action, user))?;
            Ok(account)
        })
        .await
    }
}

pub(super) fn has_administrator(connection: &Connection) -> sql::Result<bool> {
    connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM users WHERE is_admin AND disabled_at IS NULL)",
        [],
        |row| row.get(0),
    )
}

/// Whether an account is kept out.
pub(super) fn is_disabled(connection: &Connection, user: UserId) -> sql::Result<bool> {
    let found = connection
        .prepare_cached("SELECT disabled_at IS NOT NULL FROM users WHERE id = ?1")?
        .query_row([to_sql(user.as_u64())], |row| row.get(0))
        .optional()?;
    Ok(found.unwrap_or_default())
}

fn set_administrator(connection: &Connection, user: UserId, on: bool) -> sql::Result<()> {
    connection.execute(
        "UPDATE users SET is_admin = ?2 WHERE id = ?1",
        params![to_sql(user.as_u64()), on],
    )?;
    Ok(())
}

/// Ends all links that choose a password: one who administers no more may know them.
pub(super) fn end_resets(connection: &Connection) -> sql::Result<()> {
    connection.execute("DELETE FROM password_resets", [])?;
    Ok(())
}

pub(super) fn sign_out(connection: &Connection, user: UserId) -> sql::Result<()> {
    connection.execute("DELETE FROM devices WHERE user = ?1", [to_sql(user.as_u64())])?;
    Ok(())
}

fn reset_of(
    connection: &Connection,
    token_hash: &TokenHash,
    now: UnixMillis,
) -> sql::Result<Option<UserId>> {
    connection
        .prepare_cached(
            "SELECT user FROM password_resets WHERE token_hash = ?1 AND expires_at > ?2",
        )?
        .query_row(params![&token_hash[..], to_sql(now.as_u64())], |row| {
            Ok(UserId::from_u64(from_sql(row.get(0)?)))
        })
        .optional()
}
