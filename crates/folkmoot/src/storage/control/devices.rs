//! The devices signed in to accounts. A device has one session token; only its hash is stored.

use super::accounts::{ACCOUNT_COLUMNS, ACCOUNT_WIDTH, Account, account, read_account};
use super::administration::is_disabled;
use crate::storage::error::{ControlError, ReadError};
use crate::storage::ids::{DeviceId, UnixMillis, UserId};
use crate::storage::progress::Stream;
use crate::storage::sql::{Connection, OptionalExtension, params};
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::store::Store;

/// SHA-256 of a session token.
pub type TokenHash = [u8; 32];

/// A device signed in to an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its id.
    pub id: DeviceId,
    /// What its owner calls it.
    pub label: String,
    /// When it signed in.
    pub created_at: UnixMillis,
    /// When it was last connected.
    pub seen_at: UnixMillis,
}

/// A device to sign in.
#[derive(Clone, Debug)]
pub struct NewDevice {
    /// A fresh id.
    pub id: DeviceId,
    /// Whose.
    pub user: UserId,
    /// What its owner calls it.
    pub label: String,
    /// The hash of its token.
    pub token_hash: TokenHash,
    /// Now.
    pub at: UnixMillis,
}

/// Whom a session token belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedIn {
    /// The account.
    pub account: Account,
    /// The device.
    pub device: DeviceId,
    /// When it was last seen.
    pub seen_at: UnixMillis,
}

impl Store {
    /// Signs a device in to an account that exists.
    ///
    /// # Errors
    /// [`ControlError::NotFound`] if there is no such account, [`ControlError::NotAllowed`] if it
    /// is disabled.
    pub async fn add_device(&self, device: NewDevice) -> Result<(), ControlError> {
        self.control(move |connection| {
            if account(connection, device.user)?.is_none() {
                return Err(ControlError::NotFound("user"));
            }
            insert_device(connection, &device)
        })
        .await
    }

    /// Signs a device out; its token is worthless from now on. Says whether it was signed in.
    ///
    /// # Errors
    /// What every control transaction can meet.
    pub async fn remove_device(
        &self,
        user: UserId,
        device: DeviceId,
    ) -> Result<bool, ControlError> {
        self.control(move |connection| {
            let removed = connection.execute(
                "DELETE FROM devices WHERE id = ?1 AND user = ?2",
                [to_sql(device.as_u64()), to_sql(user.as_u64())],
            )?;
            Ok(removed > 0)
        })
        .await
    }

    /// Signs out the devices of an account that were unseen for longest, so that `max` stay; `keep`
    /// is one of them. Gives those that are signed out.
    ///
    /// # Errors
    /// What every control transaction can meet.
    pub async fn trim_devices(
        &self,
        user: UserId,
        keep: DeviceId,
        max: u32,
    ) -> Result<Vec<DeviceId>, ControlError> {
        self.control(move |connection| {
            let mut statement = connection.prepare_cached(
                "DELETE FROM devices WHERE id IN \
                   (SELECT id FROM devices WHERE user = ?1 \
                    ORDER BY id = ?2 DESC, seen_at DESC, id LIMIT 1000000 OFFSET ?3) RETURNING id",
            )?;
            let place = params![to_sql(user.as_u64()), to_sql(keep.as_u64()), max];
            let rows =
                statement.query_map(place, |row| Ok(DeviceId::from_u64(from_sql(row.get(0)?))))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Whom a token belongs to.
    ///
    /// # Errors
    /// [`ReadError`] only if the database fails; an unknown token is `None`.
    pub async fn signed_in(&self, token_hash: TokenHash) -> Result<Option<SignedIn>, ReadError> {
        self.read_one(move |connection| {
            let sql = format!(
                "SELECT {ACCOUNT_COLUMNS}, devices.id, devices.seen_at FROM devices \
                 JOIN users ON users.id = devices.user WHERE devices.token_hash = ?1"
            );
            let found = connection
                .prepare_cached(&sql)?
                .query_row([&token_hash[..]], |row| {
                    let device = DeviceId::from_u64(from_sql(row.get(ACCOUNT_WIDTH)?));
                    let seen_at = UnixMillis::from_u64(from_sql(row.get(ACCOUNT_WIDTH + 1)?));
                    Ok(SignedIn { account: read_account(row)?, device, seen_at })
                })
                .optional()?;
            Ok(found)
        })
        .await
    }

    /// The devices signed in to an account, the latest first.
    ///
    /// # Errors
    /// [`ReadError`] only if the database fails.
    pub async fn devices(&self, user: UserId) -> Result<Vec<Device>, ReadError> {
        self.barrier_for(&[Stream::User(user)]).await?;
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, label, created_at, seen_at FROM devices WHERE user = ?1 \
                 ORDER BY created_at DESC, id",
            )?;
            let rows = statement.query_map([to_sql(user.as_u64())], |row| {
                Ok(Device {
                    id: DeviceId::from_u64(from_sql(row.get(0)?)),
                    label: row.get(1)?,
                    created_at: UnixMillis::from_u64(from_sql(row.get(2)?)),
                    seen_at: UnixMillis::from_u64(from_sql(row.get(3)?)),
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}

/// Signs a device in, unless its account is disabled.
pub(super) fn insert_device(
    connection: &Connection,
    device: &NewDevice,
) -> Result<(), ControlError> {
    if is_disabled(connection, device.user)? {
        return Err(ControlError::NotAllowed("this account is disabled"));
    }
    let mut statement = connection.prepare_cached(
        "INSERT INTO devices (id, user, label, token_hash, created_at, seen_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?5)",
    )?;
    statement.execute(params![
        to_sql(device.id.as_u64()),
        to_sql(device.user.as_u64()),
        device.label,
        &device.token_hash[..],
        to_sql(device.at.as_u64())
    ])?;
    Ok(())
}
