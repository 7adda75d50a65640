//! Routes that delete: one's own account, by the password asked for again; accounts and rooms by
//! administrators. Answered once it is decided and nobody can reach it; the rest follows.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::chat::{
    AccountDelete, AdminRoom, AdminRoomUpdate, AdminUserDelete, MessagesFate, OwnedRooms,
};

use super::Refused;
use super::accounts::{Guess, verified};
use super::auth::{Administrator, Signed};
use super::body::Valid;
use super::client_address::ClientAddress;
use super::rooms::room_id;
use crate::chat::Identity;
use crate::chat::{self, control_failure, failure, read_failure};
use crate::room::{Archivist, Command};
use crate::server::Server;
use crate::storage::contract::{Administration, Directory};
use crate::storage::{AccountDeletion, AccountDeletionBegun, Authority, DeviceId, UserId};
use crate::user::UserCalls;
use crate::wire;

/// `POST /api/v1/me/deletion`.
pub(crate) async fn delete_me(
    State(server): State<Arc<Server>>,
    ClientAddress(from): ClientAddress,
    signed: Signed,
    Valid(request): Valid<AccountDelete>,
) -> Result<StatusCode, Refused> {
    signed.identity.count(|limits| &limits.changes)?;
    let AccountDelete { password, messages, rooms } = request;
    let user = signed.identity.user;
    let (_, hash) = verified(&server, Guess::again(signed, password, from)).await?;
    let deletion = wish(&server, user, user, messages, rooms);
    delete_account(&server, AccountDeletion { verified_hash: Some(hash), ..deletion }).await
}

/// `POST /api/v1/admin/users/{id}/deletion`.
pub(crate) async fn delete_user(
    State(server): State<Arc<Server>>,
    by: Administrator,
    Path(user): Path<String>,
    Valid(request): Valid<AdminUserDelete>,
) -> Result<StatusCode, Refused> {
    let AdminUserDelete { messages, rooms } = request;
    let user = user.parse().map_err(|_| Refused::new(ErrorCode::NotFound, "no such user"))?;
    delete_account(&server, wish(&server, user, by.user(), messages, rooms)).await
}

/// What is wanted of the deletion of an account.
fn wish(
    server: &Server,
    user: UserId,
    by: UserId,
    messages: MessagesFate,
    rooms: Option<OwnedRooms>,
) -> AccountDeletion {
    AccountDeletion {
        user,
        by,
        verified_hash: None,
        erase: messages == MessagesFate::Erase,
        hand_over: rooms.unwrap_or_default() == OwnedRooms::HandOver,
        at: server.now(),
    }
}

async fn delete_account(server: &Server, deletion: AccountDeletion) -> Result<StatusCode, Refused> {
    let user = deletion.user;
    let begun = server.directory().begin_account_deletion(deletion).await;
    match begun.map_err(|error| control_failure(&error))? {
        AccountDeletionBegun::Yes => {}
        AccountDeletionBegun::Owns(rooms) => {
            let text = format!(
                "rooms: nobody else owns {}; make somebody an owner, or have them handed over",
                rooms.join(", ")
            );
            return Err(Refused::new(ErrorCode::PermissionDenied, text));
        }
    }
    let closed = server.user(user).close().await;
    // Whatever becomes of the answer, it is decided.
    server.deletions.wake();
    closed.map_err(|error| failure(&error))?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /api/v1/rooms/{id}`.
pub(crate) async fn delete_room(
    signed: Signed,
    Path(room): Path<String>,
) -> Result<StatusCode, Refused> {
    chat::rooms::delete(&signed.identity, room_id(&room)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /api/v1/admin/rooms/{id}`.
pub(crate) async fn delete_any_room(
    State(server): State<Arc<Server>>,
    by: Administrator,
    Path(room): Path<String>,
) -> Result<StatusCode, Refused> {
    let (room, authority) = (room_id(&room)?, Authority::Administrator);
    chat::rooms::delete_as(&server, room, by.user(), authority).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `PATCH /api/v1/admin/rooms/{id}`.
pub(crate) async fn update_room(
    State(server): State<Arc<Server>>,
    by: Administrator,
    Path(room): Path<String>,
    Valid(request): Valid<AdminRoomUpdate>,
) -> Result<Json<AdminRoom>, Refused> {
    let AdminRoomUpdate { archived: on } = request;
    let room = room_id(&room)?;
    let by = Identity::new(server.clone(), by.user(), DeviceId::from_u64(0));
    let archive = Command::Archive { on, by: Archivist::Administrator };
    chat::messages::apply(&by, room, archive).await?;
    let row = server.administration().room_row(room).await.map_err(|error| read_failure(&error))?;
    let row = row.ok_or_else(|| Refused::new(ErrorCode::NotFound, "no such room"))?;
    Ok(Json(wire::admin_room(row)))
}
