//! Methods on one's own profile. Each is stored first and told then: to the user's own devices, and
//! to whoever looks at a room that the user is in.

use bytes::Bytes;
use folkmoot_protocol::chat::{Status, UserView};
use folkmoot_protocol::rpc::{ProfileUpdate, RpcError, StatusSet};

use super::error::{control_failure, failure};
use crate::attachment::portrait;
use crate::chat::Identity;
use crate::storage::contract::Directory;
use crate::storage::{Account, ControlError};
use crate::user::UserCalls;
use crate::wire;

pub(crate) async fn rename(by: &Identity, request: ProfileUpdate) -> Result<UserView, RpcError> {
    by.count(|limits| &limits.profile_changes)?;
    let account = by.server.directory().set_display_name(by.user, request.display_name).await;
    tell(by, account.map_err(|error| control_failure(&error))?).await
}

pub(crate) async fn set_status(by: &Identity, request: StatusSet) -> Result<UserView, RpcError> {
    by.count(|limits| &limits.profile_changes)?;
    let StatusSet { emoji, text, until } = request;
    let says_something = !emoji.is_empty() || !text.is_empty();
    let status = says_something.then_some(Status { emoji, text, until });
    let account = by.server.directory().set_status(by.user, status).await;
    tell(by, account.map_err(|error| control_failure(&error))?).await
}

/// Shows a picture, of which only what this server made of it is kept.
pub(crate) async fn set_picture(by: &Identity, picture: Bytes) -> Result<UserView, RpcError> {
    by.count(|limits| &limits.profile_changes)?;
    let id = portrait::store(&by.server, picture).await?;
    match by.server.directory().set_picture(by.user, Some(id)).await {
        Ok((account, replaced)) => {
            if let Some(replaced) = replaced {
                portrait::remove(&by.server, replaced).await;
            }
            tell(by, account).await
        }
        Err(error) => {
            // The account may have it all the same, if only the answer has not come.
            if !matches!(error, ControlError::Away(_)) {
                portrait::remove(&by.server, id).await;
            }
            Err(control_failure(&error))
        }
    }
}

pub(crate) async fn remove_picture(by: &Identity) -> Result<UserView, RpcError> {
    by.count(|limits| &limits.profile_changes)?;
    let removed = by.server.directory().set_picture(by.user, None).await;
    let (account, replaced) = removed.map_err(|error| control_failure(&error))?;
    if let Some(replaced) = replaced {
        portrait::remove(&by.server, replaced).await;
    }
    tell(by, account).await
}

async fn tell(by: &Identity, account: Account) -> Result<UserView, RpcError> {
    let view = wire::user_view(account);
    let told = by.server.user(by.user).renamed(view.clone()).await;
    told.map_err(|error| failure(&error))?;
    Ok(view)
}
