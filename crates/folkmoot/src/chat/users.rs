//! Methods on users and devices.

use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::chat::{DeviceView, UserView};
use folkmoot_protocol::limits::{BLOCKED_USERS_MAX, USERS_FOUND_MAX};
use folkmoot_protocol::rpc::{DevicesPage, RpcError, UserBlock, UsersFind, UsersFound};

use super::error::{control_failure, failure, read_failure};
use crate::chat::{Identity, signed_out};
use crate::room::RoomCalls;
use crate::server::Server;
use crate::storage::contract::Directory;
use crate::storage::{Account, ControlError, DeviceId, UserId};
use crate::text::folded;
use crate::user::UserCalls;
use crate::wire;

pub(crate) async fn find(by: &Identity, request: UsersFind) -> Result<UsersFound, RpcError> {
    let limit = request.limit.unwrap_or(USERS_FOUND_MAX);
    // Names are lower case; what people type need not be.
    let prefix = request.prefix.to_lowercase();
    let found = by.server.directory().find_accounts(prefix, limit).await;
    let mut found = found.map_err(|error| read_failure(&error))?;
    if found.len() < limit as usize {
        let shown = by.server.directory().accounts_called(folded(&request.prefix), limit).await;
        for account in shown.map_err(|error| read_failure(&error))? {
            if found.len() < limit as usize && found.iter().all(|known| known.id != account.id) {
                found.push(account);
            }
        }
    }
    Ok(UsersFound { users: found.into_iter().map(wire::user_view).collect() })
}

pub(crate) async fn get(by: &Identity, user: UserId) -> Result<UserView, RpcError> {
    Ok(wire::user_view(account(&by.server, user).await?))
}

/// The account of a user who exists.
pub(crate) async fn account(server: &Server, user: UserId) -> Result<Account, RpcError> {
    let account = server.directory().account(user).await.map_err(|error| read_failure(&error))?;
    account.ok_or_else(|| RpcError::new(ErrorCode::NotFound, "no such user"))
}

/// Keeps somebody from writing to the caller alone, or allows it again.
pub(crate) async fn block(by: &Identity, request: UserBlock) -> Result<(), RpcError> {
    let UserBlock { user: other, on } = request;
    if other == by.user {
        return Err(RpcError::invalid("user", "must be somebody else"));
    }
    let (server, now) = (&by.server, by.server.now());
    let stored = server.directory().set_blocked(by.user, other, on, now, BLOCKED_USERS_MAX).await;
    let direct = stored.map_err(|error| match error {
        ControlError::NotAllowed(_) => {
            let text = format!("at most {BLOCKED_USERS_MAX} users are blocked");
            let limit = Some(u64::from(BLOCKED_USERS_MAX));
            RpcError { limit, ..RpcError::new(ErrorCode::LimitExceeded, text) }
        }
        error => control_failure(&error),
    })?;
    // Both go by what is stored when they come into memory; these are for now.
    server.user(by.user).blocked(other, on).await.map_err(|error| failure(&error))?;
    if let Some(room) = direct {
        server.room(room).set_blocked(by.user, on).await.map_err(|error| failure(&error))?;
    }
    Ok(())
}

/// Whom the caller has blocked.
pub(crate) async fn blocked(by: &Identity) -> Result<UsersFound, RpcError> {
    let blocked =
        by.server.directory().blocked(by.user).await.map_err(|error| read_failure(&error))?;
    Ok(UsersFound { users: blocked.into_iter().map(wire::user_view).collect() })
}

pub(crate) async fn devices(by: &Identity) -> Result<DevicesPage, RpcError> {
    let devices =
        by.server.directory().devices(by.user).await.map_err(|error| read_failure(&error))?;
    let view = |device: crate::storage::Device| DeviceView {
        id: device.id,
        label: device.label,
        created_at: device.created_at,
        seen_at: device.seen_at,
        current: device.id == by.device,
    };
    Ok(DevicesPage { devices: devices.into_iter().map(view).collect() })
}

/// Signs a device out: its token is worthless, its connections end.
pub(crate) async fn revoke_device(by: &Identity, device: DeviceId) -> Result<(), RpcError> {
    let removed = by.server.directory().remove_device(by.user, device).await;
    let removed = removed.map_err(|error| control_failure(&error))?;
    // Also if it is gone: whoever asks again may have had no answer to the first time.
    signed_out::hang_up(&by.server, by.user).await;
    match removed {
        true => Ok(()),
        false => Err(RpcError::new(ErrorCode::NotFound, "no such device")),
    }
}
